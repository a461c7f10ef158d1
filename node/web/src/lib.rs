//! Web pages over the admin API: each page is a set of GET requests and a template for the
//! responses. See `DESIGN.md`.

mod ask;
mod charts;
mod frame;
mod login;
mod pages;
mod parts;
mod target;
mod words;

pub use ask::{Ask, Need, Read, Refusal};
pub use login::login;

use ask::{Failure, Questions};
use frame::{Frame, View};
use maud::html;
use target::{PageAddress, Partition};

/// Maximum length of a path with its query, in bytes.
const TARGET_BYTES_MAX: usize = 4096;
/// Path of the style sheet.
pub const STYLE_PATH: &str = "/web/style.css";
/// Partition of the links on pages without a partition.
const DEFAULT: &str = "default";

/// Headers of each page. With them, a page neither loads from nor sends to other origins, and
/// cannot be embedded in other pages.
pub const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; base-uri 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    // With `no-referrer`, browsers send forms without Origin.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// A page, or the style sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// HTTP status, passed on from the API if it returned an error.
    pub status: u16,
    /// Value of the header `content-type`.
    pub content_type: &'static str,
    /// Value of the header `cache-control`.
    pub cache_control: &'static str,
    /// UTF-8, at most 150 kB.
    pub body: String,
}

impl Page {
    fn html(status: u16, body: String) -> Self {
        Self {
            status,
            content_type: "text/html; charset=utf-8",
            cache_control: "no-store",
            body,
        }
    }
}

/// The style sheet of all pages.
pub fn style() -> Page {
    Page {
        status: 200,
        content_type: "text/css; charset=utf-8",
        cache_control: "max-age=300",
        body: include_str!("style.css").to_owned(),
    }
}

/// Renders the page at a path below `/web`, given with its undecoded query.
pub async fn respond(target: &str, api: &dyn Ask) -> Page {
    let read = PageAddress::parse(target).filter(|_| target.len() <= TARGET_BYTES_MAX);
    let is_local = read.as_ref().is_some_and(PageAddress::is_local);
    let mut questions = Questions::new(api, is_local);
    let partition = partition_of(read.as_ref());
    let shown = match &read {
        Some(read) => pages::show(&mut questions, read, &partition).await,
        None => Err(Failure {
            status: 414,
            message: format!("The address exceeds {TARGET_BYTES_MAX} bytes."),
        }),
    };
    let (status, view) = match shown {
        Ok(view) => (200, view),
        Err(failure) => (failure.status, failed(&failure, target, is_local)),
    };
    let frame = Frame {
        partition: Some(&partition),
        asked: &questions.asked,
        is_local,
        user: api.user(),
    };
    Page::html(status, frame.page_of(&view))
}

/// The partition of a page. A valid name is shorter than the limit of [`words::cut`].
fn partition_of(target: Option<&PageAddress>) -> Partition {
    match target.map(|target| target.segments.as_slice()) {
        Some([place, name, ..]) if place == "placement" => Partition(words::cut(name)),
        _ => Partition(DEFAULT.to_owned()),
    }
}

fn failed(failure: &Failure, target: &str, is_local: bool) -> View {
    let separator = if target.contains('?') { '&' } else { '?' };
    // If there is no leader, the local state may still be available.
    let may_help = failure.status == 503 && !is_local;
    View {
        title: format!("Request failed ({})", failure.status),
        body: html! {
            p { (words::cut(&failure.message)) }
            @if may_help {
                p { a href=(format!("{target}{separator}local=true")) { "Show the local state of the node, without a quorum" } }
            }
        },
        commands: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
