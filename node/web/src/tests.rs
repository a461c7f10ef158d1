use std::sync::Mutex;

use futures::executor::block_on;
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};

use super::*;

/// Markup that must be shown as text.
const MARKUP: &str = "\"><script>alert('x')</script>&<img src=//evil>";
const UUID: &str = "c0000000-0000-4000-8000-000000000001";

/// Response of the fake API to a GET request.
struct Answer {
    status: u16,
    body: Value,
}

/// A fake API that answers by a function and records the requests.
struct Api<F> {
    answer: F,
    asked: Mutex<Vec<String>>,
}

impl<F: Fn(&str) -> Answer + Sync> Ask for Api<F> {
    fn get<'a>(
        &'a self,
        path: &'a str,
        _is_local: bool,
        _need: Need,
        read: Read,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        self.asked.lock().unwrap().push(path.to_owned());
        let Answer { status, body } = (self.answer)(path);
        read(status, body.to_string().as_bytes());
        Box::pin(ready(Ok(())))
    }
}

fn api<F: Fn(&str) -> Answer + Sync>(answer: F) -> Api<F> {
    let asked = Mutex::default();
    Api { answer, asked }
}

/// A page over an API that returns these bodies.
fn page(target: &str, body: impl Fn(&str) -> Value + Sync) -> Page {
    let answer = |path: &str| Answer {
        status: 200,
        body: body(path),
    };
    block_on(respond(target, &api(answer)))
}

/// Addresses of all pages, with `name` in each place of a name.
fn targets(name: &str) -> Vec<String> {
    let name = target::encoded(name);
    let content = [
        "capacity?class={}&by={}&resources={}&required={}",
        "providers?name=&resources={}&required={}",
        "providers/{}?from=0",
        "consumers?provider={}&project={}&user={}&type={}&class={}&marker={}",
        "consumers/{}",
        "candidates?resources={}&required={}&member_of={}&in_tree={}",
        "candidates?query={}",
        "searches?from=0",
        "refuge?provider={}&required={}&member_of={}",
        "refuge?each=root&required={}",
        "history?kind={}&provider={}&consumer={}&project={}&class={}&request_id={}&before={}",
        "nothing/{}",
    ]
    .map(|path| format!("/web/placement/default/{path}"));
    let mut all = vec!["/web/".to_owned(), "/web/topology".to_owned()];
    all.push("/web/placement/{}".to_owned());
    all.extend(content);
    all.into_iter()
        .map(|path| path.replace("{}", &name))
        .collect()
}

