//! `placementctl api`: sends an arbitrary request to the REST API.

use std::path::PathBuf;

use clap::Args;
use http::Method;
use placement_client::ApiRequest;
use serde_json::Value;

use crate::content::Content;
use crate::files::read;
use crate::render::{Misuse, NO_ROWS};

#[derive(Args)]
pub(crate) struct ApiArgs {
    /// HTTP method of the request.
    #[arg(value_parser = ["GET", "PUT", "POST", "DELETE"])]
    method: String,
    /// Path and query of the request, without the prefix of the partition, such as
    /// `/traits?associated=true`.
    path: String,
    /// File with the JSON body of the request; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

pub(crate) async fn send(content: &Content, args: ApiArgs) -> anyhow::Result<String> {
    let path = &args.path;
    if !path.starts_with('/') {
        return Err(Misuse(format!("the path {path:?} must begin with a slash")).into());
    }
    let mut request = ApiRequest::new(Method::from_bytes(args.method.as_bytes())?, path);
    if let Some(file) = args.data {
        let body = read(&file)?;
        request = request
            .body(body)
            .header("content-type", "application/json");
    }
    let body = content.send(request).await?.body;
    // A response without a body, such as to DELETE, becomes null.
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut text = String::from_utf8_lossy(&body).trim_end().to_owned();
    text.extend((!text.is_empty()).then_some('\n'));
    content.source.output.report(&json, NO_ROWS, |_| text)
}
