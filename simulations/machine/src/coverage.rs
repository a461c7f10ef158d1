//! Counts executions of rare paths. A simulation says nothing about a path that it never executes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use placement_base::coverage::RarePath;

thread_local! {
    static RAN: RefCell<Option<Counted>> = const { RefCell::new(None) };
}

/// Number of executions per path.
pub type Counted = BTreeMap<RarePath, u64>;

/// Starts counting on this thread, from zero.
pub fn begin() {
    RAN.set(Some(Counted::new()));
}

/// Executions of a path on this thread since [`begin`].
pub fn times(path: RarePath) -> u64 {
    RAN.with_borrow(|ran| {
        let counted = ran.as_ref().and_then(|counted| counted.get(&path));
        counted.copied().unwrap_or_default()
    })
}

/// Stops counting on this thread and returns the counts.
pub fn end() -> Counted {
    RAN.take().unwrap_or_default()
}

/// Counts one execution of a path.
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
    fn executions_are_counted_between_begin_and_end() {
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
    fn path_names_are_unique() {
        let mut names: Vec<_> = RarePath::ALL.iter().map(|path| path.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RarePath::ALL.len());
    }
}
