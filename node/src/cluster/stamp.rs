//! The time that the leader puts on commands.

use placement_model::types::Timestamp;

/// Stamps commands with a time that never goes back, not even from leader to leader.
#[derive(Default)]
pub(super) struct Stamper {
    last: Timestamp,
}

impl Stamper {
    /// The time for the next command of the log: `now`, but after all of its own, and after that of the
    /// last command that was applied, from any leader.
    pub(super) fn stamp(&mut self, now: Timestamp, applied: Option<Timestamp>) -> Timestamp {
        let before = self.last.max(applied.unwrap_or(Timestamp(0)));
        self.last = now.max(Timestamp(before.0.saturating_add(1)));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_rise_although_the_clock_goes_back_and_an_earlier_leader_was_ahead() {
        let mut stamper = Stamper::default();
        let mut stamp = |now, applied: Option<i64>| {
            let applied = applied.map(Timestamp);
            stamper.stamp(Timestamp(now), applied).0
        };
        assert_eq!(stamp(1_000, None), 1_000);
        assert_eq!(stamp(900, None), 1_001);
        // Applied, loaded or installed: another leader's clock was ahead.
        let ahead = Some(2_000);
        assert_eq!(stamp(900, ahead), 2_001);
        assert_eq!(stamp(900, ahead), 2_002);
        assert_eq!(stamp(3_000, ahead), 3_000);
    }
}
