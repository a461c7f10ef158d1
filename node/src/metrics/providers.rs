//! `/metrics/providers`: each inventory, under the names of openstack-exporter, so that dashboards
//! made for them continue to work. Source: openstack-exporter, exporter `placement`.

use std::fmt::Write;
use std::io;
use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::SinkExt;
use futures::channel::mpsc;
use placement_base::backend::SharedState;
use placement_base::runtime;
use placement_model::state::tree::{Node, Stock};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

/// Deadline for a client to read the response.
const DEADLINE: Duration = Duration::from_secs(60);
/// Providers per piece of the response.
const PIECE_PROVIDERS: usize = 256;

type Family = (&'static str, &'static str, fn(&Stock) -> f64);

const FAMILIES: [Family; 4] = [
    ("total", "Units that exist", |of| of.inventory.total.into()),
    ("reserved", "Reserved units", |of| {
        of.inventory.reserved.into()
    }),
    ("allocation_ratio", "Overcommit", |of| {
        of.inventory.allocation_ratio
    }),
    ("usage", "Allocated units", |of| of.used as f64),
];

/// How often the named queries fit, under the name that StackHPC's exporter gives to this number.
pub(super) fn free_by_flavor<'a>(fits: impl Iterator<Item = (&'a str, u64)>) -> String {
    let name = "openstack_free_capacity_by_flavor_total";
    let mut text = format!("# HELP {name} How often a flavor fits\n# TYPE {name} gauge\n");
    for (flavor, count) in fits {
        let flavor = escaped(flavor);
        writeln!(text, "{name}{{flavor_name=\"{flavor}\"}} {count}")
            .expect("writing to a string does not fail");
    }
    text
}

/// A value of a label.
fn escaped(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', r#"\""#)
        .replace('\n', r"\n")
}

/// The text, after `first`; its pieces are created on demand. A slow client keeps an old state in
/// memory, so after [`DEADLINE`] the text ends with an error and the lock `turn` is released.
pub(crate) fn text(first: String, state: SharedState, turn: OwnedMutexGuard<()>) -> Body {
    let (mut sender, receiver) = mpsc::channel(0);
    drop(runtime::spawn(async move {
        let pieces = once(first).chain(pieces(state));
        let all = async {
            for piece in pieces {
                sender.send(Ok(piece)).await?;
            }
            Ok::<_, mpsc::SendError>(())
        };
        let ended = timeout(DEADLINE, all).await;
        drop(turn);
        if ended.is_err() {
            // Without an error the client would take the partial response for a complete one.
            drop(
                sender
                    .send(Err(io::Error::from(io::ErrorKind::TimedOut)))
                    .await,
            );
        }
    }));
    Body::from_stream(receiver)
}

fn pieces(state: SharedState) -> impl Iterator<Item = String> {
    let nodes: Arc<[Arc<Node>]> = state
        .trees()
        .flat_map(|(_, tree)| tree.nodes.clone())
        .collect();
    FAMILIES.into_iter().flat_map(move |(name, help, value)| {
        let name = format!("openstack_placement_resource_{name}");
        let head = format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
        let (state, nodes) = (state.clone(), nodes.clone());
        let pieces = (0..nodes.len()).step_by(PIECE_PROVIDERS).map(move |from| {
            let to = nodes.len().min(from + PIECE_PROVIDERS);
            samples(&name, value, &state, &nodes[from..to])
        });
        once(head).chain(pieces)
    })
}

fn samples(
    name: &str,
    value: fn(&Stock) -> f64,
    state: &SharedState,
    nodes: &[Arc<Node>],
) -> String {
    let mut text = String::new();
    for node in nodes {
        let host = escaped(node.name.as_str());
        for stock in &node.inventories {
            let class = state.resource_class_name(stock.class);
            let value = value(stock);
            writeln!(
                text,
                "{name}{{hostname=\"{host}\",resourcetype=\"{class}\"}} {value}"
            )
            .expect("writing to a string does not fail");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use placement_model::Cluster;
    use tokio::sync::Mutex;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn client_that_stops_reading_keeps_neither_its_turn_nor_a_state() {
        let cluster = Arc::new(Cluster::default());
        let turns = Arc::new(Mutex::new(()));
        let state = SharedState::from(cluster.clone());
        let begun = Instant::now();
        let mut body = text(String::new(), state, turns.clone().lock_owned().await);
        assert!(body.frame().await.unwrap().is_ok());
        sleep(DEADLINE / 2).await;
        assert!(turns.try_lock().is_err());
        drop(turns.lock().await);
        assert_eq!(
            (begun.elapsed(), Arc::strong_count(&cluster)),
            (DEADLINE, 1)
        );
        let mut last = Ok(());
        while let Some(frame) = body.frame().await {
            last = frame.map(drop);
        }
        assert!(last.is_err(), "a part is no answer");
    }
}
