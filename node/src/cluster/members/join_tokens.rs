//! Who may join: tokens, each for one node and good once.
//!
//! A token names the number of the node that it lets in, so that the node's certificate can name it
//! too. What the log has of the rest of it is a hash: no one learns a token from a log, a backup or
//! a snapshot.

use placement_model::Command;
use placement_model::command::{IssueJoinToken, RedeemJoinToken, RevokeJoinToken};
use placement_model::state::change::{JoinRow, Replaced};
use placement_model::types::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac;
use uuid::Uuid;

use super::description::must_be_free;
use super::membership::{Membership, MembershipChange};
use crate::cluster::error::Refused;
use crate::cluster::running::Running;
use crate::cluster::slot::Slot;
use crate::rpc::message::JoinCall;

/// A token as text: the number and, behind a dash, what no one guesses.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct JoinToken {
    /// The number of the node that it lets in.
    pub(crate) node: u64,
    pub(crate) secret: String,
}

impl JoinToken {
    /// The most letters of a secret.
    const SECRET_MAX: usize = 128;

    /// Reads one; `None` if the text is not a token.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (node, secret) = text.trim().split_once('-')?;
        let node = node.parse().ok().filter(|node| *node > 0)?;
        Self::is_secret(secret).then(|| Self {
            node,
            secret: secret.to_owned(),
        })
    }

    /// Whether this may be a secret, by its form.
    fn is_secret(text: &str) -> bool {
        let fits = |c: char| c.is_ascii_alphanumeric();
        (1..=Self::SECRET_MAX).contains(&text.len()) && text.chars().all(fits)
    }
}

/// What the log has of a secret, in hexadecimal.
pub(crate) fn hash(secret: &[u8]) -> String {
    let hash = digest(&SHA256, secret);
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A token as operators see it afterwards.
#[derive(Debug, Clone)]
pub(crate) struct Issued {
    /// The number that it was given out with.
    pub(crate) node: u64,
    pub(crate) row: JoinRow,
    /// Whether its node is a member.
    pub(crate) is_member: bool,
}

impl Slot {
    /// Has a token made of two fresh UUIDs. It is shown here, and nowhere again.
    pub(crate) async fn issue_token(
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
        let issued = issued.find(|issued| issued.row.token == token);
        let issued = issued.ok_or_else(|| {
            let words = "no token was made: too many nodes are awaited already; revoke some";
            Refused::Conflict(words.to_owned())
        })?;
        let replaces = issued.row.replaces.as_ref().map(|replaced| replaced.node);
        tracing::info!(
            node = issued.node,
            valid_s = seconds,
            replaces,
            "a join token is issued"
        );
        Ok((format!("{}-{secret}", issued.node), issued))
    }

    /// Takes a token back.
    pub(crate) async fn revoke_token(&self, node: u64) -> Result<(), Refused> {
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
                "node {node} has come with its token"
            )));
        }
        let command = Command::RevokeJoinToken(RevokeJoinToken { node });
        let words = format!("revocation of the token for node {node}");
        running.carry_out(command, &words).await
    }
}

