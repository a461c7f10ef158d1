//! The token of a request: a fixed token, or the result of a function of the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::connect::BoxFuture;
use crate::error::Error;

/// An error of the caller's function.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Tokens {
    Fixed(String),
    Provided(Arc<Provider>),
}

/// A token, and the number of the call that provided it.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) text: String,
    call: u64,
}

pub(crate) struct Provider {
    provide: Box<dyn Fn() -> BoxFuture<Result<String, Cause>> + Send + Sync>,
    /// Number of calls that have ended.
    calls: AtomicU64,
    /// Locked during a call, which requests at the same time share.
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    token: Option<Token>,
    /// The message of the latest call if it failed.
    failure: Option<String>,
}

impl Tokens {
    pub(crate) fn provided(
        provide: impl Fn() -> BoxFuture<Result<String, Cause>> + Send + Sync + 'static,
    ) -> Self {
        Self::Provided(Arc::new(Provider {
            provide: Box::new(provide),
            calls: AtomicU64::new(0),
            latest: Mutex::default(),
        }))
    }

    /// Whether a request may get another token after a refused token.
    pub(crate) fn can_change(&self) -> bool {
        matches!(self, Self::Provided(_))
    }

    /// The latest token, or the token of a new call if the latest is not newer than `refused`.
    ///
    /// # Errors
    /// [`Error::NoToken`] if the function fails.
    pub(crate) async fn get(&self, refused: Option<&Token>) -> Result<Token, Error> {
        match self {
            Self::Fixed(text) => Ok(Token {
                text: text.clone(),
                call: 0,
            }),
            Self::Provided(provider) => provider.get(refused).await,
        }
    }
}

impl Provider {
    async fn get(&self, refused: Option<&Token>) -> Result<Token, Error> {
        let ended_before = self.calls.load(Ordering::Relaxed);
        let mut latest = self.latest.lock().await;
        // The texts are not compared: a new call may provide the same text.
        let is_new = |token: &&Token| refused.is_none_or(|refused| token.call > refused.call);
        if let Some(token) = latest.token.as_ref().filter(is_new) {
            return Ok(token.clone());
        }
        let ended = self.calls.load(Ordering::Relaxed);
        // Requests that waited for a call that failed share its failure: a call of each, one after
        // the other, would take as many times as long.
        if let Some(failure) = &latest.failure
            && ended > ended_before
        {
            return Err(Error::NoToken(failure.as_str().into()));
        }
        let provided = (self.provide)().await;
        self.calls.store(ended + 1, Ordering::Relaxed);
        latest.failure = provided.as_ref().err().map(ToString::to_string);
        let token = Token {
            text: provided.map_err(Error::NoToken)?,
            call: ended + 1,
        };
        latest.token = Some(token.clone());
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    /// Tokens of a function that returns `text` of the number of its call.
    fn tokens(text: impl Fn(u64) -> Result<String, Cause> + Send + Sync + 'static) -> Tokens {
        let count = AtomicU64::new(0);
        Tokens::provided(move || {
            let provided = text(count.fetch_add(1, Ordering::Relaxed) + 1);
            Box::pin(async move {
                yield_now().await;
                provided
            })
        })
    }

    /// The results of several requests at the same time, as text.
    async fn at_once(tokens: &Tokens, refused: Option<&Token>) -> Vec<String> {
        let one = || tokens.get(refused);
        let (a, b, c) = tokio::join!(one(), one(), one());
        let text = |result: Result<Token, Error>| match result {
            Ok(token) => format!("{} of call {}", token.text, token.call),
            Err(error) => error.to_string(),
        };
        [a, b, c].map(text).into()
    }

    #[tokio::test]
    async fn requests_at_the_same_time_share_a_call() {
        let tokens = tokens(|number| Ok(format!("t{number}")));
        assert_eq!(at_once(&tokens, None).await, ["t1 of call 1"; 3]);
        let first = tokens.get(None).await.unwrap();
        assert_eq!(at_once(&tokens, Some(&first)).await, ["t2 of call 2"; 3]);
        // A request that is refused late gets the token that others have got already.
        assert_eq!(at_once(&tokens, Some(&first)).await, ["t2 of call 2"; 3]);
    }

    #[tokio::test]
    async fn refused_requests_share_a_call_that_provides_the_same_text_again() {
        let tokens = tokens(|_| Ok("same".to_owned()));
        let first = tokens.get(None).await.unwrap();
        assert_eq!(at_once(&tokens, Some(&first)).await, ["same of call 2"; 3]);
    }

    #[tokio::test]
    async fn requests_at_the_same_time_share_a_failure_and_later_ones_call_again() {
        let tokens = tokens(|number| match number {
            1 => Err("Keystone does not answer".into()),
            number => Ok(format!("t{number}")),
        });
        let failed = ["there is no token: Keystone does not answer"; 3];
        assert_eq!(at_once(&tokens, None).await, failed);
        assert_eq!(at_once(&tokens, None).await, ["t2 of call 2"; 3]);
    }

    #[tokio::test]
    async fn a_fixed_token_does_not_change() {
        let tokens = Tokens::Fixed("admin".to_owned());
        assert!(!tokens.can_change());
        let token = tokens.get(None).await.unwrap();
        assert_eq!(tokens.get(Some(&token)).await.unwrap().text, "admin");
    }
}
