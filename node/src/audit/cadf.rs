//! A record as an event of CADF (DMTF DSP0262, 1.0), with the fields that `keystonemiddleware.audit` gives it, for
//! what reads OpenStack's audit events. One event for a request, when it has ended. Credentials are left out.

use serde::Serialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::macros::format_description;

use super::record::{Door, Outcome, Record};

const EVENT: &str = "http://schemas.dmtf.org/cloud/audit/1.0/event";
const USER: &str = "service/security/account/user";
const UNKNOWN: &str = "unknown";
/// What a POST makes one more of; all others change what is there.
const COLLECTIONS: [&str; 6] = [
    "resource_providers",
    "resource_classes",
    "inventories",
    "allocations",
    "members",
    "init",
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(rename = "typeURI")]
    type_uri: &'static str,
    event_type: &'static str,
    id: &'a str,
    event_time: String,
    action: &'static str,
    outcome: &'static str,
    initiator: Value,
    target: Value,
    observer: Value,
    request_path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Value>,
    reporterchain: Value,
    attachments: Value,
}

/// Adds the event's line, with the newline.
pub(super) fn write(record: &Record, into: &mut Vec<u8>) {
    let time = event_time(record);
    let event = Event {
        type_uri: EVENT,
        event_type: "activity",
        id: id(record),
        action: action(record),
        outcome: match record.outcome {
            Outcome::Committed | Outcome::Unchanged => "success",
            Outcome::Refused | Outcome::Abandoned => "failure",
            Outcome::Unknown => UNKNOWN,
        },
        initiator: initiator(record),
        target: target(record),
        observer: json!({ "id": "target" }),
        request_path: &record.asked.uri,
        reason: record
            .status
            .map(|status| json!({ "reasonType": "HTTP", "reasonCode": status.to_string() })),
        reporterchain: json!([{
            "role": "modifier", "reporter": { "id": "target" }, "reporterTime": time,
        }]),
        attachments: json!([{
            "name": "placement", "typeURI": "application/json", "content": whole(record),
        }]),
        event_time: time,
    };
    serde_json::to_writer(&mut *into, &event).expect("texts and numbers can be written");
    into.push(b'\n');
}

/// What CADF has no field for: our own record.
fn whole(record: &Record) -> Value {
    let mut line = Vec::new();
    record.write_json(&mut line);
    serde_json::from_slice(&line).expect("it was just written")
}

fn id(record: &Record) -> &str {
    let id = record.request_id.as_str();
    id.strip_prefix("req-").unwrap_or(id)
}

/// The form that pycadf gives times.
fn event_time(record: &Record) -> String {
    let form = format_description!(
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]+0000"
    );
    let time = OffsetDateTime::from(record.time).format(&form);
    time.unwrap_or_else(|_| "1970-01-01T00:00:00.000000+0000".to_owned())
}

fn action(record: &Record) -> &'static str {
    let last = (record.asked.route.as_deref())
        .and_then(|route| route.rsplit('/').next())
        .unwrap_or_default();
    match record.asked.method.as_str() {
        "POST" if COLLECTIONS.contains(&last) => "create",
        "POST" | "PUT" | "PATCH" => "update",
        "DELETE" => "delete",
        "GET" if !last.is_empty() && !last.starts_with('{') => "read/list",
        "GET" | "HEAD" => "read",
        _ => UNKNOWN,
    }
}

fn initiator(record: &Record) -> Value {
    let caller = record.caller.as_ref();
    let user = caller.and_then(|caller| caller.user.as_deref());
    let mut initiator = json!({
        "typeURI": USER,
        "id": user.unwrap_or(UNKNOWN),
        "name": user.unwrap_or(UNKNOWN),
        "project_id": caller.and_then(|caller| caller.project.as_deref()).unwrap_or(UNKNOWN),
        "request_id": record.request_id,
        "host": { "address": record.whence.client.as_deref().unwrap_or(UNKNOWN) },
    });
    if let Some(global) = &record.global_request_id {
        initiator["global_request_id"] = json!(global);
    }
    initiator
}

