use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::*;
use proptest::prelude::*;

fn parse(query: &str, minor: u8) -> Result<CandidateRequest, String> {
    let query = Query::parse(query).map_err(|_| "query".to_owned())?;
    parse_candidates(&query, Microversion::new(minor)).map_err(|error| error.message)
}

/// Parses a query with these parameters, and asserts that the time is at most linear in their
/// number.
fn is_read_soon(parameters: impl Iterator<Item = String>) -> CandidateRequest {
    let parameters: Vec<String> = parameters.collect();
    let query = format!(
        "resources=VCPU:1&group_policy=none&{}",
        parameters.join("&")
    );
    // CPU time of this thread, which is independent of other load on the machine.
    let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let began = spent();
    let request = parse(&query, 39).unwrap();
    assert!(spent() - began < Duration::from_secs(2));
    request
}

#[test]
fn repeated_keys_are_read_once() {
    let traits = vec!["required=A,A,A,A,A".to_owned(); 3_400];
    assert_eq!(
        is_read_soon(traits.into_iter()).groups[0].required.len(),
        17_000
    );
    let aggregate = "member_of=cccccccc-0000-0000-0000-000000000001".to_owned();
    let groups = is_read_soon(vec![aggregate; 3_400].into_iter()).groups;
    assert_eq!(groups[0].member_of.len(), 3_400);
    let groups = is_read_soon((1..20_000).map(|n| format!("resources{n}=VCPU:1"))).groups;
    assert_eq!(groups.len(), 20_000);
}

#[test]
fn groups_come_in_the_order_of_their_first_appearance() {
    let request = parse(
        "required2=CUSTOM_A&resources=VCPU:1&resources2=VCPU:2&limit=5",
        25,
    )
    .unwrap();
    let suffixes: Vec<_> = request
        .groups
        .iter()
        .map(|group| group.suffix.as_str())
        .collect();
    assert_eq!(suffixes, ["2", ""]);
    assert_eq!(request.limit, Some(5));
}

#[test]
fn suffixes_are_numbers_at_first_and_names_later() {
    for (key, from) in [
        ("resources1", 25),
        ("resources_CPU", 33),
        ("resources01", 33),
    ] {
        assert!(parse(&format!("{key}=VCPU:1"), from).is_ok(), "{key}");
        assert!(parse(&format!("{key}=VCPU:1"), from - 1).is_err(), "{key}");
    }
    let long = "x".repeat(65);
    assert!(parse(&format!("resources{long}=VCPU:1"), 39).is_err());
    assert!(parse("resources1@=VCPU:1", 39).is_err());
}

#[test]
fn several_named_groups_need_a_policy() {
    assert!(parse("resources1=VCPU:1&resources2=VCPU:1", 25).is_err());
    assert!(parse("resources1=VCPU:1&resources2=VCPU:1&group_policy=none", 25).is_ok());
    assert!(parse("resources=VCPU:1&resources2=VCPU:1", 25).is_ok());
}

#[test]
fn resourceless_groups_belong_into_a_subtree() {
    let base = "resources1=VCPU:1&required2=CUSTOM_A&group_policy=none";
    assert!(
        parse(base, 35)
            .unwrap_err()
            .contains("orphaned traits keys: required2")
    );
    assert!(parse(base, 36).unwrap_err().contains("bad group(s) - [2]"));
    assert!(parse(&format!("{base}&same_subtree=1,2"), 36).is_ok());
    assert!(
        parse(&format!("{base}&same_subtree=1,2,3"), 36)
            .unwrap_err()
            .contains("Real suffixes")
    );
    assert!(
        parse(&format!("{base}&same_subtree=1,"), 36)
            .unwrap_err()
            .contains("Empty string")
    );
    assert!(
        parse("required1=CUSTOM_A", 36)
            .unwrap_err()
            .contains("at least one resources")
    );
}

#[test]
fn the_first_limit_counts_and_the_last_is_checked() {
    assert_eq!(
        parse("resources=VCPU:1&limit=3&limit=9", 16).unwrap().limit,
        Some(3)
    );
    assert!(parse("resources=VCPU:1&limit=3&limit=x", 16).is_err());
    assert!(parse("resources=VCPU:1&limit=x&limit=3", 16).is_err());
    assert!(parse("resources=VCPU:1&limit=0", 16).is_err());
}

#[test]
fn contradictions_are_found_from_1_22() {
    assert!(parse("resources=VCPU:1&required=CUSTOM_A,!CUSTOM_A", 22).is_err());
    assert!(
        parse(
            "resources=VCPU:1&required=in:CUSTOM_A,CUSTOM_B&required=!CUSTOM_A",
            39
        )
        .is_ok()
    );
    assert!(parse("resources=VCPU:1&root_required=CUSTOM_A,!CUSTOM_A", 35).is_err());
    assert!(
        parse(
            "resources=VCPU:1&root_required=CUSTOM_A&root_required=CUSTOM_B",
            35
        )
        .is_err()
    );
}

proptest! {
    #[test]
    fn no_query_breaks_the_parser(
        keys in proptest::collection::vec("(resources|required|member_of|in_tree|limit|root_required|same_subtree|group_policy)[a-zA-Z0-9_]{0,2}", 0..6),
        values in proptest::collection::vec("([A-Z_]{1,5}:[0-9]{1,3}|in:[A-Z,!]{0,6}|[!]{0,2}[A-Z0-9,: ]{0,8})", 6),
        minor in 10_u8..40,
    ) {
        let pairs = keys.iter().zip(&values).map(|(key, value)| format!("{key}={value}"));
        let _ = parse(&pairs.collect::<Vec<_>>().join("&"), minor);
    }
}
