//! `/resource_classes` and `/resource_classes/{name}`, from 1.2.

use placement_model::command::{
    CreateResourceClass, DeleteResourceClass, EnsureResourceClass, RenameResourceClass,
};
use placement_model::types::ResourceClassName;
use placement_model::{Command, Reply};
use serde::Serialize;

use super::{Link, invalid_json};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, WriteKind, not_found};
use crate::http::wire::json::Json;
use crate::http::wire::schema;

#[derive(Serialize)]
struct ClassBody<'a> {
    name: &'a str,
    links: [Link; 1],
}

impl<'a> ClassBody<'a> {
    fn new(context: &RequestContext, name: &'a str) -> Self {
        Self {
            name,
            links: [Link {
                rel: "self",
                href: format!("{}{}", context.base_path, path(name)),
            }],
        }
    }
}

#[derive(Serialize)]
struct ListBody<'a> {
    resource_classes: Vec<ClassBody<'a>>,
}

fn path(name: &str) -> String {
    format!("/resource_classes/{name}")
}

/// The class that the path names.
fn named(context: &RequestContext) -> Result<ResourceClassName, ApiError> {
    let name = context.param(0);
    name.parse().map_err(|_| not_found::resource_class(name))
}

/// The class that a body names.
fn name_in(body: &Json) -> Result<ResourceClassName, ApiError> {
    let name = body.get("name").and_then(Json::text).unwrap_or_default();
    name.parse().map_err(invalid_json)
}

/// `GET /resource_classes`.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let classes = view.state.resource_classes();
    let modified = classes.iter().map(|(_, at)| *at).max();
    let names = classes
        .iter()
        .map(|(name, _)| ClassBody::new(context, name.as_str()));
    let answer = Answer::json(&ListBody {
        resource_classes: names.collect(),
    });
    Ok(context.modified(answer, modified))
}

/// `GET /resource_classes/{name}`.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let name = named(context)?;
    let found = view.state.resource_class(&name);
    let at = found.ok_or_else(|| not_found::resource_class(name.as_str()))?;
    Ok(context.modified(
        Answer::json(&ClassBody::new(context, name.as_str())),
        Some(at),
    ))
}

/// `POST /resource_classes`.
pub(crate) async fn create(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let name = name_in(&body)?;
    let location = path(name.as_str());
    context
        .submit(
            Command::CreateResourceClass(CreateResourceClass { name }),
            WriteKind::ChangeResourceClass,
        )
        .await?;
    Ok(Answer::created().location(location))
}

/// `PUT /resource_classes/{name}`, 1.2 to 1.6: gives the class another name.
pub(crate) async fn rename(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let new_name = name_in(&body)?;
    let shown = new_name.clone();
    let command = Command::RenameResourceClass(RenameResourceClass {
        name: named(context)?,
        new_name,
    });
    context
        .submit(command, WriteKind::RenameResourceClass)
        .await?;
    Ok(Answer::json(&ClassBody::new(context, shown.as_str())))
}

/// `PUT /resource_classes/{name}`, from 1.7: makes sure that the class exists.
///
/// The reference pastes the name into JSON and parses that, so quotes and backslashes in it have
/// JSON's meaning.
pub(crate) async fn ensure(context: &RequestContext) -> Result<Answer, ApiError> {
    let pasted = format!("{{\"name\": \"{}\"}}", context.param(0));
    let schema = schema::body_of("POST", "/resource_classes", context.version);
    schema::read_body(usize::MAX, pasted.as_bytes(), schema)?;
    let name: ResourceClassName = context.param(0).parse().map_err(invalid_json)?;
    let location = path(name.as_str());
    let command = Command::EnsureResourceClass(EnsureResourceClass { name });
    let done = context
        .submit(command, WriteKind::ChangeResourceClass)
        .await?;
    let created = matches!(done.reply, Reply::Named { created: true, .. });
    let answer = if created {
        Answer::created()
    } else {
        Answer::no_content()
    };
    Ok(answer.location(location))
}

/// `DELETE /resource_classes/{name}`.
pub(crate) async fn delete(context: &RequestContext) -> Result<Answer, ApiError> {
    let command = Command::DeleteResourceClass(DeleteResourceClass {
        name: named(context)?,
    });
    context
        .carry_out(command, WriteKind::ChangeResourceClass)
        .await
}
