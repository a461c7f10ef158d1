//! Join tokens: each admits one node, once.
//!
//! A token contains the number of the node that it admits, so that the node's certificate can name
//! it too. The log stores only a hash of the secret, so a token cannot be recovered from a log, a
//! backup or a snapshot.

use placement_model::Command;
use placement_model::command::{IssueJoinToken, RedeemJoinToken, RevokeJoinToken};
use placement_model::state::change::{JoinRow, Replaced};
use placement_model::types::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac;
use uuid::Uuid;

use super::description::must_be_free;
use super::membership::{Membership, MembershipChange};
use crate::error::Refused;
use crate::running::Running;
use crate::slot::Slot;
use placement_base::log_messages::log;
use placement_peer::raft::messages::JoinCall;

/// A token as text: the node's number, a dash and an unguessable secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct JoinToken {
    /// Number of the node that the token admits.
    pub(crate) node: u64,
    pub(crate) secret: String,
}

impl JoinToken {
    /// Maximum length of a secret.
    const SECRET_MAX: usize = 128;

    /// Parses a token; `None` if the text is not one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (node, secret) = text.trim().split_once('-')?;
        let node = node.parse().ok().filter(|node| *node > 0)?;
        Self::is_secret(secret).then(|| Self {
            node,
            secret: secret.to_owned(),
        })
    }

    /// Whether the text has the form of a secret.
    fn is_secret(text: &str) -> bool {
        let fits = |c: char| c.is_ascii_alphanumeric();
        (1..=Self::SECRET_MAX).contains(&text.len()) && text.chars().all(fits)
    }
}

/// Hash of a secret as the log stores it, in hexadecimal.
pub(crate) fn hash(secret: &[u8]) -> String {
    let hash = digest(&SHA256, secret);
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// An issued token without its secret, as operators see it.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The number assigned to the node that may join with it.
    pub node: u64,
    pub row: JoinRow,
    /// Whether that node is a member.
    pub is_member: bool,
}

impl Slot {
    /// Issues a token made of two fresh UUIDs. Only this call returns the secret.
    pub async fn issue_token(
        &self,
        fresh: [Uuid; 2],
        seconds: u64,
        replaces: Option<(u64, bool)>,
    ) -> Result<(String, Issued), Refused> {
        let secret: String = fresh.iter().map(|half| half.simple().to_string()).collect();
        let token = hash(secret.as_bytes());
        self.change(MembershipChange::IssueToken {
            token: token.clone(),
            seconds,
            replaces,
        })
        .await?;
        let running = self.member()?;
        running.catch_up().await?;
        let mut issued = running.tokens().into_iter();
        let issued = issued
            .find(|issued| issued.row.token == token)
            .ok_or_else(|| {
                let words = "no token was issued: too many tokens are pending; revoke some";
                Refused::Conflict(words.to_owned())
            })?;
        let replaces = issued.row.replaces.as_ref().map(|replaced| replaced.node);
        log!(
            JOIN_TOKEN_ISSUED,
            node = issued.node,
            valid_s = seconds,
            replaces,
            "a join token is issued"
        );
        Ok((format!("{}-{secret}", issued.node), issued))
    }

    /// Revokes the unused token of a node.
    pub async fn revoke_token(&self, node: u64) -> Result<(), Refused> {
        let running = self.member()?;
        running.catch_up().await?;
        let mut issued = running.tokens().into_iter();
        let Some(issued) = issued.find(|issued| issued.node == node) else {
            return Err(Refused::NotFound(format!(
                "no token is known for node {node}"
            )));
        };
        if issued.row.nonce.is_some() {
            return Err(Refused::Conflict(format!(
                "node {node} has already used its token"
            )));
        }
        let command = Command::RevokeJoinToken(RevokeJoinToken { node });
        let words = format!("revocation of the token for node {node}");
        running.carry_out(command, &words).await?;
        log!(JOIN_TOKEN_REVOKED, node, "a join token is revoked");
        Ok(())
    }
}

impl Running {
    /// All tokens that can be used or were usable recently, as far as this node has applied the
    /// log.
    pub fn tokens(&self) -> Vec<Issued> {
        let replica = &self.replica;
        let applied = replica.views.current();
        let rows = applied.cluster.default_partition().joins();
        let issued = rows
            .filter(|(_, row)| !row.token.is_empty())
            .map(|(node, row)| Issued {
                node,
                row: row.clone(),
                is_member: replica.is_member(node),
            });
        issued.collect()
    }
}

