//! Times that have to fit how far the nodes are from each other.

use super::{Config, ConfigError};

/// A heartbeat is answered within so many round trips, at the least: it has three quarters of its time.
const HEARTBEAT: u64 = 2;
/// What the times are in heartbeats: the shortest and the longest silence before an election, and a silence
/// or an attempt after which a connection is given up.
const ELECTION_MIN: u64 = 3;
const ELECTION_MAX: u64 = 6;
const CONNECTION: u64 = 4;

impl Config {
    /// Has the times that were not chosen follow the round trip, if it is longer than they are made for.
    pub(super) fn follow_round_trip(&mut self, chosen: impl Fn(&str, &str) -> bool) {
        let beat = HEARTBEAT * self.raft.round_trip_ms;
        for (section, key, time, least) in [
            ("raft", "heartbeat_ms", &mut self.raft.heartbeat_ms, beat),
            (
                "raft",
                "election_min_ms",
                &mut self.raft.election_min_ms,
                ELECTION_MIN * beat,
            ),
            (
                "raft",
                "election_max_ms",
                &mut self.raft.election_max_ms,
                ELECTION_MAX * beat,
            ),
            (
                "peer",
                "silence_ms",
                &mut self.peer.silence_ms,
                CONNECTION * beat,
            ),
            (
                "peer",
                "connect_ms",
                &mut self.peer.connect_ms,
                CONNECTION * beat,
            ),
        ] {
            if !chosen(section, key) {
                *time = least.max(*time);
            }
        }
    }

    /// Whether the times fit the round trip that the operator has named.
    pub(super) fn validate_distance(&self) -> Result<(), ConfigError> {
        let round_trip = self.raft.round_trip_ms;
        const ROUND_TRIP_MAX: u64 = 10_000;
        if round_trip > ROUND_TRIP_MAX {
            return Err(ConfigError::invalid(
                "raft.round_trip_ms",
                format!("must be at most {ROUND_TRIP_MAX}"),
            ));
        }
        for (key, time, times, why) in [
            (
                "raft.heartbeat_ms",
                self.raft.heartbeat_ms,
                HEARTBEAT,
                "a heartbeat would be given up before its answer can come",
            ),
            (
                "raft.election_min_ms",
                self.raft.election_min_ms,
                2 * HEARTBEAT,
                "a candidate would give up before the votes can come",
            ),
            (
                "peer.silence_ms",
                self.peer.silence_ms,
                2,
                "a good connection would be given up",
            ),
            (
                "peer.connect_ms",
                self.peer.connect_ms,
                4,
                "TCP's and TLS's greetings take that long",
            ),
        ] {
            let least = times * round_trip;
            if time < least {
                return Err(ConfigError::invalid(
                    key,
                    format!(
                        "is {time}, and must be at least {least} where raft.round_trip_ms is {round_trip}: \
                         {why}. Unset, it follows raft.round_trip_ms"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The longest round trip, in milliseconds, for which the times are made.
    pub(crate) fn round_trip_max_ms(&self) -> u64 {
        self.raft.heartbeat_ms / HEARTBEAT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str) -> Result<[u64; 5], String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("node_id = 1\n{text}")).unwrap();
        let loaded = Config::load(Some(file.path()), [], []).map_err(|error| error.to_string());
        let (config, _) = loaded?;
        config.validate().map_err(|error| error.to_string())?;
        let (raft, peer) = (&config.raft, &config.peer);
        Ok([
            raft.heartbeat_ms,
            raft.election_min_ms,
            raft.election_max_ms,
            peer.silence_ms,
            peer.connect_ms,
        ])
    }

    #[test]
    fn times_that_are_not_chosen_follow_the_round_trip() {
        let near = [250, 1000, 1500, 1000, 1000];
        for (text, expected) in [
            ("", near),
            ("[raft]\nround_trip_ms = 30", near),
            ("[raft]\nround_trip_ms = 200", [400, 1200, 2400, 1600, 1600]),
            (
                "[raft]\nround_trip_ms = 200\nheartbeat_ms = 500\nelection_min_ms = 2000\nelection_max_ms = 3000",
                [500, 2000, 3000, 1600, 1600],
            ),
        ] {
            assert_eq!(times(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn times_that_contradict_the_round_trip_are_refused_with_words() {
        for (text, key) in [
            (
                "[raft]\nround_trip_ms = 200\nheartbeat_ms = 250",
                "raft.heartbeat_ms",
            ),
            (
                "[raft]\nround_trip_ms = 200\nheartbeat_ms = 400\nelection_min_ms = 500",
                "raft.election_min_ms",
            ),
            (
                "[raft]\nround_trip_ms = 600\n[peer]\nsilence_ms = 1000",
                "peer.silence_ms",
            ),
            (
                "[raft]\nround_trip_ms = 300\n[peer]\nconnect_ms = 1000",
                "peer.connect_ms",
            ),
            ("[raft]\nround_trip_ms = 20000", "raft.round_trip_ms"),
        ] {
            let why = times(text).unwrap_err();
            assert!(why.contains(key), "{text}: {why}");
        }
        // Chosen without a word of the distance, they are the operator's.
        times("[raft]\nheartbeat_ms = 50\nelection_min_ms = 200\nelection_max_ms = 300").unwrap();
    }
}
