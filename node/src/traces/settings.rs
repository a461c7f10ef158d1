//! Declares the settings of `[trace]`.

use std::path::PathBuf;

use http::Uri;

use placement_base::settings::{Invalid, settings};

settings! {
    /// Traces: spans of requests, sent to a collector by OTLP over HTTP.
    TraceSection {
        /// URL of the collector, e.g. `http://127.0.0.1:4318`; spans are posted to `/v1/traces`
        /// below it. An `https:` collector needs a certificate that this machine trusts. Empty:
        /// tracing is off.
        otlp_endpoint: String = String::new(),
        /// Fraction of the requests that are traced, from 0 to 1, unless the caller's `traceparent`
        /// decides.
        ratio: f64 = 0.01,
        /// File with headers for the collector, such as its token, one `NAME: VALUE` per line. It
        /// is read when the node starts.
        headers_file: Option<PathBuf> = None,
    }
}

impl TraceSection {
    /// # Errors
    /// A setting is invalid.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if !self.otlp_endpoint.is_empty() && self.uri().is_none() {
            let message = "must be of the form http://HOST:PORT or https://HOST:PORT";
            return Err(Invalid::new("trace.otlp_endpoint", message));
        }
        if (0.0..=1.0).contains(&self.ratio) {
            Ok(())
        } else {
            Err(Invalid::new("trace.ratio", "must be from 0 to 1"))
        }
    }

    /// The URL to which spans are posted.
    pub(super) fn uri(&self) -> Option<Uri> {
        let base = self.otlp_endpoint.trim_end_matches('/');
        let uri: Uri = format!("{base}/v1/traces").parse().ok()?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let has_host = (uri.authority()).is_some_and(|host| !host.as_str().contains('@'));
        (is_http && has_host && uri.query().is_none()).then_some(uri)
    }
}
