//! Writes through one node and reads the write through another one, without asking the leader.
//!
//!     cargo run --example sessions -- http://127.0.0.1:8778 http://127.0.0.1:8779

use anyhow::Context;
use placement_client::{Client, Inventory, NewProvider};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let nodes: Vec<String> = std::env::args().skip(1).collect();
    let [one, other] = &nodes[..] else {
        anyhow::bail!("expected the endpoints of two nodes, such as http://127.0.0.1:8778");
    };
    // Clones share the session: a read through one clone sees the state of all earlier writes and
    // reads through any clone.
    let writer = Client::new([one])?.with_token("admin").with_session();
    let reader = writer.for_endpoint(other)?;

    let host = writer.create_provider(&NewProvider::named("host")).await?;
    let offered = [("VCPU", Inventory::with_total(16).ratio(4.0))];
    writer
        .replace_inventories(host.uuid, host.generation, offered)
        .await?;
    let token = writer.session_index().context("a write has an index")?;
    let found = reader.inventories(host.uuid).await?;
    println!("at {token:?}: {:#?}", found.inventories);
    Ok(writer.delete_provider(host.uuid).await?)
}
