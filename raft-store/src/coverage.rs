//! Rare paths, which simulations count: a path that never runs in any of them is not shown to
//! be right by them.

/// Declares the paths with their names.
macro_rules! rare_paths {
    ($($(#[doc = $doc:literal])+ $path:ident = $name:literal,)+) => {
        /// A rare path.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RarePath {
            $($(#[doc = $doc])+ $path,)+
        }

        impl RarePath {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$path,)+];

            /// What it is called.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$path => $name,)+
                }
            }
        }
    };
}

rare_paths! {
    /// Entries at the end of the log that another leader did not have were taken back.
    LogTruncated = "log truncated",
    /// Entries that a snapshot holds were dropped from the log.
    LogPurged = "log purged",
    /// Entries were read from the disk, as the cache had them no more.
    LogReadFromDisk = "log read from the disk",
    /// A snapshot took the place of the state.
    SnapshotInstalled = "snapshot installed",
    /// An installation that a crash had interrupted was done again at start.
    InstallRepeated = "interrupted install done again",
    /// A snapshot that had come in before a crash was installed at start.
    ReceivedInstalled = "received snapshot installed at start",
    /// A snapshot that came in was refused, as it was damaged or not what its sender announced.
    SnapshotRefused = "received snapshot refused",
    /// A snapshot of the node's own was damaged when it was sent, and was built again.
    SnapshotMended = "damaged snapshot built again",
    /// A node refused to start on rows that were damaged.
    RowsRefused = "damaged rows refused",
    /// A node refused to start on an older copy of its data directory.
    OlderCopyRefused = "older copy refused",
    /// A snapshot was sent on from where an earlier attempt had ended.
    SnapshotResumed = "snapshot resumed",
    /// A snapshot was not sent now, as the receiver refused or something failed.
    SnapshotPutOff = "snapshot put off",
    /// A frame went out in pieces.
    SentInPieces = "frame sent in pieces",
    /// A connection was given up, as nothing came over it.
    ConnectionSilent = "silent connection given up",
    /// A write was taken back by the node that had forwarded it.
    WriteGivenUp = "forwarded write given up",
    /// A leader waited, before its first stamp, for what earlier ones had stamped.
    ClockSettled = "stamps of earlier leaders waited for",
    /// A leader whose clock was ahead stamped by the clocks of a majority.
    ClockBounded = "stamped by the clocks of a majority",
    /// A write was asked again, as its outcome was not known.
    WriteAskedAgain = "write of unknown outcome asked again",
    /// A write was refused, with the word that nothing was committed.
    NothingCommitted = "write refused, nothing committed",
    /// A write was left with an outcome that is not known.
    OutcomeUnknown = "write left with an unknown outcome",
    /// A write was refused, as too many waited.
    WriteBusy = "write refused, too many wait",
    /// Several reads shared one question to the leader.
    RoundShared = "read round shared",
    /// A leader confirmed with the node that asked, and no other, that it still leads.
    RoundOfTwo = "read round of two",
    /// The voters confirmed, while the leader was asked, that it still leads.
    RoundOfMany = "read round of many",
    /// A question to the leader was in vain.
    RoundFailed = "read round failed",
    /// Leadership was handed to another node.
    HandedOver = "leadership handed over",
    /// A leader has found a node to hand leadership to at a site that is preferred.
    BetterSite = "better site found for the leader",
}
