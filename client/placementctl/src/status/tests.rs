use std::collections::BTreeMap;

use placement_client::SlowFollower;
use placement_words::Condition;

use super::*;
use crate::render::word;

fn member(id: u64) -> Member {
    Member {
        id,
        name: format!("node-{id}"),
        role: MemberRole::Voter,
        ..Member::default()
    }
}

fn status(id: u64, role: NodeRole, applied: u64) -> NodeStatus {
    NodeStatus {
        node_id: id,
        cluster_id: Some("c".to_owned()),
        role,
        term: 3,
        leader: Some(1),
        last_log: Some(applied),
        committed: Some(applied),
        applied: Some(applied),
        level: Some(1),
        level_max: 2,
        version: "1.2.3".to_owned(),
        ready: true,
        makes_backups: true,
        settings: settings(&[]),
        disk_used_bytes: Some(5 << 20),
        disk_free_bytes: Some(3 << 30),
        members: vec![member(1), member(2), member(3)],
        ..NodeStatus::default()
    }
}

fn settings(others: &[(&str, &str)]) -> BTreeMap<String, String> {
    let bound = ("cluster_id", "c");
    let all = [bound].into_iter().chain(others.iter().copied());
    all.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn survey(answers: [Option<NodeStatus>; 3]) -> Survey {
    Survey {
        asked: status(2, NodeRole::Follower, 47),
        members: (1..=3).map(member).zip(answers).collect(),
        errors: BTreeMap::new(),
    }
}

fn reported(answers: [Option<NodeStatus>; 3]) -> ClusterReport {
    ClusterReport::new(&survey(answers))
}

#[test]
fn the_leader_of_the_last_term_determines_the_members() {
    let mut leader = status(1, NodeRole::Leader, 50);
    leader.members.push(member(4));
    let answers = [
        Some(leader.clone()),
        Some(status(2, NodeRole::Follower, 49)),
        Some(status(3, NodeRole::Follower, 49)),
    ];
    let survey = survey(answers);
    assert_eq!(survey.newest().members, leader.members);

    // Without a leader, the node with the longest log counts.
    let mut ahead = status(2, NodeRole::Follower, 50);
    ahead.members.push(member(4));
    let survey = self::survey([None, Some(ahead.clone()), follower(3)]);
    assert_eq!(survey.newest().members, ahead.members);
}

fn leader() -> Option<NodeStatus> {
    Some(status(1, NodeRole::Leader, 50))
}

fn follower(id: u64) -> Option<NodeStatus> {
    Some(status(id, NodeRole::Follower, 47))
}

fn stuck(id: u64) -> Option<NodeStatus> {
    Some(NodeStatus {
        ready: false,
        not_ready: Some("no leader is known".to_owned()),
        leader: None,
        ..status(id, NodeRole::Follower, 47)
    })
}

#[test]
fn an_unreachable_member_is_shown_and_lag_is_relative_to_the_leader() {
    let report = reported([leader(), follower(2), None]);
    assert_eq!(report.leader, Some(1));
    assert_eq!(report.members[1].lag, Some(3));
    assert_eq!(report.members[2].lag, None);
    let text = report.printed(&Output::default()).unwrap();
    assert!(text.contains("voter     no answer"), "{text}");
    assert!(text.contains("feature level 1\n"), "{text}");
    assert!(text.contains("1.2.3    3.0 GiB"), "{text}");
    let width = text.lines().map(str::len).max();
    assert!(width <= Some(80), "{text}");
}

#[test]
fn the_age_of_backups_is_shown_and_sites_only_if_there_are_any() {
    let mut answers = [leader(), follower(2), follower(3)];
    let now = OffsetDateTime::now_utc().unix_timestamp();
    if let [Some(first), Some(second), _] = &mut answers {
        first.last_backup = u64::try_from(now - 3700).ok();
        second.makes_backups = false;
    }
    let mut survey = survey(answers);
    let table = |survey: &Survey| {
        let text = ClusterReport::new(survey).printed(&Output::default());
        text.unwrap()
    };
    let text = table(&survey);
    let of_node = |text: &str, id: u64| {
        let mut lines = text.lines();
        let start = format!("   {id}  node-{id}");
        lines
            .find(|line| line.starts_with(&start))
            .unwrap()
            .to_owned()
    };
    assert!(of_node(&text, 1).ends_with("  1 h ago"), "{text}");
    assert!(of_node(&text, 2).ends_with("  -"), "{text}");
    assert!(of_node(&text, 3).ends_with("  none yet"), "{text}");
    assert!(!text.contains("SITE"), "{text}");
    survey.members[0].0.zone = "rack-1".to_owned();
    survey.asked.members[0].zone = "rack-1".to_owned();
    assert!(table(&survey).contains("SITE"));
    let list = members(&survey, &Output::default()).unwrap();
    assert!(
        list.starts_with("NODE  NAME    SITE    ROLE      READY\n"),
        "{list}"
    );
}

#[test]
fn backup_problems_are_warnings() {
    let mut answers = [leader(), follower(2), follower(3)];
    if let Some(status) = &mut answers[1] {
        status.backup_problem = Some("no backup is made: full".to_owned());
    }
    let report = reported(answers);
    assert_eq!(report.health.condition, Condition::Healthy);
    let text = report.printed(&Output::default()).unwrap();
    assert!(
        text.ends_with("1 may fail\nwarning: backups of node 2: no backup is made: full\n"),
        "{text}"
    );
}

#[test]
fn a_leader_of_an_earlier_term_is_superseded() {
    let mut hung = status(1, NodeRole::Leader, 50);
    let mut leads = status(2, NodeRole::Leader, 51);
    let mut follows = status(3, NodeRole::Follower, 51);
    hung.ready = false;
    for newer in [&mut leads, &mut follows] {
        (newer.term, newer.leader) = (4, Some(2));
    }
    let report = reported([Some(hung), Some(leads), Some(follows)]);
    let roles: Vec<_> = report.members.iter().map(|one| word(one.role)).collect();
    assert_eq!(report.leader, Some(2));
    assert_eq!(roles, ["superseded", "leader", "follower"]);
    let text = report.printed(&Output::default()).unwrap();
    let warning = "warning: node 1 believes that it leads in term 3, but node 2 leads in term 4";
    assert!(text.contains(warning), "{text}");
}

#[test]
fn settings_that_differ_between_nodes_are_named() {
    let mut answers = [leader(), follower(2), follower(3)];
    let of = |user_in_flight, listens: bool| {
        let listen = ("partitions.north.listen", "port 9000");
        let all = [("callers.user_in_flight", user_in_flight), listen];
        settings(&all[..1 + usize::from(listens)])
    };
    for (answer, (bytes, listens)) in
        answers
            .iter_mut()
            .zip([("5", true), ("7", true), ("5", false)])
    {
        if let Some(status) = answer {
            status.settings = of(bytes, listens);
        }
    }
    let report = reported(answers);
    assert_eq!(report.health.condition, Condition::Healthy);
    assert_eq!(
        report.warnings,
        [
            "callers.user_in_flight must be the same on all nodes, but is 5 on nodes 1 and 3 and 7 on node 2",
            "partitions.north.listen must be the same on all nodes, but is not set on node 3 and port 9000 on \
             nodes 1 and 2",
        ]
    );
}

#[test]
fn missing_backups_and_unbound_nodes_are_warnings() {
    let unsafe_ones = || {
        [leader(), follower(2), follower(3)].map(|answer| {
            answer.map(|status| NodeStatus {
                makes_backups: false,
                settings: [("policy".to_owned(), "rules 1".to_owned())].into(),
                ..status
            })
        })
    };
    let report = reported(unsafe_ones());
    let [backups, bound] = &report.warnings[..] else {
        panic!("{:?}", report.warnings);
    };
    assert!(backups.contains("no node makes backups"), "{backups}");
    assert_eq!(
        bound,
        "nodes 1, 2 and 3 have no cluster_id: with an empty data directory they would form a new, empty cluster. \
         Set cluster_id = \"c\""
    );
    // The unreachable node may make backups.
    let [first, second, _] = unsafe_ones();
    let report = reported([first, second, None]);
    let backups = "no node that answers makes backups: ";
    assert!(
        report.warnings[0].starts_with(backups),
        "{:?}",
        report.warnings
    );
    assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
    let report = reported([None, None, None]);
    assert_eq!(report.warnings, [""; 0]);
}

#[test]
fn a_member_with_a_nearly_full_disk_is_a_degradation() {
    let mut answers = [leader(), follower(2), follower(3)];
    if let Some(status) = &mut answers[2] {
        status.disk_problem = Some("the disk is nearly full".to_owned());
    }
    let health = Health::from_survey(&survey(answers));
    assert_eq!(
        health.text(),
        "degraded: 3 of 3 voters ready, 1 may fail\n  \
         node 3 reports that the disk is nearly full; additions are refused once a majority of the voters reports \
         this\n"
    );
}

#[test]
fn the_newest_member_reports_why_a_member_is_unreachable() {
    let mut survey = survey([leader(), follower(2), None]);
    survey.members[2].0.unreachable = Some("its certificate has expired".to_owned());
    let text = Health::from_survey(&survey).text();
    let reason = "\n  node 3 does not answer: its certificate has expired\n";
    assert!(text.ends_with(reason), "{text}");
}

#[test]
fn a_member_that_is_refused_does_answer() {
    let mut survey = survey([leader(), follower(2), None]);
    let reason = "refused: node 3 belongs to another cluster than node 1, whose is c";
    survey.members[2].0.unreachable = Some(reason.to_owned());
    let text = Health::from_survey(&survey).text();
    let problem =
        "\n  node 3 is refused: node 3 belongs to another cluster than node 1, whose is c\n";
    assert!(text.ends_with(problem), "{text}");
}

#[test]
fn the_error_of_a_direct_request_is_the_reason_if_no_node_has_one() {
    let expired = "https://n3:1: its certificate ended 2026-11-29T02:23Z";
    let mut survey = survey([leader(), follower(2), None]);
    survey.errors.insert(3, expired.to_owned());
    let text = Health::from_survey(&survey).text();
    assert!(
        text.ends_with(&format!("\n  node 3 does not answer: {expired}\n")),
        "{text}"
    );
    // Another node, which is still connected, relays the status.
    survey.members[2].1 = follower(3);
    assert_eq!(
        Health::from_survey(&survey).text(),
        format!(
            "degraded: 3 of 3 voters ready, 1 may fail\n  node 3 answers only through another node: {expired}; the \
             other nodes still reach it\n"
        )
    );
}

/// A node with the data directory of another cluster, where it voted more often.
fn foreign(id: u64) -> Option<NodeStatus> {
    Some(NodeStatus {
        cluster_id: Some("d".to_owned()),
        term: 9,
        ready: false,
        not_ready: Some("no leader".to_owned()),
        backup_problem: Some("no backup is made".to_owned()),
        settings: BTreeMap::new(),
        ..status(id, NodeRole::Follower, 4)
    })
}

#[test]
fn a_node_of_another_cluster_does_not_count_and_does_not_speak_for_the_cluster() {
    for has_leader in [true, false] {
        let [one, two] = if has_leader {
            [leader(), follower(2)]
        } else {
            [stuck(1), stuck(2)]
        };
        let report = reported([one, two, foreign(3)]);
        assert_eq!(report.cluster_id.as_deref(), Some("c"));
        assert_eq!(report.term, 3);
        assert_eq!(report.warnings, [""; 0]);
        assert_eq!(report.members[2].lag, None);
        assert_eq!(word(report.members[2].role), "foreign");
        let problem = "  node 3 belongs to another cluster, d: its data directory is the wrong one. Stop it and start \
                       it with its own data directory, or replace the node\n";
        let text = report.health.text();
        assert!(text.ends_with(problem), "{text}");
        let condition = if has_leader {
            "degraded: 2 of 3 voters ready, 0 may fail\n"
        } else {
            "no quorum: 0 of 3 voters ready, 2 needed"
        };
        assert!(text.starts_with(condition), "{text}");
    }
    // One answer of each cluster: the ready node decides, also if the other one was asked.
    let mut survey = survey([leader(), None, foreign(3)]);
    survey.asked.cluster_id = Some("d".to_owned());
    assert_eq!(survey.newest().node_id, 1);
}

#[test]
fn without_a_quorum_there_is_no_leader() {
    // The node remembers who led.
    let mut lonely = stuck(3).unwrap();
    lonely.leader = Some(1);
    let report = reported([None, None, Some(lonely)]);
    assert_eq!(report.leader, None);
    let text = report.printed(&Output::default()).unwrap();
    assert!(text.contains("   leader none   "), "{text}");
}

#[test]
fn drained_nodes_still_vote() {
    let drained = |id: u64, role| {
        Some(NodeStatus {
            ready: false,
            confirmed: true,
            not_ready: Some("an operator has drained this node".to_owned()),
            ..status(id, role, 50)
        })
    };
    let all = [
        drained(1, NodeRole::Leader),
        drained(2, NodeRole::Follower),
        drained(3, NodeRole::Follower),
    ];
    let report = reported(all);
    assert_eq!(report.leader, Some(1));
    let text = report.health.text();
    assert!(
        text.starts_with(
            "degraded: 0 of 3 voters ready, 1 may fail\n  node 1 is not ready: an operator"
        ),
        "{text}"
    );
}

#[test]
fn a_slow_follower_is_named_with_the_times_that_the_leader_measured() {
    let slow = SlowFollower {
        node: 3,
        ms: 640.4,
        round_trip_ms: 0.086,
        fastest: 2,
        fastest_ms: 2.04,
    };
    let reports = |answer: Option<NodeStatus>| {
        answer.map(|status| NodeStatus {
            slow_followers: vec![slow.clone()],
            ..status
        })
    };
    let report = reported([reports(leader()), follower(2), follower(3)]);
    assert_eq!(report.health.condition, Condition::Healthy);
    assert_eq!(
        report.warnings,
        [
            "node 3 is slow: it acknowledges log entries after 640 ms, although the round trip to it takes 0.1 ms and \
             node 2 acknowledges them after 2.0 ms; check its processor, its disk and its network"
        ]
    );
    // The measurements of a former leader are out of date.
    let report = reported([leader(), reports(follower(2)), follower(3)]);
    assert_eq!(report.warnings, [""; 0]);
}

/// The status with round trips to these nodes: the shortest, and the mean, in milliseconds.
fn measured<const N: usize>(
    answer: Option<NodeStatus>,
    trips: [(u64, f64, f64); N],
) -> Option<NodeStatus> {
    let trips = trips.map(|(node, ms, mean_ms)| MeasuredRoundTrip { node, ms, mean_ms });
    answer.map(|status| NodeStatus {
        round_trips: trips.into(),
        ..status
    })
}

#[test]
fn a_node_for_which_all_others_wait_is_slow_also_if_it_leads() {
    let answers = |of_1: f64, of_2: f64, of_3: f64| {
        [
            measured(leader(), [(2, 0.1, of_2), (3, 0.1, of_3)]),
            measured(follower(2), [(1, 0.1, of_1), (3, 0.1, of_3 + 5.0)]),
            measured(follower(3), [(1, 0.1, of_1), (2, 0.1, of_2)]),
        ]
    };
    let slow = |id: u64| {
        format!(
            "node {id} is slow: the other nodes wait 150 ms for its answers, although the round trip to it takes 0.1 ms; \
             check its processor, and whether something suspends its process or its virtual machine"
        )
    };
    let leads = "; it leads, so let another node lead: placementctl transfer-leader";
    assert_eq!(reported(answers(0.4, 0.4, 150.2)).warnings, [slow(3)]);
    assert_eq!(
        reported(answers(150.2, 0.4, 0.4)).warnings,
        [slow(1) + leads]
    );
    // On a busy machine all nodes are slow, and far nodes have long round trips.
    assert_eq!(reported(answers(90.0, 80.0, 150.2)).warnings, [""; 0]);
    let far = [
        measured(leader(), [(2, 0.1, 0.4), (3, 150.0, 151.0)]),
        measured(follower(2), [(1, 0.1, 0.4), (3, 150.0, 151.0)]),
        measured(follower(3), [(1, 150.0, 151.0), (2, 150.0, 151.0)]),
    ];
    assert_eq!(reported(far).warnings, [""; 0]);
    // One measurement may be that of a slow link.
    let [first, _, third] = answers(0.4, 0.4, 150.2);
    assert_eq!(reported([first, follower(2), third]).warnings, [""; 0]);
}

#[test]
fn a_member_that_accepts_connections_without_an_answer_hangs() {
    for (error, hangs) in [
        ("https://n3:1: no TLS handshake within 2s", true),
        ("no answer within 3s", true),
        ("https://n3:1: Connection refused", false),
    ] {
        let mut survey = survey([leader(), follower(2), None]);
        survey.members[2].0.unreachable = Some("cannot connect to n3:2 within 1s".to_owned());
        survey.errors = [(3, error.to_owned())].into();
        let text = Health::from_survey(&survey).text();
        let hint = ". It accepts connections, so its process hangs or is suspended";
        let hint = if hangs { hint } else { "" };
        let problem = format!("  node 3 does not answer: cannot connect to n3:2 within 1s{hint}\n");
        assert!(text.contains(&problem), "{text}");
    }
}

#[test]
fn a_node_with_an_expired_certificate_does_not_know_the_state_of_the_others() {
    let expired = |id, ready| {
        let mut status = stuck(id).unwrap();
        status.ready = ready;
        status.peer_certificate_expired = Some("2026-11-29T02:34:39Z".to_owned());
        Some(status)
    };
    let of = |answers: [Option<NodeStatus>; 3]| {
        let mut survey = survey(answers);
        survey.asked = survey.members[1].1.clone().unwrap();
        Health::from_survey(&survey)
    };
    let cut_off = of([None, expired(2, false), None]);
    assert_eq!(cut_off.condition, Condition::Unknown);
    assert_eq!(
        cut_off.text(),
        "unknown: node 2 is cut off: its certificate expired 2026-11-29T02:34:39Z. The other nodes refuse it, \
         so they could not be asked from here\n  \
         renew it where ca-key.pem is: placementctl tls renew node 2 --dir DIR\n  \
         for the state of the cluster, ask another node\n"
    );
    // Connections from before the expiry still work.
    let connected = of([leader(), expired(2, true), follower(3)]);
    assert_eq!(connected.condition, Condition::Healthy);
    let asked_directly = of([leader(), expired(2, false), follower(3)]);
    assert_eq!(asked_directly.condition, Condition::Degraded);
}

#[test]
fn a_replaced_learner_does_not_degrade_the_cluster() {
    let mut survey = survey([leader(), follower(2), None]);
    let mut successor = member(4);
    successor.name = "node-4".to_owned();
    let ready = status(4, NodeRole::Follower, 47);
    survey.members.push((successor, Some(ready)));
    let lost = &mut survey.members[2].0;
    lost.replaced_by = Some(4);
    let condition = Health::from_survey(&survey).condition;
    assert_eq!(condition, Condition::Degraded, "it has its vote");
    survey.members[2].0.role = MemberRole::Learner;
    survey.members[3].0.role = MemberRole::Learner;
    let condition = Health::from_survey(&survey).condition;
    assert_eq!(condition, Condition::Degraded, "no node has its vote");
    survey.members[3].0.role = MemberRole::Voter;
    let text = Health::from_survey(&survey).text();
    assert_eq!(text, "healthy: 3 of 3 voters ready, 1 may fail\n");
}

#[test]
fn health_counts_the_members_that_may_be_lost() {
    for (answers, condition, words) in [
        (
            [leader(), follower(2), follower(3)],
            Condition::Healthy,
            "healthy: 3 of 3 voters ready, 1 may fail\n",
        ),
        (
            [leader(), follower(2), None],
            Condition::Degraded,
            "degraded: 2 of 3 voters ready, 0 may fail\n  node 3 does not answer\n",
        ),
        (
            // The leader is ready, so it has a quorum, although this machine reaches no other
            // node.
            [leader(), None, None],
            Condition::Degraded,
            "degraded: 1 of 3 voters ready, 0 may fail\n  node 2 does",
        ),
        (
            [None, stuck(2), None],
            Condition::NoQuorum,
            "no quorum: 0 of 3 voters ready, 2 needed; nothing can be written\n  \
             node 1 does not answer\n  node 2 is not ready: no leader is known\n",
        ),
    ] {
        let health = Health::from_survey(&survey(answers));
        assert_eq!(health.condition, condition);
        assert!(health.text().starts_with(words), "{}", health.text());
    }
}
