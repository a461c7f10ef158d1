//! The page on which a user logs in.

use maud::{Markup, html};

use crate::Page;
use crate::frame::{Frame, View};

/// A field of the form: its name, its label, what is in it, what a browser fills in, and its type.
type Field = [&'static str; 5];

const BY_PASSWORD: [Field; 5] = [
    ["user", "User", "", "username", "text"],
    [
        "user_domain",
        "Domain of the user",
        "Default",
        "off",
        "text",
    ],
    ["password", "Password", "", "current-password", "password"],
    ["project", "Project", "", "off", "text"],
    [
        "project_domain",
        "Domain of the project",
        "Default",
        "off",
        "text",
    ],
];
const BY_CREDENTIAL: [Field; 2] = [
    ["credential", "Id", "", "off", "text"],
    ["secret", "Secret", "", "off", "password"],
];

/// The page on which a user logs in: what is wrong, where something is, and a form for each kind of credentials.
pub fn login(status: u16, wrong: &str, user: Option<&str>) -> Page {
    let view = View {
        title: "Log in".to_owned(),
        body: html! {
            @if !wrong.is_empty() { p class="verdict" role="alert" { (wrong) } }
            p { "Log in as you do for OpenStack: Keystone authenticates you. After a link from another site, "
                a href="/web/" { "go on to the pages" } " if you have logged in already." }
            h2 { "With a password" }
            (form(&BY_PASSWORD))
            h2 { "With an application credential" }
            (form(&BY_CREDENTIAL))
        },
        commands: Vec::new(),
    };
    let frame = Frame {
        user,
        ..Frame::default()
    };
    Page::html(status, frame.around(&view))
}

fn form(fields: &[Field]) -> Markup {
    html! {
        form method="post" action="/login" {
            @for [name, label, value, filled, kind] in fields {
                label { (label) input name=(name) type=(kind) value=(value) autocomplete=(filled) required; }
            }
            button { "Log in" }
        }
    }
}
