//! Reads and replaces the limits of a partition.

use placement_client::{ApiRequest, Error};
use placement_wire::limits::{Limits, LimitsWritten};

use crate::content::{Content, EXTENSIONS};

/// The limits of all projects.
pub(crate) async fn read(content: &Content) -> Result<Limits<'static>, Error> {
    content.get(&format!("{EXTENSIONS}/limits")).await
}

/// Replaces the limits, unless they have another generation by now. Returns the new generation.
pub(crate) async fn write(content: &Content, limits: &Limits<'_>) -> Result<i64, Error> {
    let request = ApiRequest::put(&format!("{EXTENSIONS}/limits")).json(limits);
    let written: LimitsWritten = content.ask(request).await?;
    Ok(written.generation)
}
