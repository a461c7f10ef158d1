//! Traces: spans of requests, exported to a collector by OTLP over HTTP.
//!
//! An ended span is put into a queue, and a task sends the queued spans. If the collector is
//! unreachable, too slow or rejects spans, they are dropped and counted, and requests are answered
//! as before.

mod collector;
mod settings;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Sampler, SdkTracer, SdkTracerProvider, Span, SpanData, SpanProcessor,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::DynFilterFn;
use tracing_subscriber::registry::LookupSpan;

use self::collector::Collector;
pub(crate) use self::settings::TraceSection;
use crate::version::VERSION;
use placement_base::log_messages::log;
use placement_base::trace;

/// Maximum number of queued spans: some 5 MB.
const QUEUE_MAX_SPANS: usize = 8192;
/// Maximum number of spans per batch.
const BATCH_MAX_SPANS: usize = 1024;
/// How long spans are gathered before they are sent.
const GATHER: Duration = Duration::from_millis(500);
/// Maximum time that the ending process waits for the last spans to be sent.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Number of spans dropped since this process started.
pub(crate) static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The queue of ended spans.
#[derive(Debug)]
struct Queue(mpsc::Sender<SpanData>);

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.0.try_send(span).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Exports `tracing` spans that belong to a traced request ([`placement_base::trace`]). Events are
/// not exported: their texts are for the log.
pub(crate) fn layer<S>(tracer: SdkTracer) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn is_ours(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("placement_")
    }
    let traced = || Context::map_current(|here| here.span().span_context().is_sampled());
    let filter = DynFilterFn::new(move |metadata, _| is_ours(metadata) && traced())
        .with_callsite_filter(|metadata| {
            if is_ours(metadata) {
                Interest::sometimes()
            } else {
                Interest::never()
            }
        })
        .with_max_level_hint(LevelFilter::DEBUG);
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter)
}

/// The exporter of spans, before it is started.
pub(crate) struct Traces {
    pub(crate) tracer: SdkTracer,
    spans: mpsc::Receiver<SpanData>,
    ratio: f64,
    collector: Collector,
}

impl Traces {
    /// Opens the exporter, without sending anything; `None`: tracing is off.
    pub(crate) fn open(settings: &TraceSection) -> anyhow::Result<Option<Self>> {
        let Some(collector) = Collector::open(settings)? else {
            return Ok(None);
        };
        let (queue, spans) = mpsc::channel(QUEUE_MAX_SPANS);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(Resource::builder_empty().build())
            .with_span_processor(Queue(queue))
            .build();
        Ok(Some(Self {
            tracer: provider.tracer("placementd"),
            spans,
            ratio: settings.ratio,
            collector,
        }))
    }

    /// Begins to trace requests, and sends their spans with the attributes of this node.
    pub(crate) fn start(self, node: u64, runtime: &Handle) -> SpanExport {
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", "placementd"),
            KeyValue::new("service.version", VERSION),
            KeyValue::new("service.instance.id", node.to_string()),
        ]);
        let resource = ResourceAttributesWithSchema::from(&resource.build());
        trace::begin(self.ratio);
        let stop = CancellationToken::new();
        let task = runtime.spawn(send(self.spans, self.collector, resource, stop.clone()));
        SpanExport { stop, task }
    }
}

/// The task that sends spans.
pub(crate) struct SpanExport {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl SpanExport {
    /// Sends the queued spans, for at most two seconds.
    pub(crate) async fn finish(self) {
        self.stop.cancel();
        if timeout(FLUSH_MAX, self.task).await.is_err() {
            log!(
                SPANS_DROPPED,
                "the last spans were not sent: the collector is too slow"
            );
        }
    }
}

async fn send(
    mut spans: mpsc::Receiver<SpanData>,
    mut collector: Collector,
    resource: ResourceAttributesWithSchema,
    stop: CancellationToken,
) {
    loop {
        let is_last = timeout(GATHER, stop.cancelled()).await.is_ok();
        loop {
            let waiting = std::iter::from_fn(|| spans.try_recv().ok());
            let batch: Vec<_> = waiting.take(BATCH_MAX_SPANS).collect();
            if batch.is_empty() {
                break;
            }
            let count = batch.len() as u64;
            let spans = group_spans_by_resource_and_scope(batch, &resource);
            if !collector.take(spans).await {
                DROPPED.fetch_add(count, Ordering::Relaxed);
            }
        }
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{Span, Tracer};

    use super::*;

    #[test]
    fn spans_beyond_the_queue_are_dropped_and_counted() {
        let settings = TraceSection {
            otlp_endpoint: "http://127.0.0.1:4318".to_owned(),
            ..TraceSection::default()
        };
        let traces = Traces::open(&settings).unwrap().unwrap();
        let before = DROPPED.load(Ordering::Relaxed);
        for _ in 0..QUEUE_MAX_SPANS + 3 {
            traces.tracer.start("request").end();
        }
        assert_eq!(DROPPED.load(Ordering::Relaxed) - before, 3);
        assert_eq!(traces.spans.len(), QUEUE_MAX_SPANS);
    }

    #[test]
    fn nothing_is_traced_without_a_collector() {
        let settings = TraceSection::default();
        assert!(Traces::open(&settings).unwrap().is_none());
    }
}
