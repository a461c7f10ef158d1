//! Nodes by number or name.

use std::fmt;

use anyhow::bail;
use placement_client::{Admin, Member};

/// A node by number or name. A name is never a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    Number(u64),
    Name(String),
}

impl From<String> for Named {
    fn from(text: String) -> Self {
        text.parse().map_or(Self::Name(text), Self::Number)
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "node {number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Named {
    /// Whether this is the given member.
    pub(crate) fn is(&self, member: &Member) -> bool {
        match self {
            Self::Number(number) => member.id == *number,
            Self::Name(name) => member.name == *name,
        }
    }

    /// The number of the node. A name is looked up at the first node that answers.
    pub(crate) async fn number(&self, admin: &Admin) -> anyhow::Result<u64> {
        if let Self::Number(number) = self {
            return Ok(*number);
        }
        Ok(self.member(admin).await?.id)
    }

    /// The member as the first answering node knows it.
    pub(crate) async fn member(&self, admin: &Admin) -> anyhow::Result<Member> {
        let members = admin.status().await?.members;
        if let Some(member) = members.iter().find(|member| self.is(member)) {
            return Ok(member.clone());
        }
        let names: Vec<_> = members.iter().map(|member| &*member.name).collect();
        bail!("{self} is not a member; members: {}", names.join(", "));
    }
}

/// The number of an optional node.
pub(crate) async fn number(named: Option<Named>, admin: &Admin) -> anyhow::Result<Option<u64>> {
    match named {
        Some(named) => Ok(Some(named.number(admin).await?)),
        None => Ok(None),
    }
}