/// Responses of the API for a cloud in which everything has the same name; each list has `count`
/// elements.
fn cloud(path: &str, name: &str, count: usize) -> Value {
    // Each tree is small, even if there are many trees.
    let count = if path.contains("in_tree=") { 1 } else { count };
    let many = |one: Value| vec![one; count];
    // Pages show fewer elements of nested lists.
    let some = |one: Value| vec![one; count.min(25)];
    let provider = json!({"uuid": UUID, "name": name});
    let path = path.split('?').next().unwrap_or_default();
    let end = path.rsplit('/').next().unwrap_or_default();
    match end {
        "status" => {
            json!({"node_id": 1, "cluster_id": name, "role": "leader", "leader": 1, "level": 2, "ready": true,
            "last_log": 50, "applied": 47, "version": name, "backup_problem": name, "last_backup": 1_795_532_432,
            "disk_used_bytes": 5 << 20, "certificate_ends": {name: 1_795_532_432},
            "requests": vec![json!([u64::MAX, 2]); 60], "members": many(json!({"id": 1, "name": name, "role": "voter", "region": name,
            "zone": name}))})
        }
        "partitions" => json!(many(
            json!({"name": name, "providers": 3, "consumers": 2, "region": name, "ways": [name]})
        )),
        "topology" => {
            let survives = json!({"node": true, "zone": false, "region": false});
            json!({"survive": name, "survives": survives,
            "losses": many(json!({"place": {"kind": "zone", "region": name, "zone": name}, "nodes": [1], "writes": true,
                "sites": some(json!({"region": name, "zone": name, "reads": "all"}))})),
            "sites": many(json!({"region": name, "zone": name, "nodes": [1], "write_ms": 0.5})),
            "members": many(json!({"node": 1, "region": name, "zone": name, "votes": true, "reachable": true})),
            "partitions": [], "round_trips": many(json!({"from": 1, "to": 2, "ms": 0.5}))})
        }
        "capacity" => {
            json!({"by": "trait", "capacity": many(json!({"class": name, "trait": name, "used": 7,
            "capacity": 5, "free": 1, "largest_free": 1, "providers": 2, "provider": provider, "free_ranges": [3, 0, 1]}))})
        }
        "what-if" => json!({"count": 7, "exact": true, "complete": true}),
        "refuge" => {
            let host = json!({"provider": provider, "root": provider, "resources": {name: 2}});
            json!({"consumers": 3, "moved": 1, "complete": true, "trees": 3, "empties": 1,
            "left": many(json!({"consumer": UUID, "project_id": name, "resources": {name: 2}, "why": 0})),
            "explanations": [{"verdict": "none", "trees": 3, "unknown": [{"trait": name, "nearest": [name]}]}],
            "moves": many(json!({"consumer": UUID, "project_id": name, "to": some(host)})),
            "stuck": many(json!({"provider": provider, "consumers": 2, "left": 1, "largest": {name: 2}}))})
        }
        "resource_providers" => {
            json!({"resource_providers": many(json!({"uuid": UUID, "name": name, "generation": 1,
            "parent_provider_uuid": name}))})
        }
        "consumers" => {
            json!({"next": UUID, "consumers": many(json!({"uuid": UUID, "type": name, "project_id": name,
            "updated_at": name, "allocations": some(json!({"provider": provider, "resources": {name: 2}}))}))})
        }
        "allocation_candidates" => json!({
            "allocation_requests": many(json!({"allocations": {UUID: {"resources": {name: 2}}}})),
            "provider_summaries": {}}),
        "searches" => {
            json!({"searches": many(json!({"at": name, "candidates": 0, "query": name, "reason": name, "ms": 1.5,
            "request_id": name, "project_id": name, "claim": name, "refusal": name}))})
        }
        "history" => {
            json!({"oldest": name, "next": name, "history": many(json!({"at": name, "index": name, "verb": name,
            "request_id": name, "changes": some(json!({"kind": name, "key": {"a": name}, "before": {name: 1},
            "after": null}))}))})
        }
        "explain" => {
            json!({"verdict": "none", "trees": 3, "unknown": many(json!({"trait": name, "nearest": [name]})),
            "unused": many(json!({"class": name})), "funnel": many(json!({"atom": "room", "class": name, "asked": 4,
            "left": 0, "gone": 3, "most_free": 2, "examples": some(provider.clone()), "group": name})),
            "relaxations": many(json!({"query": name, "trees": 3, "less": [{"atom": "room", "class": name, "asked": 4,
            "enough": 2}]})),
            "nearest": many(json!({"root": provider, "lacks": [{"atom": name}], "holders": some(json!({"class": name,
            "amount": 2, "consumer": name, "project": name, "since": name}))}))})
        }
        _ if path.contains("/trees/") => {
            json!({"root": UUID, "providers": many(json!({"uuid": UUID, "name": name, "parent": name,
            "generation": 1, "holders": 2, "traits": some(json!(name)), "aggregates": [name],
            "inventories": {name: {"used": 9, "capacity": 8, "total": 8, "allocation_ratio": 1.5}}}))})
        }
        _ => json!({"consumer_type": name, "project_id": name, "user_id": name,
            "allocations": {UUID: {"generation": 1, "resources": {name: 2}}}}),
    }
}

#[test]
fn markup_in_names_is_shown_as_text() {
    for target in targets(MARKUP) {
        let page = page(&target, |path| cloud(path, MARKUP, 2));
        // The name neither opens a tag nor ends the attribute that contains it.
        for active in ["<script", "<img", "\"&gt;&lt;script"] {
            assert!(
                !page.body.contains(active),
                "{target}: {active}\n{}",
                page.body
            );
        }
        let is_page = page.status == 200 && !target.ends_with("/topology");
        assert!(
            !is_page || page.body.contains("&lt;script&gt;"),
            "{target}\n{}",
            page.body
        );
    }
}

