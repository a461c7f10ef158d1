//! Which rare paths ran: a path that never runs in any simulation is not shown to be right by them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use placement_raft_store::coverage::RarePath;

thread_local! {
    static RAN: RefCell<Option<Counted>> = const { RefCell::new(None) };
}

/// How often each path ran.
pub type Counted = BTreeMap<RarePath, u64>;

/// Begins to count on this thread.
pub fn begin() {
    RAN.set(Some(Counted::new()));
}

/// How often a path ran since it is counted on this thread.
pub fn times(path: RarePath) -> u64 {
    RAN.with_borrow(|ran| {
        let counted = ran.as_ref().and_then(|counted| counted.get(&path));
        counted.copied().unwrap_or_default()
    })
}

/// Ends it, and returns what was counted.
pub fn end() -> Counted {
    RAN.take().unwrap_or_default()
}

/// The path runs.
pub(crate) fn note(path: RarePath) {
    RAN.with_borrow_mut(|ran| {
        if let Some(counted) = ran {
            *counted.entry(path).or_default() += 1;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_between_begin_and_end_is_counted() {
        let _simulation = crate::simulate(1);
        RarePath::LogPurged.ran();
        begin();
        RarePath::LogTruncated.ran();
        RarePath::LogTruncated.ran();
        assert_eq!(times(RarePath::LogTruncated), 2);
        assert_eq!(end(), Counted::from([(RarePath::LogTruncated, 2)]));
        RarePath::LogTruncated.ran();
        assert_eq!(end(), Counted::new());
    }

    #[test]
    fn no_two_paths_have_one_name() {
        let mut names: Vec<_> = RarePath::ALL.iter().map(|path| path.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RarePath::ALL.len());
    }
}
