//! The node's credentials for the bucket, from the environment or a file.

use std::fs;
use std::path::Path;

use object_store::aws::AwsCredential;

use super::error::BucketError;

const KEY_ID: &str = "aws_access_key_id";
const SECRET: &str = "aws_secret_access_key";
const TOKEN: &str = "aws_session_token";

/// Reads the credentials from a file in AWS's format, section `[default]`; without a file, from the
/// environment.
pub(super) fn read(file: Option<&Path>) -> Result<AwsCredential, BucketError> {
    let place = file.map_or("the environment".into(), Path::to_string_lossy);
    let text = file
        .map(fs::read_to_string)
        .transpose()
        .map_err(|error| BucketError(format!("{place}: {error}")))?;
    let take = |key: &str| {
        let found = match &text {
            Some(text) => in_file(text, key),
            None => std::env::var(key.to_uppercase()).ok(),
        };
        found.filter(|word| !word.is_empty())
    };
    let (Some(key_id), Some(secret_key)) = (take(KEY_ID), take(SECRET)) else {
        let names = [KEY_ID, SECRET].map(|key| match file {
            Some(_) => key.to_owned(),
            None => key.to_uppercase(),
        });
        return Err(BucketError(format!(
            "credentials are missing: {place} must contain {}",
            names.join(" and ")
        )));
    };
    Ok(AwsCredential {
        key_id,
        secret_key,
        token: take(TOKEN),
    })
}

fn in_file(text: &str, key: &str) -> Option<String> {
    let mut found = None;
    let mut is_ours = true;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_ours = line == "[default]";
        } else if let Some((name, value)) = line.split_once('=')
            && is_ours
            && name.trim().eq_ignore_ascii_case(key)
        {
            found = Some(value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<AwsCredential, BucketError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(Some(file.path()))
    }

    #[test]
    fn default_section_of_a_file_is_read() {
        let text = "# ours\n[other]\naws_access_key_id = no\n[default]\n\
                    aws_access_key_id = id\naws_secret_access_key=a=b/c \n";
        let found = read_text(text).unwrap();
        assert_eq!(
            (found.key_id.as_str(), found.secret_key.as_str()),
            ("id", "a=b/c")
        );
        assert_eq!(found.token, None);
    }

    #[test]
    fn missing_keys_are_named_without_revealing_others() {
        let error = read_text("aws_secret_access_key = hidden").unwrap_err();
        let words = error.to_string();
        assert!(words.contains("aws_access_key_id"), "{words}");
        assert!(!words.contains("hidden"), "{words}");
    }
}