/// The resource that was asked for, or the service.
fn target(record: &Record) -> Value {
    let service = match record.door {
        Door::Api => "service/placement",
        Door::Admin => "service/placement/admin",
    };
    let route = record.asked.route.as_deref().unwrap_or_default();
    let parts = route.split('/').filter(|part| !part.is_empty());
    let parts = parts.map(|part| part.trim_start_matches('{').trim_end_matches('}'));
    let type_uri: Vec<&str> = std::iter::once(service).chain(parts).collect();
    let resource = record.asked.resources.first().map(String::as_str);
    json!({
        "typeURI": type_uri.join("/"),
        "id": resource.unwrap_or("placement"),
        "name": "placement",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::record::tests::{claim, stranger};
    use super::*;

    fn event(record: &Record) -> Value {
        let mut line = Vec::new();
        write(record, &mut line);
        assert_eq!(line.pop(), Some(b'\n'));
        serde_json::from_slice(&line).unwrap()
    }

    fn keys(value: &Value) -> BTreeSet<&str> {
        value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect()
    }

    /// Source: pycadf, `event.Event` and `resource.Resource`; keystonemiddleware, `audit/_api.py`: the fields that
    /// an event of a request that was answered has.
    #[test]
    fn an_event_has_the_fields_that_openstacks_middleware_gives_it() {
        let event = event(&claim());
        for field in [
            "typeURI",
            "eventType",
            "id",
            "eventTime",
            "action",
            "outcome",
            "initiator",
            "target",
            "observer",
            "requestPath",
            "reason",
            "reporterchain",
        ] {
            assert!(event.get(field).is_some(), "{field} in {event}");
        }
        assert_eq!(event["typeURI"], EVENT);
        assert_eq!(event["eventType"], "activity");
        assert_eq!(event["id"], "5b1f5d06-6b1c-4b84-9d93-0a8a2b9ff0b1");
        assert_eq!(event["eventTime"], "2026-01-01T00:00:00.250000+0000");
        assert_eq!(event["action"], "update");
        assert_eq!(event["outcome"], "success");
        assert_eq!(event["requestPath"], "/allocations/c1?x=1");
        assert_eq!(
            event["reason"],
            json!({ "reasonType": "HTTP", "reasonCode": "204" })
        );
        assert_eq!(event["observer"], json!({ "id": "target" }));
        let initiator = [
            "typeURI",
            "id",
            "name",
            "host",
            "project_id",
            "request_id",
            "global_request_id",
        ];
        assert_eq!(keys(&event["initiator"]), initiator.into());
        assert_eq!(event["initiator"]["typeURI"], USER);
        assert_eq!(event["initiator"]["host"]["address"], "10.0.0.7");
        assert_eq!(
            event["target"],
            json!({
                "typeURI": "service/placement/allocations/consumer_uuid", "id": "c1", "name": "placement",
            })
        );
        let step = &event["reporterchain"][0];
        assert_eq!(
            (&step["role"], &step["reporterTime"]),
            (&json!("modifier"), &event["eventTime"])
        );
        assert_eq!(event["attachments"][0]["content"]["index"], 41);
    }

    #[test]
    fn a_stranger_is_unknown_and_fails() {
        let event = event(&stranger());
        assert_eq!(event["outcome"], "failure");
        assert_eq!(event["initiator"]["id"], "unknown");
        assert_eq!(event["reason"]["reasonCode"], "401");
    }

    #[test]
    fn actions_are_those_of_the_taxonomy() {
        for (method, route, expected) in [
            ("POST", "/resource_providers", "create"),
            ("POST", "/reshaper", "update"),
            ("POST", "/v1/members/{id}/promote", "update"),
            ("PUT", "/traits/{name}", "update"),
            ("DELETE", "/traits/{name}", "delete"),
            ("GET", "/resource_providers", "read/list"),
            ("GET", "/resource_providers/{uuid}", "read"),
            ("BREW", "/", "unknown"),
        ] {
            let mut record = claim();
            record.asked.method = method.to_owned();
            record.asked.route = Some(route.to_owned());
            assert_eq!(event(&record)["action"], expected, "{method} {route}");
        }
    }
}
