//! The feature level of the cluster.

use placement_model::Level;
use placement_model::command::{Command, RaiseLevel};

use crate::cloud::Cloud;

fn raise(to: u32) -> Command {
    Command::RaiseLevel(RaiseLevel { to: Level(to) })
}

#[test]
fn initial_level_has_no_row() {
    let mut cloud = Cloud::new();
    assert_eq!(cloud.state.level(), Level::FIRST);
    let before = cloud.digest();
    cloud.done(raise(1));
    assert_eq!(cloud.digest(), before);
}
