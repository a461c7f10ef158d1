//! The feature level of the cluster.

use placement_model::command::{Command, RaiseLevel};
use placement_model::{Level, State};

use crate::cloud::Cloud;

fn raise(to: u32) -> Command {
    Command::RaiseLevel(RaiseLevel { to: Level(to) })
}

#[test]
fn a_cluster_begins_at_the_first_level_which_costs_no_row() {
    let cloud = Cloud::new();
    assert_eq!(cloud.state.level(), Level::FIRST);
    let before = cloud.digest();
    let mut cloud = cloud;
    cloud.done(raise(1));
    assert_eq!(cloud.digest(), before);
}

#[test]
fn the_level_rises_and_never_falls() {
    let mut cloud = Cloud::new();
    for (to, then) in [(3, 3), (2, 3), (3, 3), (4, 4)] {
        cloud.done(raise(to));
        assert_eq!(cloud.state.level(), Level(then));
    }
    let again = State::load(cloud.state.rows()).unwrap();
    assert_eq!(
        (again.level(), again.digest()),
        (Level(4), cloud.state.digest())
    );
}