#[test]
fn pages_show_what_the_api_answers() {
    for (target, texts) in [
        (
            "/web",
            &[
                "Healthy: 1 of 1 voters are ready; 0 may fail.",
                "backups of node 1: cmp",
                "2026-11-24T15:00:32Z",
                "5.0 MiB",
                "<td>3</td>",
                // 60 minutes with two requests each.
                "<td>120</td>",
                "<svg class=\"bars\"",
                "placementctl status",
                "curl --unix-socket DATA_DIR/admin.sock http://localhost/v1/status",
            ][..],
        ),
        (
            "/web/topology",
            &[
                "The cluster tolerates the loss of any one node.",
                "is not met: the loss of a cmp can stop writes.",
                "If this fails",
                "zone cmp/cmp",
                "<td>continue</td><td>all</td>",
                "<td>0.5 ms</td>",
                "0.5 ms to node 2",
            ],
        ),
        (
            "/web/placement/default/capacity",
            &[
                "over capacity",
                "cmp: 7 of 5",
                "high=\"4.5\"",
                "Free units (providers): none (3); 2 to 3 (1).",
                &format!("href=\"/web/placement/default/providers/{UUID}\">cmp<"),
                "<svg class=\"bars\"",
            ],
        ),
        (
            "/web/placement/default/capacity?resources=cmp:2",
            &["7 claims can be made now.", "candidates?resources=cmp:2\""],
        ),
        (
            "/web/placement/default/providers?name=c",
            &[
                "Rows 1 to 1 of 1.",
                "<td>cmp 7/5</td>",
                &format!("href=\"/web/placement/default/providers/{UUID}\""),
                "placementctl providers list --name=c",
            ],
        ),
        (
            &format!("/web/placement/default/providers/{UUID}"),
            &[
                "cmp: 9 of 8",
                "<dt>traits</dt><dd>cmp</dd>",
                "Consumers of cmp",
                "Can this host go?</a> No: no room elsewhere for 1 of 3 consumers.",
            ],
        ),
        (
            &format!("/web/placement/default/refuge?provider={UUID}&required=A"),
            &[
                "No: no room elsewhere for 1 of 3 consumers.",
                "Why it has no room",
                "Moves that are possible in this order",
                "--required=A",
            ],
        ),
        (
            "/web/placement/default/refuge?each=root&required=A",
            &[
                "No: 2 of 3 trees cannot be emptied.",
                &format!("refuge?provider={UUID}&amp;required=A\">cmp<"),
            ],
        ),
        (
            "/web/placement/default/consumers",
            &["rel=\"next\"", "cmp=2"],
        ),
        (
            &format!("/web/placement/default/consumers/{UUID}"),
            &["cmp=2", "allocation show"],
        ),
        (
            "/web/placement/default/candidates?resources=cmp:2",
            &["1 candidate.", "cmp=2", "--resource=cmp=2"],
        ),
        (
            "/web/placement/north/searches",
            &[
                "candidates?query=cmp",
                "placementctl searches -o wide --partition=north",
            ],
        ),
        (
            "/web/placement/default/history",
            &["cmp a=cmp: cmp=1 → –", "before=cmp"],
        ),
    ] {
        let page = page(target, |path| cloud(path, "cmp", 1));
        assert_eq!(page.status, 200, "{target}");
        for text in texts {
            assert!(page.body.contains(text), "{target}: {text}\n{}", page.body);
        }
    }
}

#[test]
fn empty_answer_of_a_search_is_explained() {
    let body = |path: &str| {
        if path.contains("/allocation_candidates") {
            json!({"allocation_requests": []})
        } else {
            cloud(path, "VCPU", 1)
        }
    };
    let page = page("/web/placement/default/candidates?resources=VCPU:4", body);
    for text in [
        "No candidates: there is no trait VCPU; similar: VCPU.",
        "No provider has the resource class VCPU.",
        "room for VCPU:4 for group VCPU (2 free at most)",
        "with VCPU:2 in place of 4",
        "What nearly fits (the nearest 1 of 3 trees)",
        "held by",
    ] {
        assert!(page.body.contains(text), "{text}\n{}", page.body);
    }
}

#[test]
fn a_query_with_an_unknown_name_shows_similar_names() {
    let target = "/web/placement/default/candidates?resources=VPCU:4";
    for (explained, status, says) in [
        (
            200,
            200,
            "No candidates: there is no trait VCPU; similar: VCPU.",
        ),
        (400, 400, "No such resource class VPCU."),
    ] {
        let refusal = json!({"errors": [{"detail": "No such resource class VPCU."}]});
        let page = block_on(respond(
            target,
            &api(|path: &str| match path {
                _ if path.contains("/allocation_candidates") => Answer {
                    status: 400,
                    body: refusal.clone(),
                },
                _ if explained == 400 => Answer {
                    status: 400,
                    body: json!({"errors": [{"detail": "too many conditions"}]}),
                },
                _ => Answer {
                    status: 200,
                    body: cloud(path, "VCPU", 1),
                },
            }),
        ));
        assert_eq!(page.status, status);
        assert!(page.body.contains(says), "{says}\n{}", page.body);
    }
}

/// An API that refuses all content but explanations, and capacity by provider.
fn refusing(path: &str) -> Answer {
    let status = match path {
        _ if path.contains("/explain") => 200,
        _ => 400,
    };
    let refusal = json!({"errors": [{"detail": "No such trait(s): VCPU."}]});
    let body = match status {
        200 => cloud(path, "VCPU", 1),
        _ => refusal,
    };
    Answer { status, body }
}

