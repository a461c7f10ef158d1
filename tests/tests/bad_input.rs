//! Invalid HTTP closes its connection and does not affect the node.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use http::StatusCode;
use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;

/// Returns everything that a listener sends until it closes the connection. Panics if it does not
/// close the connection.
fn answer(address: &str, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(sent).unwrap();
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    // If the listener closes the connection before it has read all bytes, TCP resets it.
    if let Err(error) = ended
        && error.kind() != ErrorKind::ConnectionReset
    {
        panic!("{address} keeps the connection after {answer:?}: {error}");
    }
    answer
}

#[tokio::test]
async fn invalid_http_only_closes_its_connection() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let not_http: [(&[u8], &str); 5] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"),
        (b"GET\r\n\r\n", "400"),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (
            b"POST /traits HTTP/1.1\r\nhost: x\r\ncontent-length: hi mom\r\n\r\n",
            "400",
        ),
        // The head is valid, so it is answered before the body is found to be invalid.
        (
            b"POST /traits HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\n",
            "4",
        ),
    ];
    for (garbage, status) in not_http {
        let sent = String::from_utf8_lossy(garbage);
        for http in [cluster.place(1).api(), cluster.place(1).admin()] {
            let answer = answer(&http, garbage);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{http} answers {answer:?} to {sent:?}"
            );
        }
        let answer = answer(&cluster.place(1).peer(), garbage);
        let is_request = garbage.starts_with(b"GET ") || garbage.starts_with(b"POST ");
        assert_eq!(answer.starts_with("HTTP/1.1 "), is_request, "to {sent:?}");
        assert_eq!(answer.is_empty(), !is_request, "to {sent:?}");
    }
    assert!(cluster.runs(1));
    let response = cluster
        .client_of(1)
        .request(ApiRequest::get("/"))
        .await
        .unwrap();
    assert_eq!(response.status, StatusCode::OK);
    let log = cluster.log(1, 10_000);
    assert!(!log.contains("panicked"), "{log}");
}
