//! Login page: password or application credential.

use maud::{Markup, html};

use crate::Page;
use crate::frame::{Frame, View};

/// The login page: an error if there is one, and a form for each kind of credentials.
pub fn login(status: u16, wrong: &str, user: Option<&str>) -> Page {
    let view = View {
        title: "Log in".to_owned(),
        body: html! {
            @if !wrong.is_empty() { p class="verdict" role="alert" { (wrong) } }
            p { "Log in with your OpenStack account; Keystone authenticates you. If you are already logged in, you see \
                this page because you followed a link from another site: " a href="/web/" { "continue to the pages" } "." }
            h2 { "Password" }
            form method="post" action="/login" {
                (field("user", "User", "", "username", "text"))
                (field("user_domain", "User domain", "Default", "off", "text"))
                (field("password", "Password", "", "current-password", "password"))
                (field("project", "Project", "", "off", "text"))
                (field("project_domain", "Project domain", "Default", "off", "text"))
                button { "Log in" }
            }
            h2 { "Application credential" }
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
    Page::html(status, frame.page_of(&view))
}

/// A field of a form: name, label, initial value, autocomplete, and type.
fn field(name: &str, label: &str, value: &str, filled: &str, kind: &str) -> Markup {
    html! {
        label { (label) input name=(name) type=(kind) value=(value) autocomplete=(filled) required; }
    }
}
