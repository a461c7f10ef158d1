//! One HTTP request over the simulated network.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use placement_witness::http;

use crate::history::End;
use crate::operation::Request;

/// REST API port of every simulated node.
pub const API_PORT: u16 = 8778;
/// REST API port of the neighbour partition.
pub(crate) const NEIGHBOUR_PORT: u16 = 18778;

/// Host name of a node in the simulated network.
pub fn node_name(node: u64) -> String {
    format!("node{node}")
}

/// Sends a request to a node on a new connection and waits for the answer.
pub async fn call(node: u64, request: &Request, patience: Duration) -> End {
    call_at(API_PORT, node, request, patience).await
}

/// Like [`call`], to another port.
pub(crate) async fn call_at(port: u16, node: u64, request: &Request, patience: Duration) -> End {
    let connect = turmoil::net::TcpStream::connect((node_name(node), port));
    http::ask(connect, request, patience).await
}

/// Like [`call`], for a request that is already built.
///
/// # Errors
/// How the request ended without an answer.
pub async fn send(
    node: u64,
    request: ::http::Request<Full<Bytes>>,
    patience: Duration,
) -> Result<::http::Response<Bytes>, End> {
    let address = (node_name(node), API_PORT);
    let connect = turmoil::net::TcpStream::connect(address);
    http::send(connect, request, patience).await
}

/// Sends a request and returns the answer's body as a stream, with its connection.
///
/// # Errors
/// How the request ended without an answer.
pub(crate) async fn open(
    node: u64,
    request: ::http::Request<Full<Bytes>>,
    patience: Duration,
) -> Result<(::http::Response<Incoming>, http::Connection), End> {
    let address = (node_name(node), API_PORT);
    let connect = turmoil::net::TcpStream::connect(address);
    http::open(connect, request, patience).await
}
