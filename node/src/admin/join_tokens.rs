//! Routes for join tokens.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use placement_wire::{JoinToken, JoinTokens, NewJoinToken};
use time::OffsetDateTime;

use super::{Admin, Failed, HandlerResult, detailed, done, failed, read_or_default};
use placement_cluster::members::join_tokens::{Issued, seconds};

/// Longest validity of a token, in seconds: a month.
const TTL_MAX_S: u64 = 31 * 24 * 3600;

/// An issued token as shown in lists; the token itself is shown only in the response to its
/// creation.
fn status(issued: &Issued, now: i64) -> JoinToken {
    let row = &issued.row;
    let until = seconds(row.expires_at.min(row.until));
    let state = match row.nonce {
        Some(_) if issued.is_member => "joined",
        Some(_) => "used",
        None if until < now => "expired",
        None => "open",
    };
    JoinToken {
        id: issued.node,
        token: None,
        until,
        state: state.to_owned(),
        replaces: row.replaces.as_ref().map(|replaced| replaced.node),
    }
}

fn now(admin: &Admin) -> i64 {
    OffsetDateTime::from(admin.bootstrap.env.clock.now()).unix_timestamp()
}

pub(super) async fn create(State(admin): State<Admin>, body: Bytes) -> HandlerResult {
    let new: NewJoinToken = read_or_default(&body)?;
    let (ttl_s, though_reachable) = (new.ttl_s, new.though_reachable);
    if !(1..=TTL_MAX_S).contains(&ttl_s) {
        let detail = format!("ttl_s must be from 1 to {TTL_MAX_S}");
        return Err(failed(StatusCode::BAD_REQUEST, detail));
    }
    let reachable = if though_reachable {
        ", although it is reachable"
    } else {
        ""
    };
    let asked = match new.replaces {
        None => format!("create a join token for {ttl_s} s"),
        Some(old) => format!("create a join token for {ttl_s} s to replace node {old}{reachable}"),
    };
    let ids = &admin.bootstrap.env.ids;
    let fresh = [ids.uuid(), ids.uuid()];
    let replaces = new.replaces.map(|old| (old, though_reachable));
    let made = admin.bootstrap.slot.issue_token(fresh, ttl_s, replaces);
    let answer = made.await.map(|(token, issued)| {
        let made = JoinToken {
            token: Some(token),
            ..status(&issued, now(&admin))
        };
        (StatusCode::CREATED, Json(made)).into_response()
    });
    detailed(asked, answer.map_err(Failed::from))
}

pub(super) async fn list(State(admin): State<Admin>) -> HandlerResult {
    let tokens = admin.up_to_date().await?.tokens();
    let now = now(&admin);
    let join_tokens = tokens.iter().map(|issued| status(issued, now)).collect();
    Ok(Json(JoinTokens { join_tokens }).into_response())
}

pub(super) async fn revoke(State(admin): State<Admin>, Path(id): Path<u64>) -> HandlerResult {
    admin.bootstrap.slot.revoke_token(id).await?;
    done()
}
