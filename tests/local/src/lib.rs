//! Nodes of `placementd` as processes of this machine, and the sample cloud: what `run-cluster` and
//! the black-box tests have in common. A crate of its own, so that the first cluster does not wait
//! for what only tests need.

pub mod authority;
pub mod binaries;
pub mod layout;
pub mod node_process;
pub mod ports;
pub mod private;
pub mod sample;

use std::process::ExitCode;
use std::time::Duration;

use http::StatusCode;
use placement_client::{ApiRequest, Client};

use crate::layout::NodePlace;

/// What a tool's `main` returns: an error is printed with its causes, and without the backtrace
/// that `RUST_BACKTRACE` adds to an error that `main` itself returns.
pub fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Whether a node says that it is ready.
pub async fn is_ready(place: &NodePlace) -> bool {
    says_ready(Client::new([place.api_url()]).expect("places are endpoints")).await
}

/// How long the answer may take: on a busy machine longer than the seconds in which a node looks
/// for its leader.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// Whether the node that a client asks says that it is ready.
pub async fn says_ready(client: Client) -> bool {
    client
        .with_attempt_timeout(READY_LIMIT)
        .request_once(ApiRequest::get("/readyz"))
        .await
        .is_ok_and(|response| response.status == StatusCode::OK)
}
