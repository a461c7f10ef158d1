//! Errors of an object store, as text. Its responses may contain parts of the request, so only code
//! and message are shown.

use std::error::Error;

use http::StatusCode;

/// Maximum number of characters shown of a store's message.
const MESSAGE_CHARS: usize = 200;

/// An operation on a bucket failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BucketError(pub(crate) String);

impl From<object_store::Error> for BucketError {
    fn from(error: object_store::Error) -> Self {
        // The outer errors also contain the request.
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

/// Returns the error in a response; `None` for success and for a missing object.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> Option<BucketError> {
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
    let words = match (status.as_u16(), code.as_str()) {
        (_, "NoSuchBucket") => "the bucket does not exist",
        (404 | 412, _) => return None,
        (_, "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "NotSignedUp") | (401, _) => {
            "it rejects the credentials"
        }
        (_, "RequestTimeTooSkewed") => "its clock differs from this machine's",
        (403, _) => "it does not permit this with these credentials",
        (301 | 307 | 308, _) => "the bucket is in another region, or at another endpoint",
        _ => {
            let message = between("Message").unwrap_or_default();
            return Some(BucketError(format!(
                "it answers {status} {code}: {message}"
            )));
        }
    };
    Some(BucketError(format!("{words} ({} {code})", status.as_u16())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_a_store_do_not_repeat_the_request() {
        let words = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            refusal(status, body.as_bytes()).map(|refused| refused.to_string())
        };
        let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>m</Message>\
                    <StringToSign>secret</StringToSign></Error>";
        assert_eq!(
            words(403, body).unwrap(),
            "it rejects the credentials (403 SignatureDoesNotMatch)"
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
