//! What a simulated client can ask for, and how it is said in HTTP.
//!
//! Every write can be told from every other by its content (a user, a name or a `max_unit` that
//! carries the operation's number), so that it can be found in the log even if no answer came.
//! Only `Release` has no body to mark.

use std::collections::BTreeMap;
use std::fmt;

use placement_model::command::{
    Command, ConsumerGeneration, ConsumerTypeUpdate, CreateProvider, DeleteAllocations,
    ReplaceAllocations, ReplaceInventories,
};
use serde_json::{Value, json};
use uuid::Uuid;

/// The class that everybody contends for.
pub const CLASS: &str = "VCPU";
/// The consumer type of all consumers whose writes name one.
pub const CONSUMER_TYPE: &str = "INSTANCE";

/// One request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Changes something.
    Write(Write),
    /// Asks something.
    Read(Question, Level),
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// `POST /resource_providers`.
    CreateProvider {
        /// The provider.
        provider: Uuid,
        /// Its name, unique per operation.
        name: String,
    },
    /// `PUT /resource_providers/{uuid}/inventories` with one class.
    SetInventory {
        /// The provider.
        provider: Uuid,
        /// What the client last saw.
        generation: i64,
        /// Units; capacity, as nothing is reserved and the ratio is 1.
        total: u32,
        /// Far above `total`; marks the operation.
        max_unit: u32,
    },
    /// `PUT /allocations/{consumer}` for one claim, `POST /allocations` for several.
    Allocate(Vec<Claim>),
    /// `DELETE /allocations/{consumer}`.
    Release {
        /// The consumer.
        consumer: Uuid,
    },
    /// What a cluster writes on its own account, without a client.
    Housekeeping,
}

/// What one consumer shall hold; it replaces what it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The consumer.
    pub consumer: Uuid,
    /// Who is charged.
    pub project: String,
    /// Marks the operation.
    pub user: String,
    /// What the client believes of the consumer.
    pub belief: Belief,
    /// Units of [`CLASS`] per provider; empty gives everything back.
    pub amounts: BTreeMap<Uuid, u64>,
}

/// What a client believes of a consumer's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// Nothing: sent with microversion 1.27, which does not ask, and without a consumer type.
    Unchecked,
    /// There is no such consumer.
    New,
    /// It is at this generation.
    At(i64),
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// `GET /resource_providers/{uuid}/inventories`.
    Inventories(Uuid),
    /// `GET /resource_providers/{uuid}/usages`.
    ProviderUsages(Uuid),
    /// `GET /resource_providers/{uuid}/allocations`.
    ProviderAllocations(Uuid),
    /// `GET /allocations/{consumer}`.
    Allocations(Uuid),
    /// `GET /usages?project_id=`.
    ProjectUsages(String),
}

/// What a read is to promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// No header: linearizable by default.
    Default,
    /// `linearizable`, said aloud.
    Linearizable,
    /// `session`, at or after this token.
    Session(Token),
    /// `bounded`, in milliseconds.
    Bounded(u64),
    /// `local`.
    Local,
}

/// A `Placement-Index`: opaque to clients, but not to the checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// Which history.
    pub epoch: u64,
    /// How far in it.
    pub index: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.index)
    }
}

impl Token {
    /// Reads `epoch.index`.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, index) = text.split_once('.')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            index: index.parse().ok()?,
        })
    }
}

/// An HTTP request in the making.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `GET`, `PUT`, …
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// `1.39`, …
    pub microversion: &'static str,
    /// JSON, if there is a body.
    pub body: Option<Value>,
    /// `Placement-Consistency`, if the client says what it wants.
    pub consistency: Option<String>,
    /// `Placement-Min-Index`, if any.
    pub min_index: Option<String>,
}

const NEWEST: &str = "1.39";
/// Before consumer generations (1.28).
const OLD: &str = "1.27";

impl Operation {
    /// How the operation is said in HTTP.
    pub fn request(&self) -> Request {
        match self {
            Operation::Write(write) => write.request(),
            Operation::Read(question, level) => {
                let (consistency, min_index) = match level {
                    Level::Default => (None, None),
                    Level::Linearizable => (Some("linearizable".to_owned()), None),
                    Level::Session(token) => (Some("session".to_owned()), Some(token.to_string())),
                    Level::Bounded(ms) => {
                        let seconds = format!("{}.{:03}", ms / 1000, ms % 1000);
                        (Some(format!("bounded;max={seconds}")), None)
                    }
                    Level::Local => (Some("local".to_owned()), None),
                };
                Request {
                    consistency,
                    min_index,
                    ..bare("GET", question.path(), NEWEST, None)
                }
            }
        }
    }
}

fn bare(
    method: &'static str,
    path: String,
    microversion: &'static str,
    body: Option<Value>,
) -> Request {
    Request {
        method,
        path,
        microversion,
        body,
        consistency: None,
        min_index: None,
    }
}

