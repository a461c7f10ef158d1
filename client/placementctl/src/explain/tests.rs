use placement_wire::searches::Search;
use serde::Deserialize;
use serde_json::Value;

use super::*;

fn read(answer: &Value) -> Explained<'static> {
    Explained::deserialize(answer).unwrap()
}

fn cause(answer: &Value) -> String {
    WORDS.cause(&read(answer).explanation)
}

fn answer() -> Value {
    json!({
        "verdict": "none", "reason": "room", "cause": 3, "trees": 5012, "with_candidates": 0, "undecided": 0,
        "unknown": [],
        "funnel": [
            {"atom": "member_of", "group": "", "aggregates": ["6f", "7a"], "left": 702, "gone": 4310,
             "examples": [{"uuid": "1", "name": "cmp-1"}, {"uuid": "2", "name": "計算"}]},
            {"atom": "inventory", "group": "_1", "class": "VCPU", "left": 702, "gone": 0, "examples": []},
            {"atom": "unit", "group": "_1", "class": "VCPU", "asked": 8, "left": 702, "gone": 0, "examples": []},
            {"atom": "room", "group": "_1", "class": "VCPU", "asked": 8, "left": 0, "gone": 702, "most_free": 6,
             "examples": []},
        ],
        "relaxations": [
            {"less": [{"atom": "room", "group": "_1", "class": "VCPU", "asked": 8, "enough": 6}], "trees": 37,
             "query": "resources_1=VCPU:6", "example": {"uuid": "3", "name": "cmp-3"}},
            {"less": [{"atom": "forbidden", "group": "", "traits": ["!A"]}], "trees": 1, "query": "q",
             "example": {"uuid": "4", "name": "cmp-4"}},
        ],
        "nearest": [{"root": {"uuid": "3", "name": "cmp-3"},
                     "lacks": [{"atom": "room", "group": "_1", "class": "VCPU", "asked": 8, "free": 6,
                                "capacity": 24}],
                     "holders": [{"consumer": "c", "type": null, "project": "p", "class": "VCPU", "amount": 16,
                                  "since": "2026-11-26T20:00:00Z"}], "holders_more": 2}],
        "position": {"index": "1.42", "node": 2}, "cost": {"ms": 6.4, "steps": 1},
    })
}

#[test]
fn an_explanation_begins_with_its_cause() {
    let expected = "\
no candidates; there are candidates with VCPU:6 in place of 8 for group _1: 37 trees, such as cmp-3

REMAINING  REMOVED  CONDITION                                      FOR EXAMPLE
     5012        -  all trees                                      -
      702     4310  aggregate 6f or 7a                             cmp-1, 計算
        0      702  room for VCPU:8 for group _1 (6 free at most)  -
        -        0  2 more conditions remove nothing (-o wide)     -

what would fit:
  with VCPU:6 in place of 8 for group _1: 37 trees, such as cmp-3
    resources_1=VCPU:6
  with trait A allowed: 1 tree, such as cmp-4
    q

what nearly fits (the nearest 1 of 5012 trees):
  cmp-3 has 6 of 24 VCPU free for group _1 (8 are requested)
    VCPU:16 held by c (-) of project p since 2026-11-26T20:00:00Z
    and 2 more consumers

explained from state 1.42 of node 2; --as-of 1.42 explains the same state again
";
    assert_eq!(explained(&read(&answer()), false), expected);
    let wide = explained(&read(&answer()), true);
    assert!(
        wide.contains("\n      702        0  VCPU:8 in one allocation for group _1"),
        "{wide}"
    );
}