impl Running {
    /// All tokens that can still be used, or could be lately, as far as this node has applied the
    /// log.
    pub(crate) fn tokens(&self) -> Vec<Issued> {
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
    /// Whether a call has the form of one of a node that joins.
    ///
    /// # Errors
    /// The answer to the node that calls: it need not wait for it.
    pub(crate) fn must_be_well_formed(call: &JoinCall) -> Result<(), Refused> {
        match JoinToken::is_secret(&call.token) && call.node > 0 {
            true => Ok(()),
            false => Err(Refused::NotFound(UNKNOWN.to_owned())),
        }
    }

    /// Whether the token is that of a node that is awaited, as far as this node has applied the
    /// log.
    pub(crate) fn knows_token(&self, call: &JoinCall) -> bool {
        self.good_row(call.node, &hash(call.token.as_bytes()))
            .is_ok()
    }

    /// Gives a number to a node that is to join.
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
                    name: known.map_or(String::new(), |known| known.name_of(old).to_string()),
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
            // A learner that was never written to is known to the membership alone.
            above: members.keys().next_back().copied().unwrap_or(0),
            replaces,
            expires_at: Timestamp(now.0.saturating_add(micros)),
        });
        let words = "a token for a node that is to join";
        self.0.carry_out(command, words).await
    }

    /// Revokes the tokens with which no node has come yet that is to take this one's place: one
    /// node takes it.
    async fn end_tokens_for(&self, old: u64) -> Result<(), Refused> {
        let is_for_it = |issued: &Issued| {
            let replaces = issued.row.replaces.as_ref();
            issued.row.nonce.is_none() && replaces.is_some_and(|replaced| replaced.node == old)
        };
        for Issued { node, .. } in self.0.tokens().into_iter().filter(is_for_it) {
            let revoke = Command::RevokeJoinToken(RevokeJoinToken { node });
            let words =
                format!("revocation of the token for node {node}, as another one is issued");
            self.0.carry_out(revoke, &words).await?;
        }
        Ok(())
    }

    /// A node that is reachable is replaced only if that was asked for.
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
            "node {old} is reachable, or was a moment ago: stop it first, and try again after some seconds if it has \
             just ended. To replace a node that runs, say --though-reachable"
        )))
    }

    /// Admits a node that has a good token, as a learner. It gets the same answer if it asks again
    /// with the same token and nonce.
    pub(crate) async fn let_in(&self, call: JoinCall) -> Result<(), Refused> {
        // What another leader has let in may not be applied here yet.
        self.0.catch_up().await?;
        let (id, mut member) = (call.node, call.member);
        let (token, nonce) = (hash(call.token.as_bytes()), hash(call.nonce.as_bytes()));
        let row = self.good_row(id, &token)?;
        if row.nonce.is_none() {
            // By the stamps it may be good for longer, if they were ahead when it was issued.
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
            let words = format!("node {id} comes with its token");
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
            // It gets the name once the other one is gone.
            Some(other) if Some(other) == replaced => member.name = Box::default(),
            _ => must_be_free(&members, id, &name)?,
        }
        self.add(id, member).await
    }

    /// The row that a token belongs to. A guess reveals nothing, neither by the text of the answer
    /// nor by its time.
    fn good_row(&self, id: u64, token: &str) -> Result<JoinRow, Refused> {
        let applied = self.replica().views.current();
        let row = applied.cluster.default_partition().join(id);
        let known = row.map_or("", |row| row.token.as_str());
        // In constant time, as ring verifies tags.
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[]);
        let tag = hmac::sign(&key, token.as_bytes());
        let same = hmac::verify(&key, known.as_bytes(), tag.as_ref());
        match row {
            Some(row) if same.is_ok() => Ok(row.clone()),
            _ => Err(Refused::NotFound(UNKNOWN.to_owned())),
        }
    }
}

/// The answer to an unknown token. It may have expired long ago.
pub(crate) const UNKNOWN: &str =
    "no node is awaited with this token: it is wrong, or was taken back";
const USED: &str = "the token was used by another node, or by this one before its data directory was emptied: make \
                    another one (`placementctl join-token create`)";
const TOO_LATE: &str = "the time of the token is up: make another one \
                        (`placementctl join-token create`)";

/// When a token ends, in seconds since 1970.
pub(crate) fn seconds(until: Timestamp) -> i64 {
    until.0 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fixtures::Alone;

    #[tokio::test]
    async fn one_of_two_machines_with_the_same_token_is_admitted() {
        let alone = Alone::start().await;
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
            Membership(&alone.running).let_in(call).await
        };
        // Both have looked at the token before either has redeemed it, as with two leaders one
        // after the other.
        let outcomes = futures::join!(come(1), come(2));
        let outcomes = [outcomes.0, outcomes.1];
        let is_used = |outcome: &&Result<(), Refused>| matches!(outcome, Err(Refused::Conflict(words)) if words == USED);
        assert_eq!(outcomes.iter().filter(is_used).count(), 1, "{outcomes:?}");
        // The other one is let in as far as it can be: no node listens at its address.
        let is_away = |outcome: &&Result<(), Refused>| matches!(outcome, Err(Refused::Unavailable(words)) if words.starts_with("the new node at"));
        assert_eq!(outcomes.iter().filter(is_away).count(), 1, "{outcomes:?}");
        alone.stop().await;
    }

    #[test]
    fn a_token_is_a_number_and_a_secret() {
        let token = JoinToken::read(" 4-c0ffee\n").unwrap();
        assert_eq!((token.node, token.secret.as_str()), (4, "c0ffee"));
        for none in ["", "4", "4-", "0-a", "-a", "a-b", "4-a b", "4--"] {
            assert!(JoinToken::read(none).is_none(), "{none:?}");
        }
        let long = format!("4-{}", "a".repeat(129));
        assert!(JoinToken::read(&long).is_none());
    }

    #[test]
    fn the_log_holds_the_hash_of_a_secret() {
        let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(b""), of_nothing);
    }
}
