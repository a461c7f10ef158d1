//! The frame of each page: navigation, heading, commands.

use maud::{DOCTYPE, Markup, html};

use placement_wire::microversion::NEWEST_HEADER;

use crate::STYLE_PATH;
use crate::parts::RowBudget;
use crate::target::Partition;
use crate::words::{cut, quoted};

const LOCAL: &str = "-H 'Placement-Consistency: local'";
/// Maximum size of the commands on a page, in bytes.
const COMMANDS_BYTES: usize = 15 * 1024;
/// Pages of a partition and their names.
const PAGES: [(&str, &str); 7] = [
    ("capacity", "Capacity"),
    ("providers", "Providers"),
    ("consumers", "Consumers"),
    ("candidates", "Candidates"),
    ("searches", "Searches"),
    ("refuge", "Refuge"),
    ("history", "Changes"),
];

/// A page without its frame.
pub(crate) struct View {
    pub(crate) title: String,
    pub(crate) body: Markup,
    /// Equivalent commands of `placementctl` and `openstack`.
    pub(crate) commands: Vec<String>,
}

/// Parameters of the frame.
#[derive(Default)]
pub(crate) struct Frame<'a> {
    /// Partition of the links; `None`: no links, since the user must log in first.
    pub(crate) partition: Option<&'a Partition>,
    /// Requested API paths, in their order.
    pub(crate) asked: &'a [String],
    pub(crate) is_local: bool,
    /// Name of the logged-in user.
    pub(crate) user: Option<&'a str>,
}

impl Frame<'_> {
    /// The complete HTML page.
    pub(crate) fn page_of(&self, view: &View) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (view.title) " – placementd" }
                    link rel="stylesheet" href=(STYLE_PATH);
                }
                body {
                    a class="skip" href="#content" { "Skip to content" }
                    header {
                        @if let Some(partition) = self.partition { (navigation(partition)) }
                        @if let Some(user) = self.user {
                            form method="post" action="/logout" { button { "Log out " (cut(user)) } }
                        }
                    }
                    main id="content" {
                        h1 { (view.title) }
                        @if self.is_local { p { "This is the local state of the node; it may be out of date." } }
                        (view.body)
                    }
                    footer { (same_question(view, self.asked, self.is_local)) }
                }
            }
        };
        page.into_string()
    }
}

fn navigation(partition: &Partition) -> Markup {
    html! {
        nav aria-label="Main" {
            ul {
                li { a href="/web/" { "Overview" } }
                li { a href="/web/topology" { "Topology" } }
                @for (path, name) in PAGES {
                    li { a href=(partition.page(path, &[])) { (name) } }
                }
            }
        }
        p { "Partition " strong { (partition.0) } }
    }
}

fn same_question(view: &View, asked: &[String], is_local: bool) -> Markup {
    let version = format!("-H 'OpenStack-API-Version: {NEWEST_HEADER}'");
    let headers = if is_local {
        format!("{version} {LOCAL}")
    } else {
        version
    };
    let curl = |path: &String| {
        let is_content = path.contains("/placement/");
        let headers = if is_content { &*headers } else { "" };
        let url = quoted(&format!("http://localhost{path}"));
        format!("curl --unix-socket DATA_DIR/admin.sock {headers} {url}").replace("  ", " ")
    };
    let lines = view
        .commands
        .iter()
        .cloned()
        .chain(asked.iter().map(curl))
        .map(|line| html! { (line) "\n" });
    let lines = RowBudget(COMMANDS_BYTES).take(lines);
    html! {
        @if !lines.is_empty() {
            details {
                summary { "Equivalent commands" }
                pre { code { @for line in lines { (line) } } }
            }
        }
    }
}
