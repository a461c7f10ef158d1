//! The token of a request: a fixed token, or the result of a function of the caller.

use std::sync::Arc;

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

pub(crate) struct Provider {
    provide: Box<dyn Fn() -> BoxFuture<Result<String, Cause>> + Send + Sync>,
    /// The latest token. It is locked during a call, which requests at the same time share.
    latest: Mutex<Option<String>>,
}

impl Tokens {
    pub(crate) fn provided(
        provide: impl Fn() -> BoxFuture<Result<String, Cause>> + Send + Sync + 'static,
    ) -> Self {
        Self::Provided(Arc::new(Provider {
            provide: Box::new(provide),
            latest: Mutex::default(),
        }))
    }

    /// Whether a request may get another token after a refused token.
    pub(crate) fn can_change(&self) -> bool {
        matches!(self, Self::Provided(_))
    }

    /// The latest token, or a new one if the latest is `refused`.
    ///
    /// # Errors
    /// [`Error::NoToken`] if the function fails.
    pub(crate) async fn get(&self, refused: Option<&str>) -> Result<String, Error> {
        let provider = match self {
            Self::Fixed(token) => return Ok(token.clone()),
            Self::Provided(provider) => provider,
        };
        let mut latest = provider.latest.lock().await;
        if let Some(token) = &*latest
            && refused != Some(token.as_str())
        {
            return Ok(token.clone());
        }
        let token = (provider.provide)().await.map_err(Error::NoToken)?;
        *latest = Some(token.clone());
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::yield_now;

    use super::*;

    /// The tokens `1`, `2` and so on.
    fn numbers() -> Tokens {
        let count = AtomicUsize::new(0);
        Tokens::provided(move || {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            Box::pin(async move {
                yield_now().await;
                Ok(number.to_string())
            })
        })
    }

    #[tokio::test]
    async fn requests_at_the_same_time_share_a_call() {
        let tokens = numbers();
        let (one, other) = tokio::join!(tokens.get(None), tokens.get(None));
        assert_eq!((one.unwrap(), other.unwrap()), ("1".into(), "1".into()));
        let refused = Some("1");
        let (one, other) = tokio::join!(tokens.get(refused), tokens.get(refused));
        assert_eq!((one.unwrap(), other.unwrap()), ("2".into(), "2".into()));
    }

    #[tokio::test]
    async fn a_fixed_token_does_not_change() {
        let tokens = Tokens::Fixed("admin".to_owned());
        assert!(!tokens.can_change());
        assert_eq!(tokens.get(Some("admin")).await.unwrap(), "admin");
    }
}