impl Membership<'_> {
    /// Checks the form of a join call.
    ///
    /// # Errors
    /// The answer to the calling node.
    pub(crate) fn must_be_well_formed(call: &JoinCall) -> Result<(), Refused> {
        if JoinToken::is_secret(&call.token) && call.node > 0 {
            Ok(())
        } else {
            Err(Refused::NotFound(UNKNOWN.to_owned()))
        }
    }

    /// Whether this token was issued for the calling node, as far as this node has applied the log.
    pub(crate) fn knows_token(&self, call: &JoinCall) -> bool {
        self.good_row(call.node, &hash(call.token.as_bytes()))
            .is_ok()
    }

    /// Assigns a number to a node that will join.
    pub(crate) async fn issue_token(
        &self,
        token: String,
        seconds: u64,
        replaces: Option<(u64, bool)>,
    ) -> Result<(), Refused> {
        let members = self.replica().members();
        let replaces = match replaces {
            None => None,
            Some((old, though_reachable)) => {
                self.must_be_gone(old, though_reachable).await?;
                self.end_tokens_for(old).await?;
                let known = members.get(&old);
                Some(Replaced {
                    node: old,
                    // A default name has the number of the node, so it is not inherited.
                    name: known.map_or(String::new(), |known| known.name.to_string()),
                    votes: self.now().1.contains(&old),
                    stays: false,
                    though_reachable,
                })
            }
        };
        let now = self.0.wall_time();
        let micros = i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        let command = Command::IssueJoinToken(IssueJoinToken {
            token,
            seconds,
            // The new number is above all numbers of members: a learner that has never written is
            // only in the membership.
            above: members.keys().next_back().copied().unwrap_or(0),
            replaces,
            expires_at: Timestamp(now.0.saturating_add(micros)),
        });
        let words = "a token for a new node";
        self.0.carry_out(command, words).await
    }

    /// Revokes the unused tokens of earlier replacements of node `old`: only one node may replace
    /// it.
    async fn end_tokens_for(&self, old: u64) -> Result<(), Refused> {
        let is_for_it = |issued: &Issued| {
            let replaces = issued.row.replaces.as_ref();
            issued.row.nonce.is_none() && replaces.is_some_and(|replaced| replaced.node == old)
        };
        for Issued { node, .. } in self.0.tokens().into_iter().filter(is_for_it) {
            let revoke = Command::RevokeJoinToken(RevokeJoinToken { node });
            let words =
                format!("revocation of the token for node {node}, because a new one is issued");
            self.0.carry_out(revoke, &words).await?;
        }
        Ok(())
    }

    /// Refuses to replace a reachable node, unless `though_reachable`.
    pub(crate) async fn must_be_gone(
        &self,
        old: u64,
        though_reachable: bool,
    ) -> Result<(), Refused> {
        self.must_be_member(old)?;
        if though_reachable || self.reachable(&[old].into()).await.is_empty() {
            return Ok(());
        }
        Err(Refused::Conflict(format!(
            "node {old} is reachable, or was a moment ago: stop it first; if it has just stopped, \
            try again after some seconds. To replace a running node, use --though-reachable"
        )))
    }

    /// Admits a node with a valid token as a learner. A repeated call with the same token and nonce
    /// gets the same answer.
    pub(crate) async fn admit_joiner(&self, call: JoinCall) -> Result<(), Refused> {
        // Admissions by another leader may not be applied here yet.
        self.0.catch_up().await?;
        let (id, mut member) = (call.node, call.member);
        let (token, nonce) = (hash(call.token.as_bytes()), hash(call.nonce.as_bytes()));
        let row = self.good_row(id, &token)?;
        if row.nonce.is_none() {
            // If the log's timestamps were ahead of the clock when the token was issued, apply
            // would still accept the expired token.
            if self.0.wall_time() > row.expires_at {
                return Err(Refused::Conflict(TOO_LATE.to_owned()));
            }
            if let Some(replaced) = &row.replaces {
                self.must_be_gone(replaced.node, replaced.though_reachable)
                    .await?;
            }
            let redeem = RedeemJoinToken {
                node: id,
                token: token.clone(),
                nonce: nonce.clone(),
            };
            let words = format!("node {id} redeems its token");
            let redeem = Command::RedeemJoinToken(redeem);
            self.0.carry_out(redeem, &words).await?;
        }
        let row = self.good_row(id, &token)?;
        match row.nonce {
            None => return Err(Refused::Conflict(TOO_LATE.to_owned())),
            Some(first) if first != nonce => return Err(Refused::Conflict(USED.to_owned())),
            Some(_) => {}
        }
        if self.replica().is_member(id) {
            return Ok(());
        }
        let members = self.replica().members();
        let replaced = row.replaces.map(|replaced| replaced.node);
        let name = member.name_of(id);
        let has_it = members
            .iter()
            .find(|(other, one)| one.name_of(**other) == name);
        match has_it.map(|(other, _)| *other) {
            // The node gets the name once the replaced node is removed.
            Some(other) if Some(other) == replaced => member.name = Box::default(),
            _ => must_be_free(&members, id, &name)?,
        }
        self.add(id, member).await
    }

    /// The row of a token. Neither the text of the answer nor the time that it takes helps to guess
    /// a token.
    fn good_row(&self, id: u64, token: &str) -> Result<JoinRow, Refused> {
        let applied = self.replica().views.current();
        let row = applied.cluster.default_partition().join(id);
        let known = row.map_or("", |row| row.token.as_str());
        // Constant-time comparison by ring's verification of tags.
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[]);
        let tag = hmac::sign(&key, token.as_bytes());
        let same = hmac::verify(&key, known.as_bytes(), tag.as_ref());
        match row {
            Some(row) if same.is_ok() => Ok(row.clone()),
            _ => Err(Refused::NotFound(UNKNOWN.to_owned())),
        }
    }
}