#[test]
fn the_first_applicable_cause_is_reported() {
    let of = |changes: Value| {
        let mut answer = answer();
        for (key, value) in changes.as_object().unwrap() {
            answer[key] = value.clone();
        }
        cause(&answer)
    };
    let unknown = json!({"unknown": [{"class": "CUSTOM_GUP", "nearest": ["CUSTOM_GPU"]}]});
    assert_eq!(
        of(unknown),
        "no candidates: there is no resource class CUSTOM_GUP; similar: CUSTOM_GPU"
    );
    let empty = json!({"trees": 0, "unused": [{"class": "VCPU"}]});
    assert_eq!(of(empty), "no candidates: there are no providers");
    let unused = json!({"unused": [{"aggregate": "6f"}]});
    assert_eq!(
        of(unused),
        "no candidates: no provider has the aggregate 6f"
    );
    let nowhere = json!({"unknown": [{"provider": "7c"}]});
    assert_eq!(of(nowhere), "no candidates: there is no provider 7c");
    let first =
        json!([{"atom": "required", "group": "", "traits": ["A", "B"], "left": 0, "gone": 5012}]);
    assert_eq!(
        of(json!({"funnel": first, "cause": 0, "relaxations": []})),
        "no candidates: no tree has trait A or B"
    );
    let full = json!({"relaxations": [{"less": [{"atom": "member_of", "group": "", "aggregates": ["6f"]}],
                                       "trees": 5, "example": {"name": "cmp-9"}}]});
    assert_eq!(
        of(full),
        "no candidates: 702 remaining trees have at most 6 VCPU free for group _1; 8 are requested; there are candidates \
         without aggregate 6f: 5 trees, such as cmp-9"
    );
    let some = json!({"verdict": "some", "with_candidates": 3, "undecided": 1});
    assert_eq!(
        of(some),
        "candidates on 3 of 5012 trees (1 tree not searched to the end)"
    );
    let undecided = json!({"verdict": "undecided", "undecided": 9});
    assert_eq!(
        of(undecided),
        "undecided: no candidates on 5012 trees so far (9 trees not searched to the end)"
    );
    assert_eq!(
        of(json!({"trees": 0, "funnel": [], "cause": null, "relaxations": []})),
        "no candidates: there are no providers"
    );
    assert_eq!(
        WORDS.cause(&Explanation::default()),
        "undecided: no candidates on 0 trees so far"
    );
}

#[test]
fn a_host_requested_by_name_is_the_cause() {
    let mut answer = answer();
    answer["funnel"][0] =
        json!({"atom": "in_tree", "group": "", "provider": "3", "left": 1, "gone": 5011});
    assert_eq!(
        cause(&answer),
        "no candidates: cmp-3 has 6 of 24 VCPU free for group _1 (8 are requested); held by c"
    );
}

#[test]
fn the_hold_of_a_consumer_is_named() {
    let mut answer = answer();
    answer["funnel"][0] =
        json!({"atom": "in_tree", "group": "", "provider": "3", "left": 1, "gone": 5011});
    for (hold, words) in [
        (json!({"for": []}), " (held)"),
        (json!({"for": ["d"]}), " (held for d)"),
        (
            json!({"for": [], "lease_until": "2026-11-26T21:00:00Z"}),
            " (held until 2026-11-26T21:00:00Z)",
        ),
        (
            json!({"for": ["d", "e", "f"], "due": "2026-12-24T06:00:00Z"}),
            " (held for d and 2 more, due 2026-12-24T06:00:00Z)",
        ),
    ] {
        answer["nearest"][0]["holders"][0]["hold"] = hold;
        let text = explained(&read(&answer), false);
        let line = format!(" of project p since 2026-11-26T20:00:00Z{words}\n");
        assert!(text.contains(&line), "{line:?} is not in {text}");
        let cause = cause(&answer);
        assert!(
            cause.ends_with(&format!("; held by c{words}")),
            "{words:?} does not end {cause}"
        );
    }
}

