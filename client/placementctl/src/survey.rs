//! Collects the status of all members of a cluster.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, Error, Member, MemberRole, NodeStatus};
use placement_words::{Condition, Health, Survey, nodes};
use tokio::time::{sleep, timeout};

/// Timeout after which a member counts as unreachable. Longer than a node takes to detect that it
/// is not ready.
const PROBE_LIMIT: Duration = Duration::from_secs(3);
/// Timeout of each request that finds the cause of an error or of a delay.
pub(crate) const DIAGNOSIS_LIMIT: Duration = Duration::from_secs(3);
/// Time after which a voter that has lost the majority does not report that it is ready.
const READY_LAG: Duration = Duration::from_secs(1);

/// The statuses of all members.
pub(crate) async fn survey(admin: &Admin, timeout: Duration) -> Result<Survey, Error> {
    let survey = ask_all(admin, timeout).await?;
    let health = Health::from_survey(&survey);
    if health.condition != Condition::Degraded || health.ready > health.voters / 2 {
        return Ok(survey);
    }
    // The ready voters have reached a majority, which may have failed since then.
    sleep(READY_LAG).await;
    ask_all(admin, timeout).await
}

/// Asks one node for the membership, and then each member for its status.
async fn ask_all(admin: &Admin, timeout: Duration) -> Result<Survey, Error> {
    let asked = admin.status().await?;
    let known = asked.members.clone();
    let survey = probe_all(admin, asked, &known, timeout).await;
    // The membership of the first node may be out of date.
    let newest = survey.newest().members.clone();
    let is_known = |id: u64| survey.members.iter().any(|(member, _)| member.id == id);
    if newest.len() == survey.members.len() && newest.iter().all(|member| is_known(member.id)) {
        return Ok(survey);
    }
    Ok(probe_all(admin, survey.asked, &newest, timeout).await)
}

async fn probe_all(
    admin: &Admin,
    asked: NodeStatus,
    members: &[Member],
    timeout: Duration,
) -> Survey {
    let limit = PROBE_LIMIT.min(timeout);
    let probes: Vec<_> = (members.iter().cloned())
        .map(|member| tokio::spawn(probe(admin.clone(), member, limit)))
        .collect();
    let (mut answers, mut errors) = (Vec::new(), BTreeMap::new());
    for (member, probe) in members.iter().zip(probes) {
        let (status, error) = probe.await.unwrap_or_default();
        answers.push((member.clone(), status));
        errors.extend(error.map(|error| (member.id, error)));
    }
    let mut survey = Survey::new(asked, answers);
    survey.errors = errors;
    survey
}

/// The status of a member, and the error if the member does not answer directly.
async fn probe(
    admin: Admin,
    member: Member,
    limit: Duration,
) -> (Option<NodeStatus>, Option<String>) {
    let id = member.id;
    let direct = async { admin.for_member(&member, limit)?.status().await };
    // Several nodes may be asked to relay the request.
    let error = match timeout(limit, direct).await {
        Ok(Ok(status)) if status.node_id == id => return (Some(status), None),
        Ok(Ok(other)) => {
            let error = format!("node {} answers at {}", other.node_id, member.admin);
            return (None, Some(error));
        }
        Ok(Err(error)) => error,
        Err(_) => return (None, Some(format!("no answer within {limit:?}"))),
    };
    // An obstacle, such as an expired certificate, is no obstacle to nodes that are connected.
    let has_obstacle =
        matches!(&error, Error::Unreachable { obstacles, .. } if !obstacles.is_empty());
    let reason = match error {
        Error::Unreachable { reason, .. } => reason,
        Error::Refused(refused) => refused.message().to_owned(),
        error => error.to_string(),
    };
    if !has_obstacle {
        return (None, Some(reason));
    }
    let relayed = admin.relayed(id, limit).status().await.ok();
    (relayed.filter(|status| status.node_id == id), Some(reason))
}

/// Fails if there is no quorum, so that a change could only wait in vain. Without a leader but with
/// a majority, as during an election, the change can wait.
pub(crate) async fn require_quorum(admin: &Admin) -> Result<(), Error> {
    match loss(admin, false).await {
        Some(Loss { text, can_pass }) if !can_pass => Err(Error::NothingCommitted { reason: text }),
        _ => Ok(()),
    }
}

/// Which nodes answer, if there is no quorum; or that the asked node is cut off. `can_be_local`:
/// whether the command has `--local`.
pub(crate) async fn without_quorum(admin: &Admin, can_be_local: bool) -> Option<String> {
    loss(admin, can_be_local).await.map(|loss| loss.text)
}

