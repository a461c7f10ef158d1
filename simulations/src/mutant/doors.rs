//! Read doors that break their promises.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use placement_node::doors::{
    Consistency, PlacementIndex, Position, ReadDoor, SharedState, Unavailable, View,
};

use super::Mutant;

/// What is put around the read door.
pub(super) fn around(mutant: Option<Mutant>) -> fn(Arc<dyn ReadDoor>) -> Arc<dyn ReadDoor> {
    match mutant {
        Some(Mutant::LocalReadAsLinearizable) => |door| {
            asking(door, |asked, _| match asked {
                Consistency::Linearizable => Ok(Consistency::Local),
                other => Ok(other),
            })
        },
        Some(Mutant::TokenLessOne) => |door| {
            asking(door, |asked, _| match asked {
                Consistency::Session(token) => Ok(Consistency::Session(PlacementIndex {
                    index: token.index.saturating_sub(1),
                    ..token
                })),
                other => Ok(other),
            })
        },
        Some(Mutant::TokenNotWaitedFor) => |door| {
            asking(door, |asked, here| match asked {
                Consistency::Session(token) if here.index < Some(token) => {
                    Err(Unavailable::NothingCommitted {
                        reason: "this node has not come so far".to_owned(),
                        retry_after: Duration::from_secs(1),
                    })
                }
                other => Ok(other),
            })
        },
        Some(Mutant::BoundIgnored) => |door| {
            asking(door, |asked, _| match asked {
                Consistency::Bounded(_) => Ok(Consistency::Local),
                other => Ok(other),
            })
        },
        Some(Mutant::SessionGivesUp) => |door| Arc::new(GivesUp(door)),
        Some(Mutant::HalvedStaleness) => |door| Arc::new(Younger(door, |age| age / 2)),
        Some(Mutant::AgeBeginsAgain) => |door| {
            Arc::new(Younger(door, |age| {
                // Who hears the leader is not as old as that.
                age.checked_sub(Duration::from_secs(3)).unwrap_or(age)
            }))
        },
        Some(Mutant::OtherEpoch) => |door| Arc::new(OfAnotherEpoch(door)),
        Some(Mutant::StateOfTheReadBefore) => |door| {
            Arc::new(OneBehind {
                door,
                before: Mutex::default(),
            })
        },
        _ => |door| door,
    }
}

/// What is asked in place of what was asked, by a node that stands there.
type Instead = fn(Consistency, Position) -> Result<Consistency, Unavailable>;

fn asking(door: Arc<dyn ReadDoor>, instead: Instead) -> Arc<dyn ReadDoor> {
    Arc::new(Asking { door, instead })
}

struct Asking {
    door: Arc<dyn ReadDoor>,
    instead: Instead,
}

impl ReadDoor for Asking {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        match (self.instead)(consistency, self.door.position()) {
            Ok(consistency) => self.door.view(consistency),
            Err(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }

    fn position(&self) -> Position {
        self.door.position()
    }
}

struct GivesUp(Arc<dyn ReadDoor>);

impl ReadDoor for GivesUp {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(async move {
            match (self.0.view(consistency).await, consistency) {
                (Err(_), Consistency::Session(_)) => self.0.view(Consistency::Local).await,
                (answer, _) => answer,
            }
        })
    }

    fn position(&self) -> Position {
        self.0.position()
    }
}

/// With what is said of an age.
struct Younger(Arc<dyn ReadDoor>, fn(Duration) -> Duration);

impl Younger {
    fn rejuvenated(&self, position: Position) -> Position {
        Position {
            staleness: position.staleness.map(self.1),
            ..position
        }
    }
}

impl ReadDoor for Younger {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(async move {
            let mut view = self.0.view(consistency).await?;
            view.position = self.rejuvenated(view.position);
            Ok(view)
        })
    }

    fn position(&self) -> Position {
        self.rejuvenated(self.0.position())
    }
}

struct OfAnotherEpoch(Arc<dyn ReadDoor>);

impl ReadDoor for OfAnotherEpoch {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(async move {
            let mut view = self.0.view(consistency).await?;
            if let Some(index) = &mut view.position.index {
                index.epoch += 1;
            }
            Ok(view)
        })
    }

    fn position(&self) -> Position {
        self.0.position()
    }
}

struct OneBehind {
    door: Arc<dyn ReadDoor>,
    before: Mutex<Option<SharedState>>,
}

impl ReadDoor for OneBehind {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(async move {
            let mut view = self.door.view(consistency).await?;
            let mut before = self.before.lock().expect("nobody panics with the state");
            if let Some(before) = before.replace(view.state.clone()) {
                view.state = before;
            }
            Ok(view)
        })
    }

    fn position(&self) -> Position {
        self.door.position()
    }
}
