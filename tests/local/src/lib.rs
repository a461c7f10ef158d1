//! Runs nodes of `placementd` as processes of this machine and loads the sample cloud, for
//! `run-cluster` and for the black-box tests. A separate crate, so that a first `run-cluster` does
//! not build what only tests need.

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

/// What a tool's `main` returns. An error is printed with its causes, but without the backtrace
/// that `RUST_BACKTRACE` would add.
pub fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Whether a node reports that it is ready.
pub async fn is_ready(place: &NodePlace) -> bool {
    says_ready(Client::new([place.api_url()]).expect("places are endpoints")).await
}

/// Limit of a readiness check: on a busy machine the answer takes longer than the seconds in which
/// a node looks for its leader.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// Whether the node behind this client reports that it is ready.
pub async fn says_ready(client: Client) -> bool {
    client
        .with_attempt_timeout(READY_LIMIT)
        .request_once(ApiRequest::get("/readyz"))
        .await
        .is_ok_and(|response| response.status == StatusCode::OK)
}
