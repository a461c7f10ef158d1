//! The collector of spans, which receives OTLP over HTTP, with protobuf.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use http_body_util::Full;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
use prost::Message;

use super::TraceSection;
use placement_base::log_messages::log;
use placement_base::net::TokioNet;
use placement_outgoing::Outgoing;

/// Deadline of a batch.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Longest accepted response, in bytes.
const ANSWER_MAX_BYTES: usize = 64 * 1024;

/// A collector of traces.
pub(super) struct Collector {
    outgoing: Outgoing,
    uri: Uri,
    headers: HeaderMap,
    /// Whether the collector accepted the last batch.
    takes: bool,
}

impl Collector {
    /// Opens the client, without sending anything; `None`: no collector is configured.
    pub(super) fn open(settings: &TraceSection) -> anyhow::Result<Option<Self>> {
        let Some(uri) = settings.uri() else {
            return Ok(None);
        };
        let tls = (uri.scheme() == Some(&Scheme::HTTPS))
            .then(|| placement_outgoing::tls(None))
            .transpose()
            .map_err(anyhow::Error::msg)
            .context("trace.otlp_endpoint")?;
        let headers = settings.headers_file.as_deref().map(read_headers);
        Ok(Some(Self {
            outgoing: Outgoing::new(Arc::new(TokioNet), tls, ANSWER_MAX, ANSWER_MAX_BYTES),
            uri,
            headers: headers.transpose()?.unwrap_or_default(),
            takes: true,
        }))
    }

    /// Sends spans, once. Returns whether the collector accepted them.
    pub(super) async fn take(&mut self, resource_spans: Vec<ResourceSpans>) -> bool {
        let refused = self.post(resource_spans).await.err();
        // Log only when the collector begins or stops accepting spans; the metric counts all
        // dropped spans.
        match &refused {
            Some(reason) if self.takes => {
                log!(
                    SPANS_DROPPED,
                    %reason,
                    "dropping spans: the collector does not accept them"
                );
            }
            None if !self.takes => log!(SPANS_ACCEPTED, "the collector accepts spans again"),
            _ => {}
        }
        self.takes = refused.is_none();
        self.takes
    }

    async fn post(&self, resource_spans: Vec<ResourceSpans>) -> anyhow::Result<()> {
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let mut request = Request::post(&self.uri)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::<Bytes>::from(body))
            .expect("the URL was parsed, and the header is a constant");
        request.headers_mut().extend(self.headers.clone());
        let status = self.outgoing.request(request).await?.status();
        ensure!(status.is_success(), "it answered {status}");
        Ok(())
    }
}

/// Parses lines `NAME: VALUE`.
fn read_headers(file: &Path) -> anyhow::Result<HeaderMap> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("trace.headers_file: {name}"))?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value.trim()).ok()?))
    };
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            // The error omits the line itself, which may contain a secret.
            let wrong = || format!("trace.headers_file: {name}, line {number}: not `NAME: VALUE`");
            header(line).with_context(wrong)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<HeaderMap> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read_headers(file.path())
    }

    #[test]
    fn each_line_of_the_file_is_a_header() {
        let found = read("Authorization: Bearer a:b\n\nX-Scope-OrgID:cloud\n").unwrap();
        assert_eq!(found["authorization"], "Bearer a:b");
        assert_eq!(found["x-scope-orgid"], "cloud");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn malformed_line_is_refused_and_not_shown() {
        for text in ["a: b\nhidden", "a: b\nhid den: c", "a: b\nhidden: \u{1}"] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains("line 2: not `NAME: VALUE`"), "{error}");
            assert!(!error.contains("hid"), "{error}");
        }
    }
}
