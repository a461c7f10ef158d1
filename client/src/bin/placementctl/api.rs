//! `placementctl api`: any request.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use http::Method;
use placement_client::ApiRequest;
use serde_json::Value;

use crate::content::Content;
use crate::files::read;

#[derive(Args)]
pub(crate) struct Which {
    /// The method.
    #[arg(value_parser = ["GET", "PUT", "POST", "DELETE"])]
    method: String,
    /// The path below the partition, with its query, such as `/traits?associated=true`.
    path: String,
    /// A file with a body in JSON; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

pub(crate) async fn send(content: &Content, which: Which) -> anyhow::Result<String> {
    let path = &which.path;
    ensure!(
        path.starts_with('/'),
        "the path {path:?} does not begin with a slash"
    );
    let mut request = ApiRequest::new(Method::from_bytes(which.method.as_bytes())?, path);
    if let Some(file) = which.data {
        let body = read(&file)?;
        request = request
            .body(body)
            .header("content-type", "application/json");
    }
    let body = content.send(request).await?.body;
    // An answer without a body, as to DELETE, is null.
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut text = String::from_utf8_lossy(&body).trim_end().to_owned();
    text.extend((!text.is_empty()).then_some('\n'));
    content.source.output.report(&json, None, |_| text)
}
