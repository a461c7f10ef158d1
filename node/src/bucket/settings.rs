//! `[backup_s3]`.

use std::path::PathBuf;

use placement_api::settings::{Invalid, settings};

settings! {
    /// Copies of these backups in a store that speaks S3. The credentials are `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and, if there is one, `AWS_SESSION_TOKEN` of the environment, or in
    /// a file; none of them is a setting.
    BackupS3Section {
        /// Bucket of a store that speaks S3 (Ceph's RGW, MinIO, AWS), into which what is in
        /// `[backup] directory` is copied, or `BUCKET/PATH`; each cluster and node has a path of
        /// its own below it. The bucket must exist. Empty: nothing is copied.
        bucket: String = String::new(),
        /// URL of the store, e.g. `https://rgw.example:7480`. Empty: AWS, in `region`. With `http:`
        /// everyone on the way can read the backups.
        endpoint: String = String::new(),
        /// Region that requests are signed for; the store says which, and most say this one.
        region: String = "us-east-1".to_owned(),
        /// PEM file with the authorities of the store's certificate; unset: those that this machine
        /// trusts.
        ca_file: Option<PathBuf> = None,
        /// File with `aws_access_key_id = …` and `aws_secret_access_key = …`, as AWS's tools have
        /// it; unset: the credentials are those of the environment.
        credentials_file: Option<PathBuf> = None,
    }
}

impl BackupS3Section {
    /// Whether copies are made.
    pub fn is_used(&self) -> bool {
        !self.bucket.is_empty()
    }

    /// The bucket, and the path below which the copies are.
    pub(super) fn place(&self) -> (&str, &str) {
        self.bucket.split_once('/').unwrap_or((&self.bucket, ""))
    }

    /// Whether what goes over can be read on the way.
    pub(crate) fn is_plain(&self) -> bool {
        self.endpoint.starts_with("http://")
    }

    /// # Errors
    /// They cannot be used.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_part = |part: &str| !part.is_empty() && part.chars().all(is_name);
        if !self.bucket.split('/').all(is_part) {
            let message = "must be BUCKET or BUCKET/PATH, of names of letters, digits and -._";
            return Err(Invalid::new("backup_s3.bucket", message));
        }
        let endpoint = self.endpoint.as_str();
        let is_url = endpoint.is_empty()
            || (endpoint.starts_with("https://") || self.is_plain())
                && endpoint
                    .parse::<::http::Uri>()
                    .is_ok_and(|url| url.path() == "/");
        if !is_url || endpoint.contains('@') {
            let message =
                "must be of the form https://HOST or https://HOST:PORT, with nothing behind it";
            return Err(Invalid::new("backup_s3.endpoint", message));
        }
        Ok(())
    }
}