#[test]
fn a_form_with_an_unknown_name_stays_and_shows_similar_names() {
    for (list, query) in [
        (
            "providers?required=HW_CPU_AVX",
            "resources=VCPU:1&amp;required=HW_CPU_AVX",
        ),
        ("providers?resources=VPCU:4", "resources=VPCU:4"),
        ("capacity?class=VPCU", "resources=VPCU:1"),
        ("consumers?class=VPCU", "resources=VPCU:1"),
    ] {
        let target = format!("/web/placement/default/{list}");
        let page = block_on(respond(&target, &api(refusing)));
        assert_eq!(page.status, 200, "{target}");
        let value = list.split_once('=').unwrap().1;
        for text in [
            "There is no trait VCPU; similar: VCPU.",
            &format!("value=\"{value}\""),
            &format!("/placementd/v1/explain?{query}"),
        ] {
            assert!(page.body.contains(text), "{target}: {text}\n{}", page.body);
        }
    }
    // Other refusals have no name to show.
    for list in ["providers?name=a", "consumers?project=a"] {
        let target = format!("/web/placement/default/{list}");
        assert_eq!(block_on(respond(&target, &api(refusing))).status, 400);
    }
}

#[test]
fn providers_are_shown_without_their_use_if_the_report_is_refused() {
    let answer = |path: &str| match path {
        _ if path.contains("/capacity") => refusing(path),
        _ => Answer {
            status: 200,
            body: cloud(path, "cmp", 1),
        },
    };
    let target = "/web/placement/default/providers";
    let page = block_on(respond(target, &api(answer)));
    assert_eq!(page.status, 200);
    for text in [
        "The used amounts are missing: No such trait(s): VCPU.",
        "Rows 1 to 1 of 1.",
    ] {
        assert!(page.body.contains(text), "{text}\n{}", page.body);
    }
}

#[test]
fn truncated_candidates_are_not_presented_as_all() {
    let target = "/web/placement/default/candidates?resources=VCPU:4";
    let limited = "/web/placement/default/candidates?query=resources%3DVCPU%3A4%26limit%3D1";
    for (target, found, says) in [
        (target, 7, "7 candidates."),
        (target, 100, "The first 100 candidates; there may be more."),
        (limited, 1, "The first 1 candidate; there may be more."),
    ] {
        let page = page(target, |path| cloud(path, "cmp", found));
        assert!(page.body.contains(says), "{says}\n{}", page.body);
    }
}

#[test]
fn pages_render_empty_and_unknown_responses() {
    for body in [
        json!({}),
        Value::Null,
        json!("a"),
        json!({"members": 1, "allocations": [1], "capacity": 1, "count": "", "consumers": 1, "history": 1,
            "providers": 1, "resource_providers": 1, "allocation_requests": 1, "left": 1, "stuck": 1}),
    ] {
        for target in targets("a") {
            let page = page(&target, |_| body.clone());
            let expected = match () {
                () if target.contains("/nothing/") => 404,
                () if body != json!({}) || target.ends_with("/topology") => 502,
                () if target.contains("/consumers/") => 404,
                () => 200,
            };
            assert_eq!(page.status, expected, "{target}");
            assert!(
                page.body.contains("<h1>") && page.body.ends_with("</html>"),
                "{target}"
            );
        }
    }
}

#[test]
fn pages_are_bounded() {
    for name in ["\"".repeat(5000), "界".repeat(5000), "VCPU".to_owned()] {
        for target in targets(&"\"".repeat(100)) {
            let page = page(&target, |path| cloud(path, &name, 150));
            assert!(page.body.len() <= 150_000, "{target}: {}", page.body.len());
        }
    }
    let explained = |path: &str| {
        if path.contains("/allocation_candidates") {
            json!({})
        } else {
            cloud(path, &"\"".repeat(5000), 150)
        }
    };
    let query = "%22".repeat(1300);
    let page = page(
        &format!("/web/placement/default/candidates?query={query}"),
        explained,
    );
    assert!(page.body.len() <= 150_000, "{}", page.body.len());
}

