//! One HTTP request over the simulated network.

use std::time::Duration;

use placement_witness::http::ask;

use crate::history::End;
use crate::operation::Request;

/// Where every simulated node serves the REST API.
pub const API_PORT: u16 = 8778;

/// The name of a node in the simulated network.
pub fn node_name(node: u64) -> String {
    format!("node{node}")
}

/// Sends a request to a node, on a connection of its own, and waits for the answer.
pub async fn call(node: u64, request: &Request, patience: Duration) -> End {
    let address = (node_name(node), API_PORT);
    ask(turmoil::net::TcpStream::connect(address), request, patience).await
}
