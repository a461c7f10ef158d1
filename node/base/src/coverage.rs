//! Rare code paths. Simulations count how often each runs, to show paths that they do not test.

/// Declares the paths with their names.
macro_rules! rare_paths {
    ($($(#[doc = $doc:literal])+ $path:ident = $name:literal,)+) => {
        /// A rare code path.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RarePath {
            $($(#[doc = $doc])+ $path,)+
        }

        impl RarePath {
            /// All rare paths, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$path,)+];

            /// Name in reports of simulations.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$path => $name,)+
                }
            }
        }
    };
}

rare_paths! {
    /// Entries at the end of the log that the new leader does not have were truncated.
    LogTruncated = "log truncated",
    /// Entries covered by a snapshot were purged from the log.
    LogPurged = "log purged",
    /// Log entries were read from disk because they were no longer cached.
    LogReadFromDisk = "log read from the disk",
    /// A snapshot replaced the state.
    SnapshotInstalled = "snapshot installed",
    /// A start repeated a snapshot installation that a crash had interrupted.
    InstallRepeated = "interrupted install done again",
    /// A start installed a snapshot that was received before a crash.
    ReceivedInstalled = "received snapshot installed at start",
    /// A received snapshot was rejected because it was damaged or differed from its announcement.
    SnapshotRefused = "received snapshot refused",
    /// A node found its own snapshot damaged while sending it, and rebuilt it.
    SnapshotMended = "damaged snapshot built again",
    /// A node refused to start because rows were damaged.
    RowsRefused = "damaged rows refused",
    /// A node refused to start from an older copy of its data directory.
    OlderCopyRefused = "older copy refused",
    /// A snapshot transfer resumed where an earlier attempt had ended.
    SnapshotResumed = "snapshot resumed",
    /// A snapshot transfer was postponed because the receiver refused it or an error occurred.
    SnapshotPutOff = "snapshot put off",
    /// A frame was sent in pieces.
    SentInPieces = "frame sent in pieces",
    /// A connection was closed because no answer arrived on it in time.
    ConnectionSilent = "silent connection given up",
    /// A node withdrew a write that it had forwarded.
    WriteGivenUp = "forwarded write given up",
    /// Before its first timestamp, a new leader waited until it had applied the entries of earlier
    /// leaders.
    ClockSettled = "stamps of earlier leaders waited for",
    /// A leader whose clock differed from the clocks of a majority used their time.
    ClockBounded = "stamped by the clocks of a majority",
    /// A write of unknown outcome was sent again.
    WriteAskedAgain = "write of unknown outcome asked again",
    /// A write was rejected with the guarantee that nothing was committed.
    NothingCommitted = "write refused, nothing committed",
    /// A write ended with an unknown outcome.
    OutcomeUnknown = "write left with an unknown outcome",
    /// A repeated claim was answered as done, since an earlier attempt was committed.
    ClaimRepeated = "repeated claim answered as done",
    /// A write was rejected because too many were waiting.
    WriteBusy = "write refused, too many wait",
    /// Several reads shared one read-index request to the leader.
    RoundShared = "read round shared",
    /// The leader and the node that asked for a read index were a quorum by themselves.
    RoundOfTwo = "read round of two",
    /// The votes of further voters confirmed a read index.
    RoundOfMany = "read round of many",
    /// A read-index request failed.
    RoundFailed = "read round failed",
    /// Leadership was transferred to another node.
    HandedOver = "leadership handed over",
    /// A leader found a node at a preferred site to transfer leadership to.
    BetterSite = "better site found for the leader",
}