#[test]
fn every_row_is_on_one_page() {
    let names = |path: &str| {
        if path.contains("/resource_providers") {
            json!({"resource_providers": (0..250).map(|at| json!({"uuid": UUID, "name": format!("host-{at:03}-{}", "\"".repeat(280))})).collect::<Vec<_>>()})
        } else {
            json!({})
        }
    };
    let (mut target, mut seen) = (
        "/web/placement/default/providers?name=host".to_owned(),
        Vec::new(),
    );
    loop {
        let page = page(&target, names);
        seen.extend(
            page.body
                .split("\">host-")
                .skip(1)
                .map(|rest| rest[..3].to_owned()),
        );
        let Some((_, next)) = page.body.split_once("rel=\"next\" href=\"") else {
            break;
        };
        target = next.split('"').next().unwrap().replace("&amp;", "&");
    }
    let expected: Vec<String> = (0..250).map(|at| format!("{at:03}")).collect();
    assert_eq!(seen, expected);
}

#[test]
fn an_api_error_is_shown_with_its_status_and_reason() {
    let refusal = |_: &str| Answer {
        status: 503,
        body: json!({"errors": [{"status": 503, "detail": "no leader <known>"}]}),
    };
    for target in targets("a")
        .iter()
        .filter(|target| !target.contains("/nothing/"))
    {
        let page = block_on(respond(target, &api(refusal)));
        assert_eq!(page.status, 503, "{target}");
        assert!(page.body.contains("local=true"), "{}", page.body);
        assert!(
            page.body.contains("no leader &lt;known&gt;"),
            "{}",
            page.body
        );
    }
    for (answered, shown) in [(302, 502), (404, 404)] {
        let answer = |_: &str| Answer {
            status: answered,
            body: Value::Null,
        };
        assert_eq!(
            block_on(respond("/web/topology", &api(answer))).status,
            shown
        );
    }
    let long = format!("/web/placement/default/providers?name={}", "a".repeat(5000));
    assert_eq!(page(&long, |_| json!({})).status, 414);
}

/// `placementd replay` has partitions, but no status.
#[test]
fn overview_of_a_backup_lists_its_partitions() {
    let answer = |path: &str| {
        let (status, body) = match path {
            "/v1/partitions" => (200, cloud(path, "north", 1)),
            _ => (404, Value::Null),
        };
        Answer { status, body }
    };
    let page = block_on(respond("/web/", &api(answer)));
    assert_eq!(page.status, 200, "{}", page.body);
    for text in ["<h1>Backup</h1>", "/web/placement/north/capacity"] {
        assert!(page.body.contains(text), "{}", page.body);
    }
}

/// A page requests only content: no backup, and no check of a state.
#[test]
fn pages_request_only_content() {
    for name in [
        "../../backup",
        "a/../../../check",
        "%2e%2e/backup",
        "x?y#z",
        "\r\nHost: a",
        "..",
        "ä",
    ] {
        for target in targets(name) {
            let api = api(|_: &str| Answer {
                status: 200,
                body: json!({"members": [{"id": 1}]}),
            });
            block_on(respond(&target, &api));
            for path in api.asked.into_inner().unwrap() {
                let fixed = [
                    "/v1/status",
                    "/v1/partitions",
                    "/v1/topology",
                    "/v1/nodes/1/status",
                ];
                let path = path.replacen("/v1/nodes/1/placement/", "/v1/placement/", 1);
                assert!(
                    fixed.contains(&&*path) || path.starts_with("/v1/placement/"),
                    "{target}: {path}"
                );
                let below = path.split('?').next().unwrap().split('/');
                assert!(
                    below.clone().count() <= 8
                        && !below.clone().any(|one| one == "backup" || one == "check"),
                    "{path}"
                );
                assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{path}");
            }
        }
    }
}

#[test]
fn the_form_of_the_login_has_labels_and_shows_names_as_text() {
    let page = login(403, MARKUP, Some(MARKUP));
    assert_eq!((page.status, page.cache_control), (403, "no-store"));
    let body = page.body;
    assert!(
        !body.contains("<script") && !body.contains("<img"),
        "{body}"
    );
    assert_eq!(body.matches("<input").count(), 7);
    for part in body.split("<input").skip(1) {
        assert!(part.contains("</label>"), "{part}");
    }
    let forms = body.matches("<form method=\"post\" action=\"/login\">");
    assert_eq!(forms.count(), 2);
    assert!(body.contains("action=\"/logout\"") && body.contains("role=\"alert\""));
    assert!(
        !body.contains("<nav"),
        "only the first page may be linked: {body}"
    );
    let new = login(200, "", None).body;
    assert!(!new.contains("/logout") && !new.contains("role=\"alert\""));
    // Only logged-in users have the logout button.
    let operators = api(|_: &str| Answer {
        status: 0,
        body: Value::Null,
    });
    let shown = block_on(respond("/web/nothing", &operators)).body;
    assert!(!shown.contains("method=\"post\""), "{shown}");
}