/// Answer to an unknown token, which may have expired long ago.
pub(crate) const UNKNOWN: &str =
    "no node is expected with this token: the token is wrong or was revoked";
const USED: &str = "the token was used by another node, or by this one before its data directory \
    was emptied: create another one (`placementctl join-token create`)";
const TOO_LATE: &str = "the token has expired: create another one (`placementctl join-token \
                        create`)";

/// Expiry of a token, in seconds since 1970.
pub fn seconds(until: Timestamp) -> i64 {
    until.0 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::SingleMember;

    #[tokio::test]
    async fn same_token_admits_one_of_two_machines() {
        let alone = SingleMember::start().await;
        let fresh = [Uuid::from_u128(7), Uuid::from_u128(8)];
        let issued = alone.bootstrap.slot.issue_token(fresh, 600, None);
        let (token, _) = issued.await.unwrap();
        let token = JoinToken::read(&token).unwrap();
        let come = async |nonce: u128| {
            let call = JoinCall {
                node: token.node,
                token: token.secret.clone(),
                nonce: Uuid::from_u128(nonce),
                member: placement_raft_store::Member {
                    peer: "127.0.0.1:2".to_owned(),
                    ..Default::default()
                },
            };
            Membership(&alone.running).admit_joiner(call).await
        };
        // Both check the token before either redeems it, as two successive leaders may.
        let outcomes = futures::join!(come(1), come(2));
        let outcomes = [outcomes.0, outcomes.1];
        let is_used = |outcome: &&Result<(), Refused>| matches!(outcome, Err(Refused::Conflict(words)) if words == USED);
        assert_eq!(outcomes.iter().filter(is_used).count(), 1, "{outcomes:?}");
        // The other one is admitted as far as possible: no node listens at its address.
        let is_away = |outcome: &&Result<(), Refused>| matches!(outcome, Err(Refused::Unavailable(words)) if words.starts_with("the new node at"));
        assert_eq!(outcomes.iter().filter(is_away).count(), 1, "{outcomes:?}");
        alone.stop().await;
    }

    #[test]
    fn token_is_a_number_and_a_secret() {
        let token = JoinToken::read(" 4-c0ffee\n").unwrap();
        assert_eq!((token.node, token.secret.as_str()), (4, "c0ffee"));
        for none in ["", "4", "4-", "0-a", "-a", "a-b", "4-a b", "4--"] {
            assert!(JoinToken::read(none).is_none(), "{none:?}");
        }
        let long = format!("4-{}", "a".repeat(129));
        assert!(JoinToken::read(&long).is_none());
    }

    #[test]
    fn log_holds_the_hash_of_a_secret() {
        let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(b""), of_nothing);
    }
}
