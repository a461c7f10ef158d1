//! Claims two VCPUs and memory as a scheduler does: asks for candidates and claims the first
//! candidate that still has room.
//!
//!     cargo run --example claim -- http://127.0.0.1:8778 http://127.0.0.1:8779

use anyhow::bail;
use placement_client::{CandidateQuery, Client, Error};
use uuid::Uuid;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let nodes: Vec<String> = std::env::args().skip(1).collect();
    if nodes.is_empty() {
        bail!("expected the endpoints of nodes, such as http://127.0.0.1:8778");
    }
    let client = Client::new(nodes)?.with_token("admin");
    let query = CandidateQuery::resources(&[("VCPU", 2), ("MEMORY_MB", 1024)]).limit(10);
    let consumer = Uuid::new_v4();
    for candidate in client
        .allocation_candidates(&query)
        .await?
        .allocation_requests
    {
        let claim = candidate.claim("project", "user");
        match client.put_allocations(consumer, &claim).await {
            Ok(()) => {
                let held = client.allocations(consumer).await?;
                println!("consumer {consumer} has {:#?}", held.allocations);
                return Ok(client.delete_allocations(consumer).await?);
            }
            // A concurrent claim was faster: try the next candidate.
            Err(error) if error.is_conflict() => println!("{error}"),
            // The claim may be committed: read the consumer before you repeat the claim.
            Err(Error::OutcomeUnknown(reason)) => bail!("check consumer {consumer}: {reason}"),
            Err(error) => return Err(error.into()),
        }
    }
    bail!("no host has room")
}
