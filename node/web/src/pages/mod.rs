//! The pages, one file each.

mod candidates;
mod capacity;
mod consumer;
mod explanation;
mod listing;
mod lists;
mod overview;
mod provider;
mod providers;
mod refuge;
mod searches;
mod topology;

use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::target::{PageAddress, Partition};
use crate::words::command;

/// Renders the page of an address.
pub(crate) async fn show(
    questions: &mut Questions<'_>,
    target: &PageAddress,
    partition: &Partition,
) -> Result<View, Failure> {
    let segments: Vec<&str> = target.segments.iter().map(String::as_str).collect();
    let content = match segments.as_slice() {
        [] => return overview::show(questions).await,
        ["topology"] => return topology::show(questions).await,
        ["placement", name, content @ ..] if *name == partition.0 => content,
        _ => return Err(Failure::not_found("Page not found.")),
    };
    let of = Content { partition, target };
    match content {
        [] | ["capacity"] => capacity::show(questions, &of).await,
        ["providers"] => providers::show(questions, &of).await,
        ["providers", uuid] => provider::show(questions, &of, uuid).await,
        ["consumers"] => lists::CONSUMERS.show(questions, &of).await,
        ["consumers", uuid] => consumer::show(questions, &of, uuid).await,
        ["candidates"] => candidates::show(questions, &of).await,
        ["refuge"] => refuge::show(questions, &of).await,
        ["searches"] => searches::show(questions, &of).await,
        ["history"] => lists::HISTORY.show(questions, &of).await,
        _ => Err(Failure::not_found("Page not found.")),
    }
}

/// Partition and address of a page.
pub(crate) struct Content<'a> {
    pub(crate) partition: &'a Partition,
    pub(crate) target: &'a PageAddress,
}

impl Content<'_> {
    /// A command for this partition.
    pub(crate) fn command(&self, words: &str, options: &[(&str, &str)]) -> String {
        let partition = match self.partition.0.as_str() {
            "default" => "",
            name => name,
        };
        let all = [options, &[("--partition", partition)]].concat();
        let local = if self.target.is_local() {
            " --local"
        } else {
            ""
        };
        command(words, &all) + local
    }
}
