//! Decides which requests are traced, and propagates traces between nodes.
//!
//! The decision is made before the first span of a request and stored as OpenTelemetry's current
//! context. Only spans that are created in a sampled context are exported (`traces.rs` of the
//! node). The exporting layer makes each span the context of its children.

use std::sync::OnceLock;

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;

use crate::backend::uuid_of_request;

/// W3C Trace Context, 3.2.
const TRACEPARENT: &str = "traceparent";

/// Ratio of requests to trace, from 0 to 1, if the caller makes no sampling decision. If it is
/// unset, no request is traced.
static RATIO: OnceLock<f64> = OnceLock::new();

/// Enables tracing of requests, in a process that exports spans.
pub fn begin(ratio: f64) {
    // A second call comes from another exporter of the same process; the first ratio stays.
    let _ = RATIO.set(ratio);
}

/// The context of a request's trace; `None` if the request is not traced. If the caller makes no
/// sampling decision, `request_id` decides.
pub fn request_context(headers: &HeaderMap, request_id: &str) -> Option<Context> {
    let ratio = *RATIO.get()?;
    let mut given = headers.get_all(TRACEPARENT).iter();
    let first = given.next();
    // Several headers, or a malformed one, are ignored.
    let parent = first.filter(|_| given.next().is_none());
    let parent = parent.and_then(|parent| parse(parent.to_str().ok()?));
    // Without a parent, the request starts a new trace.
    let none = (TraceId::INVALID, SpanId::INVALID);
    sampled(parent.unwrap_or_else(|| remote(none, u8::from(drawn(request_id) < ratio))))
}

/// The context of a trace that another node or task has sent as a `traceparent`; `None` if it is
/// not sampled.
pub fn continued(traceparent: Option<&str>) -> Option<Context> {
    RATIO.get()?;
    sampled(parse(traceparent?)?)
}

/// Creates a span in this context; `None` uses the thread's current one.
pub fn span_in(context: Option<Context>, make: impl FnOnce() -> Span) -> Span {
    let _within = context.map(Context::attach);
    make()
}

/// The current span as a `traceparent`, if it is exported.
pub fn traceparent() -> Option<String> {
    current_span(|here| format!("00-{}-{}-01", here.trace_id(), here.span_id()))
}

/// The trace id of the current span, if it is exported.
pub fn id() -> Option<String> {
    current_span(|here| here.trace_id().to_string())
}

fn current_span<T>(read: impl FnOnce(&SpanContext) -> T) -> Option<T> {
    RATIO.get()?;
    Context::map_current(|context| {
        let span = context.span();
        let here = span.span_context();
        (here.is_sampled() && here.is_valid()).then(|| read(here))
    })
}

fn sampled(parent: SpanContext) -> Option<Context> {
    let context = || Context::new().with_remote_span_context(parent.clone());
    parent.is_sampled().then(context)
}

/// A number from 0 to below 1, drawn from the random UUID.
fn drawn(request_id: &str) -> f64 {
    let low = uuid_of_request(request_id).map_or(0, |id| id.as_u128() as u32);
    f64::from(low) / (f64::from(u32::MAX) + 1.0)
}

/// Parses a `traceparent`. Vendor state (`tracestate`) is ignored.
fn parse(text: &str) -> Option<SpanContext> {
    let is_hex = |field: &&str| {
        let mut digits = field.bytes();
        digits.all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut fields = text.splitn(5, '-');
    let mut field = |length| {
        fields
            .next()
            .filter(|field| field.len() == length && is_hex(field))
    };
    let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
    // Later versions may have more fields.
    if version == "ff" || version == "00" && fields.next().is_some() {
        return None;
    }
    let ids = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let parent = remote(ids, u8::from_str_radix(flags, 16).ok()?);
    parent.is_valid().then_some(parent)
}

fn remote((trace, span): (TraceId, SpanId), flags: u8) -> SpanContext {
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    SpanContext::new(trace, span, flags, true, TraceState::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0e1902b7";

    #[test]
    fn well_formed_parent_is_read() {
        for (version, flags, rest) in [
            ("00", "01", ""),
            ("00", "ff", ""),
            ("01", "03", ""),
            ("fe", "01", "-what-comes-later"),
        ] {
            let parent = parse(&format!("{version}-{TRACE}-{SPAN}-{flags}{rest}")).unwrap();
            assert_eq!(parent.trace_id().to_string(), TRACE);
            assert_eq!(parent.span_id().to_string(), SPAN);
            assert!(parent.is_sampled() && parent.is_remote());
        }
        let not_sampled = parse(&format!("00-{TRACE}-{SPAN}-02")).unwrap();
        assert!(!not_sampled.is_sampled());
    }

    #[test]
    fn malformed_parent_is_none() {
        let (zeros, upper) = ("0".repeat(32), TRACE.to_uppercase());
        for text in [
            String::new(),
            "-".repeat(1 << 16),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00-{TRACE}-{SPAN}-+1"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}-{SPAN}-01"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("00-{upper}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{TRACE}-+{}-01", &SPAN[1..]),
            format!(" 00-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01 "),
        ] {
            assert_eq!(parse(&text), None, "{text}");
        }
    }

    #[test]
    fn draw_follows_the_request_id() {
        assert_eq!(drawn("req-00000000-0000-4000-8000-000000000000"), 0.0);
        assert_eq!(drawn("req-00000000-0000-4000-8000-000080000000"), 0.5);
        assert!(drawn("req-ffffffff-ffff-4fff-bfff-ffffffffffff") < 1.0);
    }
}
