//! Declares the settings of `[backup_s3]`.

use std::path::PathBuf;

use placement_base::settings::{Invalid, settings};

settings! {
    /// Copies of the backups in an S3 bucket. The credentials are `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and optionally `AWS_SESSION_TOKEN` in the environment, or in a file;
    /// they cannot be set in the configuration.
    BackupS3Section {
        /// Bucket of an S3 store (Ceph's RGW, MinIO, AWS) to which `[backup] directory` is copied,
        /// as `BUCKET` or `BUCKET/PATH`. Each cluster and node has a path of its own below it. The
        /// bucket must exist. Empty: nothing is copied.
        bucket: String = String::new(),
        /// URL of the store, e.g. `https://rgw.example:7480`. Empty: AWS, in `region`. With `http:`
        /// anyone on the network path can read the backups.
        endpoint: String = String::new(),
        /// Region for which requests are signed. Most stores accept the default.
        region: String = "us-east-1".to_owned(),
        /// PEM file with the certificate authorities that may sign the store's certificate; unset:
        /// the authorities that this machine trusts.
        ca_file: Option<PathBuf> = None,
        /// File with `aws_access_key_id = …` and `aws_secret_access_key = …` in the format of AWS's
        /// tools; unset: credentials from the environment.
        credentials_file: Option<PathBuf> = None,
    }
}

impl BackupS3Section {
    /// Whether copies are made.
    pub fn is_used(&self) -> bool {
        !self.bucket.is_empty()
    }

    /// The bucket, and the path of the copies in it.
    pub(super) fn place(&self) -> (&str, &str) {
        self.bucket.split_once('/').unwrap_or((&self.bucket, ""))
    }

    /// Whether transfers are not encrypted.
    pub(crate) fn is_plain(&self) -> bool {
        self.endpoint.starts_with("http://")
    }

    /// # Errors
    /// A setting is invalid.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_part = |part: &str| !part.is_empty() && part.chars().all(is_name);
        if !self.bucket.split('/').all(is_part) {
            let message = "must be BUCKET or BUCKET/PATH, each part of letters, digits and -._";
            return Err(Invalid::new("backup_s3.bucket", message));
        }
        let endpoint = self.endpoint.as_str();
        let is_url = endpoint.is_empty()
            || (endpoint.starts_with("https://") || self.is_plain())
                && endpoint
                    .parse::<::http::Uri>()
                    .is_ok_and(|url| url.path() == "/");
        if !is_url || endpoint.contains('@') {
            let message = "must have the form https://HOST or https://HOST:PORT, without a path";
            return Err(Invalid::new("backup_s3.endpoint", message));
        }
        Ok(())
    }
}
