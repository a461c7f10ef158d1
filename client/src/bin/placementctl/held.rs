//! All consumers, and sums of what they hold.

use std::collections::BTreeMap;

use placement_client::Error;
use serde_json::Value;

use crate::content::{Content, EXTENSIONS, filtered};
use crate::render::{list, pairs};

/// Amounts by class.
pub(crate) type Amounts = BTreeMap<String, u64>;

/// Gives the consumers that fit the filters to `take`, page by page, until that says no.
pub(crate) async fn each(
    content: &Content,
    filters: &Value,
    mut take: impl FnMut(Value) -> bool,
) -> Result<(), Error> {
    let request = filtered(&format!("{EXTENSIONS}/consumers?limit=1000"), filters);
    let mut marker = String::new();
    loop {
        let page = match marker.as_str() {
            "" => request.clone(),
            marker => request.clone().query("marker", marker),
        };
        let answer = content.ask(page).await?;
        let mut consumers = list(&answer["consumers"]).iter();
        let all_taken = consumers.all(|one| take(one.clone()));
        // A page may be empty. One that leads back would have no end.
        match answer["next"].as_str() {
            Some(next) if all_taken && next > &*marker => marker = next.to_owned(),
            _ => return Ok(()),
        }
    }
}

pub(crate) fn add(sum: &mut Amounts, amounts: &Value) {
    for (class, amount) in pairs(amounts) {
        let sum = sum.entry(class.clone()).or_default();
        *sum = sum.saturating_add(amount.as_u64().unwrap_or_default());
    }
}
