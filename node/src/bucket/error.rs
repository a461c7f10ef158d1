//! What a store says no to, as text. What it answers may hold parts of the request, so only code and
//! message are shown.

use std::error::Error;
use std::fmt;

use http::StatusCode;

/// How much of a store's message is shown.
const MESSAGE_CHARS: usize = 200;

/// Why something could not be done with a bucket.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BucketError(pub(super) String);

impl BucketError {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl From<object_store::Error> for BucketError {
    fn from(error: object_store::Error) -> Self {
        // What lies around the cause repeats the request.
        let mut cause: &dyn Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Self(cause.to_string())
    }
}

impl From<std::io::Error> for BucketError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// An answer that ends what was tried.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    code: String,
    message: String,
}

impl Refused {
    /// `None`: the answer is a good one, or tells that an object is not there.
    pub(super) fn of(status: StatusCode, body: &[u8]) -> Option<Self> {
        if status.is_success() {
            return None;
        }
        let body = String::from_utf8_lossy(body);
        let between = |tag: &str| {
            let (_, rest) = body.split_once(&format!("<{tag}>"))?;
            let (text, _) = rest.split_once(&format!("</{tag}>"))?;
            Some(text.chars().take(MESSAGE_CHARS).collect::<String>())
        };
        let code = between("Code").unwrap_or_default();
        let is_told = [StatusCode::NOT_FOUND, StatusCode::PRECONDITION_FAILED].contains(&status);
        (!is_told || code == "NoSuchBucket").then(|| Self {
            status,
            code,
            message: between("Message").unwrap_or_default(),
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            status,
            code,
            message,
        } = self;
        let words = match (status.as_u16(), code.as_str()) {
            (_, "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "NotSignedUp") | (401, _) => {
                "it refuses the credentials"
            }
            (_, "RequestTimeTooSkewed") => "its clock and that of this machine differ",
            (_, "NoSuchBucket") => "it has no such bucket",
            (403, _) => "it does not permit this with these credentials",
            (301 | 307 | 308, _) => "the bucket is in another region, or at another endpoint",
            _ => return write!(f, "it answers {status} {code}: {message}"),
        };
        write!(f, "{words} ({} {code})", status.as_u16())
    }
}

impl Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_refuses_is_told_without_what_was_sent() {
        let words = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            Refused::of(status, body.as_bytes()).map(|refused| refused.to_string())
        };
        let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>m</Message>\
                    <StringToSign>secret</StringToSign></Error>";
        assert_eq!(
            words(403, body).unwrap(),
            "it refuses the credentials (403 SignatureDoesNotMatch)"
        );
        let denied = words(403, "").unwrap();
        assert!(denied.contains("does not permit"), "{denied}");
        let full = words(507, "<Code>QuotaExceeded</Code><Message>no room</Message>");
        assert_eq!(
            full.unwrap(),
            "it answers 507 Insufficient Storage QuotaExceeded: no room"
        );
        assert_eq!(words(404, "<Code>NoSuchKey</Code>"), None);
        assert!(words(404, "<Code>NoSuchBucket</Code>").is_some());
        assert_eq!(words(206, "bytes"), None);
    }
}