impl Question {
    fn path(&self) -> String {
        match self {
            Question::Inventories(provider) => {
                format!("/resource_providers/{provider}/inventories")
            }
            Question::ProviderUsages(provider) => format!("/resource_providers/{provider}/usages"),
            Question::ProviderAllocations(provider) => {
                format!("/resource_providers/{provider}/allocations")
            }
            Question::Allocations(consumer) => format!("/allocations/{consumer}"),
            Question::ProjectUsages(project) => format!("/usages?project_id={project}"),
        }
    }
}

impl Write {
    fn request(&self) -> Request {
        match self {
            Write::CreateProvider { provider, name } => {
                let body = json!({ "uuid": provider.to_string(), "name": name });
                bare("POST", "/resource_providers".to_owned(), NEWEST, Some(body))
            }
            Write::SetInventory {
                provider,
                generation,
                total,
                max_unit,
            } => {
                let body = json!({
                    "resource_provider_generation": generation,
                    "inventories": { CLASS: { "total": total, "max_unit": max_unit } },
                });
                let path = format!("/resource_providers/{provider}/inventories");
                bare("PUT", path, NEWEST, Some(body))
            }
            Write::Allocate(claims) => {
                let old = claims.iter().any(|claim| claim.belief == Belief::Unchecked);
                let microversion = if old { OLD } else { NEWEST };
                match claims.as_slice() {
                    [claim] => {
                        let path = format!("/allocations/{}", claim.consumer);
                        bare("PUT", path, microversion, Some(claim.body()))
                    }
                    _ => {
                        let body = claims
                            .iter()
                            .map(|claim| (claim.consumer.to_string(), claim.body()))
                            .collect::<serde_json::Map<_, _>>();
                        let path = "/allocations".to_owned();
                        bare("POST", path, microversion, Some(Value::Object(body)))
                    }
                }
            }
            Write::Release { consumer } => {
                bare("DELETE", format!("/allocations/{consumer}"), NEWEST, None)
            }
            Write::Housekeeping => unreachable!("no client keeps house"),
        }
    }

    /// What a command in the log says. `None`: something that no simulated client asks for.
    pub fn from_command(command: &Command) -> Option<Self> {
        match command {
            Command::SyncStandards(_) | Command::RetireNode(_) | Command::RaiseLevel(_) => {
                Some(Write::Housekeeping)
            }
            Command::CreateProvider(CreateProvider {
                uuid,
                name,
                parent: None,
            }) => Some(Write::CreateProvider {
                provider: uuid.0,
                name: name.as_str().to_owned(),
            }),
            Command::ReplaceInventories(ReplaceInventories {
                provider,
                generation,
                inventories,
                ..
            }) => {
                let [(class, inventory)] =
                    inventories.iter().collect::<Vec<_>>().try_into().ok()?;
                (class.as_str() == CLASS).then_some(Write::SetInventory {
                    provider: provider.0,
                    generation: generation.0,
                    total: inventory.total,
                    max_unit: inventory.max_unit,
                })
            }
            Command::ReplaceAllocations(ReplaceAllocations { consumers }) => consumers
                .iter()
                .map(Claim::from_command)
                .collect::<Option<Vec<_>>>()
                .map(|claims| {
                    let mut claims = claims;
                    claims.sort_by_key(|claim| claim.consumer);
                    Write::Allocate(claims)
                }),
            Command::DeleteAllocations(DeleteAllocations { consumer }) => Some(Write::Release {
                consumer: consumer.to_string().parse().ok()?,
            }),
            _ => None,
        }
    }
}

impl Claim {
    fn body(&self) -> Value {
        let allocations = self
            .amounts
            .iter()
            .map(|(provider, amount)| {
                (
                    provider.to_string(),
                    json!({ "resources": { CLASS: amount } }),
                )
            })
            .collect::<serde_json::Map<_, _>>();
        let mut body = json!({
            "allocations": allocations,
            "project_id": self.project,
            "user_id": self.user,
        });
        match self.belief {
            Belief::Unchecked => return body,
            Belief::New => body["consumer_generation"] = Value::Null,
            Belief::At(generation) => body["consumer_generation"] = json!(generation),
        }
        body["consumer_type"] = json!(CONSUMER_TYPE);
        body
    }

    fn from_command(given: &placement_model::command::ConsumerAllocations) -> Option<Self> {
        let belief = match (&given.generation, &given.consumer_type) {
            (ConsumerGeneration::Unchecked, ConsumerTypeUpdate::Keep) => Belief::Unchecked,
            (ConsumerGeneration::New, ConsumerTypeUpdate::Set(_)) => Belief::New,
            (ConsumerGeneration::Expect(at), ConsumerTypeUpdate::Set(_)) => Belief::At(at.0),
            _ => return None,
        };
        let amounts = given
            .allocations
            .iter()
            .map(|one| {
                let [(class, amount)] = one.resources.iter().collect::<Vec<_>>().try_into().ok()?;
                (class.as_str() == CLASS).then_some((one.provider.valid()?.0, *amount))
            })
            .collect::<Option<BTreeMap<_, _>>>()?;
        Some(Self {
            consumer: given.consumer.to_string().parse().ok()?,
            project: given.project.as_str().to_owned(),
            user: given.user.as_str().to_owned(),
            belief,
            amounts,
        })
    }
}
