//! `/resource_classes` and `/resource_classes/{name}`, from 1.2.

use placement_model::Command;
use placement_model::command::{
    CreateResourceClass, DeleteResourceClass, EnsureResourceClass, RenameResourceClass,
};
use placement_model::types::ResourceClassName;
use serde::Serialize;

use super::{Link, ensured, invalid_json, name_in};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, WriteKind, not_found};
use crate::http::wire::schema;

#[derive(Serialize)]
struct ClassBody<'a> {
    name: &'a str,
    links: [Link; 1],
}

fn class_body<'a>(context: &RequestContext, name: &'a ResourceClassName) -> ClassBody<'a> {
    let href = format!("{}{}", context.head.base_path, path(name));
    ClassBody {
        name: name.as_str(),
        links: [Link { rel: "self", href }],
    }
}

#[derive(Serialize)]
struct ListBody<'a> {
    resource_classes: Vec<ClassBody<'a>>,
}

fn path(name: &ResourceClassName) -> String {
    format!("/resource_classes/{name}")
}

/// Parses the class name in the path.
fn named(context: &RequestContext) -> Result<ResourceClassName, ApiError> {
    let name = context.param(0);
    name.parse().map_err(|_| not_found::resource_class(name))
}

/// `GET /resource_classes`: the names of all classes.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let classes = view.state.resource_classes();
    let modified = classes.iter().map(|(_, at)| *at).max();
    let bodies = classes.iter().map(|(name, _)| class_body(context, name));
    let answer = Answer::json(&ListBody {
        resource_classes: bodies.collect(),
    });
    Ok(context.modified(answer, modified))
}

/// `GET /resource_classes/{name}`: 404 if there is no such class.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let name = named(context)?;
    let found = view.state.resource_class(&name);
    let at = found.ok_or_else(|| not_found::resource_class(name.as_str()))?;
    Ok(context.modified(Answer::json(&class_body(context, &name)), Some(at)))
}

/// `POST /resource_classes`: creates a custom class.
pub(crate) async fn create(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let name = name_in(&body)?;
    let location = path(&name);
    let command = Command::CreateResourceClass(CreateResourceClass { name });
    let write = WriteKind::ChangeResourceClass;
    context.submit(command, write).await?;
    Ok(Answer::created().location(location))
}

/// `PUT /resource_classes/{name}`, 1.2 to 1.6: renames the class.
pub(crate) async fn rename(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let new_name: ResourceClassName = name_in(&body)?;
    let command = Command::RenameResourceClass(RenameResourceClass {
        name: named(context)?,
        new_name: new_name.clone(),
    });
    let write = WriteKind::RenameResourceClass;
    context.submit(command, write).await?;
    Ok(Answer::json(&class_body(context, &new_name)))
}

/// `PUT /resource_classes/{name}`, from 1.7: ensures that the class exists.
///
/// The reference pastes the name into JSON and parses the result, so quotes and backslashes in the
/// name have their meaning in JSON.
pub(crate) async fn ensure(context: &RequestContext) -> Result<Answer, ApiError> {
    let pasted = format!("{{\"name\": \"{}\"}}", context.param(0));
    let schema = schema::body_of("POST", "/resource_classes", context.head.version);
    schema::read_body(usize::MAX, pasted.as_bytes(), schema)?;
    let name: ResourceClassName = context.param(0).parse().map_err(invalid_json)?;
    let location = path(&name);
    let command = Command::EnsureResourceClass(EnsureResourceClass { name });
    let write = WriteKind::ChangeResourceClass;
    let (reply, _) = context.submit(command, write).await?;
    Ok(ensured(&reply, location).0)
}

/// `DELETE /resource_classes/{name}`: deletes an unused custom class.
pub(crate) async fn delete(context: &RequestContext) -> Result<Answer, ApiError> {
    let name = named(context)?;
    let command = Command::DeleteResourceClass(DeleteResourceClass { name });
    let write = WriteKind::ChangeResourceClass;
    context.carry_out(command, write).await
}
