//! Nodes as operators name them.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use anyhow::bail;
use placement_client::{Admin, Member};

/// A node by its number or its name. No name is a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    Number(u64),
    Name(String),
}

impl FromStr for Named {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) => Self::Name(text.to_owned()),
        })
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
    /// Whether this member is meant.
    pub(crate) fn is(&self, member: &Member) -> bool {
        match self {
            Self::Number(number) => member.id == *number,
            Self::Name(name) => member.name == *name,
        }
    }

    /// The number. Who has a name is looked up at whichever node answers.
    pub(crate) async fn number(&self, admin: &Admin) -> anyhow::Result<u64> {
        if let Self::Number(number) = self {
            return Ok(*number);
        }
        let members = admin.status().await?.members;
        let Some(member) = members.iter().find(|member| self.is(member)) else {
            let names: Vec<_> = members.iter().map(|member| &*member.name).collect();
            bail!("no member is called {self}; they are {}", names.join(", "));
        };
        Ok(member.id)
    }
}
