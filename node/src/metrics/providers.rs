//! `/metrics/providers`: each inventory, under the names that openstack-exporter has for it, so that dashboards made for
//! those go on. Source: openstack-exporter, exporter `placement`.

use std::convert::Infallible;
use std::fmt::Write;
use std::iter::once;
use std::sync::Arc;

use axum::body::Body;
use futures::stream;
use placement_api::backend::SharedState;
use placement_model::state::tree::{Node, Stock};

/// Providers whose series are made and sent at once.
const PIECE_PROVIDERS: usize = 256;

type Family = (&'static str, &'static str, fn(&Stock) -> f64);

const FAMILIES: [Family; 4] = [
    ("total", "Units that exist", |of| of.inventory.total.into()),
    ("reserved", "Units that are kept back", |of| {
        of.inventory.reserved.into()
    }),
    ("allocation_ratio", "Overcommit", |of| {
        of.inventory.allocation_ratio
    }),
    ("usage", "Allocated units", |of| of.used as f64),
];

/// The text, each piece of which is made when the one before it is sent.
pub(crate) fn text(state: SharedState) -> Body {
    let nodes = state.trees().flat_map(|(_, tree)| tree.nodes.clone());
    let nodes: Arc<[Arc<Node>]> = nodes.collect();
    let pieces = FAMILIES.into_iter().flat_map(move |family| {
        let (name, help, _) = family;
        let name = format!("openstack_placement_resource_{name}");
        let head = format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
        let (state, nodes) = (state.clone(), nodes.clone());
        let pieces = (0..nodes.len()).step_by(PIECE_PROVIDERS).map(move |from| {
            let to = nodes.len().min(from + PIECE_PROVIDERS);
            samples(&name, family.2, &state, &nodes[from..to])
        });
        once(head).chain(pieces)
    });
    Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>)))
}

fn samples(
    name: &str,
    value: fn(&Stock) -> f64,
    state: &SharedState,
    nodes: &[Arc<Node>],
) -> String {
    let mut text = String::new();
    for node in nodes {
        let host = node.name.as_str().replace('\\', r"\\");
        let host = host.replace('"', r#"\""#).replace('\n', r"\n");
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