/// The loss of the leader or of the quorum.
struct Loss {
    text: String,
    /// Whether a majority answers, and may elect a leader.
    can_pass: bool,
}

async fn loss(admin: &Admin, can_be_local: bool) -> Option<Loss> {
    let admin = admin.without_repetition(DIAGNOSIS_LIMIT);
    let found = survey(&admin, DIAGNOSIS_LIMIT).await.ok()?;
    let health = Health::from_survey(&found);
    if health.condition == Condition::Unknown {
        return health.problems.into_iter().next().map(|text| Loss {
            text,
            can_pass: false,
        });
    }
    if health.condition != Condition::NoQuorum || health.voters == 0 {
        return None;
    }
    let ids = |answers: bool| -> Vec<u64> {
        let members = found.members.iter();
        let chosen = members.filter(|(_, status)| status.is_some() == answers);
        chosen.map(|(member, _)| member.id).collect()
    };
    let say = |ids: &[u64], one: &str, many: &str| match ids.len() {
        1 => format!("{} {one}", nodes(ids)),
        _ => format!("{} {many}", nodes(ids)),
    };
    let (answering, silent) = (ids(true), ids(false));
    let is_up = |(member, status): &&(Member, Option<NodeStatus>)| {
        member.role == MemberRole::Voter && status.is_some()
    };
    // A majority that answers has no leader during an election, or if its nodes cannot reach each
    // other.
    let has_majority = found.members.iter().filter(is_up).count() > health.voters / 2;
    let lost = if has_majority { "leader" } else { "quorum" };
    let mut text = format!("no {lost}: ");
    if !answering.is_empty() {
        text += &say(&answering, "answers", "answer");
    }
    if !silent.is_empty() {
        text += if answering.is_empty() { "" } else { ", " };
        text += &say(&silent, "does not", "do not");
    }
    if can_be_local && let [first, ..] = &answering[..] {
        text += &format!("; `--local` shows the state of node {first}");
    }
    Some(Loss {
        text,
        can_pass: has_majority,
    })
}

/// Exit code of `status`.
pub(crate) fn exit_code(health: &Health) -> ExitCode {
    match health.condition {
        Condition::Healthy => ExitCode::SUCCESS,
        Condition::Degraded => ExitCode::from(1),
        Condition::NoQuorum | Condition::Unknown => ExitCode::from(NO_QUORUM),
    }
}

/// Exit code without a quorum or a response.
pub(crate) const NO_QUORUM: u8 = 2;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use placement_client::{Body, BoxFuture, Client, Obstacle, Transport, TransportError, whole};

    use super::*;

    const EXPIRED: &str = "its certificate ended 2026-11-29T02:23Z";

    /// A cluster in which node 2 has an expired certificate, but is still connected to node 1; node
    /// 1 listens at the address of node 3, too; and node 4 does not run.
    struct Nodes;

    impl Transport for Nodes {
        fn send(
            &self,
            request: Request<Full<Bytes>>,
        ) -> BoxFuture<Result<Response<Body>, TransportError>> {
            let node_id = match (request.uri().host(), request.uri().path()) {
                (Some("n1" | "n3"), "/v1/status") => Ok(1),
                (Some("n1"), "/v1/nodes/2/status") => Ok(2),
                (Some("n2"), _) => Err(TransportError::Unusable(
                    Obstacle::Settings,
                    EXPIRED.to_owned(),
                )),
                _ => Err(TransportError::NotSent("Connection refused".to_owned())),
            };
            let member = |id| Member {
                id,
                admin: format!("https://n{id}:1"),
                ..Member::default()
            };
            let status = |node_id| NodeStatus {
                node_id,
                members: (1..=4).map(member).collect(),
                ..NodeStatus::default()
            };
            let answer = node_id.map(|node_id| {
                let body = serde_json::to_vec(&status(node_id)).unwrap();
                Response::new(whole(body.into()))
            });
            Box::pin(async { answer })
        }
    }

    #[tokio::test]
    async fn a_member_without_an_answer_has_a_reason() {
        let client = Client::over(["https://n1:1"], Nodes).unwrap();
        let found = survey(&Admin::new(client), PROBE_LIMIT).await.unwrap();
        let answering: Vec<u64> = found.answers().map(|status| status.node_id).collect();
        assert_eq!(answering, [1, 2]);
        let errors = [
            (2, format!("https://n2:1: {EXPIRED}")),
            (3, "node 1 answers at https://n3:1".to_owned()),
            (4, "https://n4:1: Connection refused".to_owned()),
        ];
        assert_eq!(found.errors, errors.into());
    }
}