#[test]
fn a_trait_on_another_provider_is_named() {
    let mut answer = answer();
    let (root, device) = (
        json!({"uuid": "6", "name": "cmp-6"}),
        json!({"uuid": "7", "name": "cmp-6_gpu"}),
    );
    let gold = json!({"atom": "required", "group": "_1", "traits": ["GOLD"], "left": 0, "gone": 702,
                      "elsewhere": {"root": root, "provider": device}});
    answer["funnel"][3] = gold.clone();
    answer["relaxations"] = json!([]);
    assert_eq!(
        cause(&answer),
        "no candidates: no remaining tree has trait GOLD on a provider of VCPU for group _1; cmp-6 has it on cmp-6_gpu"
    );
    answer["nearest"] = json!([{"root": root, "lacks": [gold], "holders": []}]);
    let text = explained(&read(&answer), false);
    for line in [
        "cmp-6 lacks trait GOLD on a suitable provider for group _1 (cmp-6_gpu has it)\n",
        "  trait GOLD on a provider of VCPU for group _1  ",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let without = json!({"less": [{"atom": "required", "group": "_1", "traits": ["GOLD"]}], "trees": 60, "query": "q",
                         "example": {"name": "cmp-1"}});
    answer["relaxations"] = json!([without]);
    assert!(
        cause(&answer).ends_with(
            "cmp-6 has it on cmp-6_gpu; there are candidates without trait GOLD for group _1: 60 trees, such as cmp-1"
        ),
        "a trait that a host has is not only reported as missing: {}",
        cause(&answer)
    );
}

#[test]
fn equal_groups_are_merged() {
    let mut answer = answer();
    let groups = ["1", "2", "3", "4", "5"];
    answer["funnel"][3] = json!({"atom": "together", "group": "", "left": 0, "gone": 702,
        "short": {"class": "PCI", "asked": 5, "most": 4, "groups": groups}});
    let less = |group: &&str| {
        json!({"less": [{"atom": "inventory", "group": group, "class": "PCI"}], "trees": 60, "query": "q",
               "example": {"name": "cmp-1"}})
    };
    answer["relaxations"] = groups.iter().map(less).collect();
    let text = explained(&read(&answer), false);
    assert!(
        text.starts_with(
            "no candidates: at most 4 PCI on one host; 5 are requested (groups 1 to 5)\n"
        ),
        "{text}"
    );
    let folded = "  without PCI for one of groups 1 to 5: 60 trees, such as cmp-1\n";
    assert_eq!(text.matches("without PCI").count(), 1, "{text}");
    assert!(text.contains(folded), "{text}");

    let inventory = |group: &&str| {
        let gone = if *group == "1" { 40 } else { 0 };
        json!({"atom": "inventory", "group": group, "class": "PCI", "left": 60, "gone": gone})
    };
    let mut funnel: Vec<Value> = groups.iter().map(inventory).collect();
    answer["nearest"] = json!([{"root": {"name": "cmp-9"}, "lacks": funnel, "holders": []}]);
    funnel.push(answer["funnel"][3].clone());
    answer["funnel"] = json!(funnel);
    answer["cause"] = json!(5);
    let text = explained(&read(&answer), false);
    for line in [
        "       60       40  an inventory of PCI for groups 1 to 5  -\n",
        "        0      702  a place for all groups at once         -\n\n",
        "  cmp-9 has no PCI for groups 1 to 5\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let wide = explained(&read(&answer), true);
    for group in groups {
        let row = format!("an inventory of PCI for group {group} ");
        assert!(wide.contains(&row), "{row:?} is not in {wide}");
    }
}

#[test]
fn groups_with_other_conditions_are_not_merged() {
    let room = |group: &str, gone: u64| {
        json!({"atom": "room", "group": group, "class": "VCPU", "asked": 4, "left": 0, "gone": gone,
               "most_free": 2})
    };
    let device =
        json!({"atom": "required", "group": "1", "traits": ["GOLD"], "left": 10, "gone": 0});
    let mut answer = answer();
    answer["trees"] = json!(10);
    answer["relaxations"] = json!([]);
    for (funnel, shown) in [
        (
            vec![room("1", 10), room("2", 0)],
            "for groups 1, 2; 4 are requested by each",
        ),
        (vec![room("", 10), room("1", 0)], "; 4 are requested"),
        (
            vec![device, room("1", 10), room("2", 0)],
            "for group 1; 4 are requested",
        ),
    ] {
        answer["cause"] = json!(if funnel.len() == 2 { 0 } else { 1 });
        answer["funnel"] = json!(funnel);
        let line = cause(&answer);
        assert!(
            line.starts_with("no candidates: 10 trees have at most 2 VCPU free"),
            "{line}"
        );
        assert!(line.ends_with(shown), "{line}");
        assert_eq!(line.contains("groups"), shown.contains("groups"), "{line}");
    }
}

#[test]
fn a_condition_that_some_trees_meet_names_the_others_only() {
    let stage = |atom: &str, names: Value, gone: u64, left: u64| {
        let mut stage = json!({"atom": atom, "group": "", "gone": gone, "left": left});
        let key = if atom == "member_of" {
            "aggregates"
        } else {
            "traits"
        };
        stage[key] = names;
        stage
    };
    let mut answer = answer();
    answer["trees"] = json!(100);
    answer["relaxations"] = json!([]);
    for (first, gone, shown) in [
        (
            ("required", json!(["A"])),
            60,
            "60 of 100 trees do not have trait A",
        ),
        (
            ("required", json!(["A"])),
            1,
            "1 of 100 trees does not have trait A",
        ),
        (
            ("root_required", json!(["A"])),
            60,
            "60 of 100 roots do not have trait A",
        ),
        (
            ("forbidden", json!(["!A"])),
            60,
            "60 of 100 trees have the forbidden trait A",
        ),
        (
            ("member_of", json!(["6f"])),
            60,
            "60 of 100 trees are not in aggregate 6f",
        ),
        (
            ("member_of", json!(["!6f"])),
            1,
            "1 of 100 trees is in aggregate 6f, which is excluded",
        ),
        (("required", json!(["A"])), 100, "no tree has trait A"),
    ] {
        let (atom, names) = first;
        let left = 100 - gone;
        let last = stage("required", json!(["B"]), left, 0);
        answer["funnel"] = json!([stage(atom, names, gone, left), last]);
        answer["cause"] = json!(0);
        assert_eq!(cause(&answer), format!("no candidates: {shown}"));
    }
    answer["funnel"][0] = stage("required", json!(["A"]), 60, 40);
    answer["funnel"][1] = stage("required", json!(["B"]), 30, 10);
    answer["cause"] = json!(1);
    assert_eq!(
        cause(&answer),
        "no candidates: 30 of 40 remaining trees do not have trait B"
    );
}

#[test]
fn groups_are_named_shortly() {
    let mut answer = answer();
    answer["relaxations"] = json!([]);
    for (groups, shown) in [
        (&["1"][..], "group 1"),
        (&["1", "2"], "groups 1, 2"),
        (&["_a-0", "_a-1", "_a-2"], "groups _a-0 to _a-2"),
        (&["_a", "_b", "_c", "_d"], "groups _a, _b, _c and 1 more"),
        (&["", "1"], "the unnumbered group and group 1"),
    ] {
        answer["funnel"][3] = json!({"atom": "together", "group": "", "left": 0, "gone": 702,
            "short": {"class": "VCPU", "asked": 9, "most": 8, "groups": groups}});
        assert_eq!(
            cause(&answer),
            format!("no candidates: at most 8 VCPU on one host; 9 are requested ({shown})")
        );
    }
}

#[test]
fn a_capacity_below_the_total_is_explained() {
    for (reserved, ratio, shown) in [
        (6, 1.0, "; 6 of 8 reserved"),
        (0, 0.25, "; total is 8, allocation_ratio is 0.25"),
        (4, 0.5, "; 4 of 8 reserved, allocation_ratio is 0.5"),
    ] {
        let mut answer = answer();
        answer["nearest"][0]["lacks"][0]["reduced"] =
            json!({"total": 8, "reserved": reserved, "allocation_ratio": ratio});
        let text = explained(&read(&answer), false);
        let line = format!("cmp-3 has 6 of 24 VCPU free for group _1 (8 are requested{shown})\n");
        assert!(text.contains(&line), "{line:?} is not in {text}");
    }
}

#[test]
fn a_search_with_candidates_is_not_the_cause() {
    let search = |candidates: u64, explanation: Option<&Value>| LookedUp {
        explained_now: None,
        kept: NodeSearch {
            node: 1,
            search: Search {
                at: Some("2026-11-26T20:00:00Z".into()),
                candidates,
                query: "resources=VCPU:8".into(),
                microversion: Some("1.36".into()),
                user_id: Some("u".into()),
                project_id: Some("p".into()),
                explanation: explanation.map(read),
                ..Search::default()
            },
        },
    };
    let text = text_of(&[search(0, Some(&answer())), search(7, None)], false);
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("Placement returned candidates for 1 of 2 searches"),
        "{text}"
    );
    assert!(first.contains("Nova's filters"), "{text}");
    for line in [
        "\n2026-11-26T20:00:00Z  7 candidates from node 1, requested with microversion 1.36 by \
         user u of project p\n",
        "\n  no candidates; there are candidates with VCPU:6",
        "\n  resources=VCPU:8\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let mut now = search(0, Some(&answer()));
    now.explained_now = Some(true);
    now.kept.search.user_name = Some("nova".into());
    now.kept.search.project_name = Some("service".into());
    let text = text_of(&[now], false);
    assert!(
        text.starts_with("no candidates; there are candidates with VCPU:6"),
        "{text}"
    );
    assert!(
        text.contains("the original explanation is not available"),
        "{text}"
    );
    let named = "by user nova (u) of project service (p)\n";
    assert!(text.contains(named), "{text}");
}

#[test]
fn a_claim_begins_with_its_refusal() {
    let claim = |outcome: &'static str, refusal: Option<&'static str>, query: &'static str| {
        let search = Search {
            candidates: 2,
            claim: Some(outcome.into()),
            refusal: refusal.map(Into::into),
            query: query.into(),
            ..Search::default()
        };
        LookedUp {
            explained_now: None,
            kept: NodeSearch { node: 1, search },
        }
    };
    let over = || {
        claim(
            "over_ceiling",
            Some("The claim would exceed ceiling 0."),
            "",
        )
    };
    let text = text_of(&[over()], false);
    assert!(
        text.starts_with("The claim would exceed ceiling 0.\n"),
        "{text}"
    );
    for line in [
        "  2 choices from node 1",
        "\n  a claim of given choices\n",
        "\n  claim refused (over_ceiling): The claim would exceed ceiling 0.\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let text = text_of(&[over(), claim("claimed", None, "resources=VCPU:1")], false);
    assert!(text.starts_with("The claim was accepted.\n"), "{text}");
    assert!(text.contains("  2 candidates from node 1"), "{text}");
}

#[test]
fn a_request_that_a_limit_refused_begins_with_the_limit() {
    let limit = "Project p is at its limit of VCPU: 18 are used, 22 would be used after this write, and the limit \
                 is 20.";
    let search = |candidates: u64, query: &'static str| Search {
        candidates,
        query: query.into(),
        ..Search::default()
    };
    let refused = Search {
        claim: Some("over_limit".into()),
        refusal: Some(limit.into()),
        ..search(1, "")
    };
    let empty = Search {
        explanation: Some(read(&answer())),
        ..search(0, "resources=VCPU:4")
    };
    let searches = [search(7, "resources=VCPU:4"), refused, empty].map(|search| LookedUp {
        explained_now: None,
        kept: NodeSearch { node: 1, search },
    });
    let text = text_of(&searches, false);
    assert!(text.starts_with(&format!("{limit}\n")), "{text}");
    for line in [
        "  a write from node 1",
        "\n  a write of allocations\n",
        &format!("\n  write refused (over_limit): {limit}\n"),
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let text = text_of(&searches[1..2], false);
    assert!(text.starts_with(&format!("{limit}\n")), "{text}");
}
