//! The page on which a user logs in.

use maud::{Markup, html};

use crate::Page;
use crate::frame::{Frame, View};

/// The page on which a user logs in: what is wrong, where something is, and a form for each kind of
/// credentials.
pub fn login(status: u16, wrong: &str, user: Option<&str>) -> Page {
    let view = View {
        title: "Log in".to_owned(),
        body: html! {
            @if !wrong.is_empty() { p class="verdict" role="alert" { (wrong) } }
            p { "Log in as you do for OpenStack: Keystone authenticates you. After a link from another site, "
                a href="/web/" { "go on to the pages" } " if you have logged in already." }
            h2 { "With a password" }
            form method="post" action="/login" {
                (field("user", "User", "", "username", "text"))
                (field("user_domain", "Domain of the user", "Default", "off", "text"))
                (field("password", "Password", "", "current-password", "password"))
                (field("project", "Project", "", "off", "text"))
                (field("project_domain", "Domain of the project", "Default", "off", "text"))
                button { "Log in" }
            }
            h2 { "With an application credential" }
            form method="post" action="/login" {
                (field("credential", "Id", "", "off", "text"))
                (field("secret", "Secret", "", "off", "password"))
                button { "Log in" }
            }
        },
        commands: Vec::new(),
    };
    let frame = Frame {
        user,
        ..Frame::default()
    };
    Page::html(status, frame.around(&view))
}

/// A field of the form: its name, its label, what is in it, what a browser fills in, and its type.
fn field(name: &str, label: &str, value: &str, filled: &str, kind: &str) -> Markup {
    html! {
        label { (label) input name=(name) type=(kind) value=(value) autocomplete=(filled) required; }
    }
}
