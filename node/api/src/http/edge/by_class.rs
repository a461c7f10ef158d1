//! Counters by resource class. Clients choose the classes, so only some are counted by name.

use std::collections::BTreeMap;

/// Maximum number of resource classes that are counted by name.
const CLASSES_MAX: usize = 64;
/// The name of the counter for numbers of consumers.
pub(super) const CONSUMERS: &str = "consumers";
/// The name of the counter for further resource classes.
const OTHER: &str = "other";

/// The counters before any class is counted. The series of metrics begin at 0, as a series that
/// does not exist yet has no rate.
pub(super) fn new() -> BTreeMap<String, u64> {
    [CONSUMERS, OTHER].map(|class| (class.to_owned(), 0)).into()
}

/// The counter of this resource class or, with `consumers`, of numbers of consumers.
pub(super) fn counter<'a>(counts: &'a mut BTreeMap<String, u64>, class: &str) -> &'a mut u64 {
    let is_counted = counts.contains_key(class);
    // `CONSUMERS` and `OTHER` are not classes.
    let class = match class {
        class if is_counted || counts.len() < CLASSES_MAX + 2 => class,
        _ => OTHER,
    };
    counts.entry(class.to_owned()).or_default()
}

/// Adds the counters of another partition.
pub(super) fn add(sums: &mut BTreeMap<String, u64>, counts: BTreeMap<String, u64>) {
    for (class, count) in counts {
        *counter(sums, &class) += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_beyond_the_limit_count_as_other() {
        let mut counts = new();
        for number in 0..70 {
            *counter(&mut counts, &format!("CUSTOM_{number}")) += 1;
        }
        *counter(&mut counts, "CUSTOM_1") += 1;
        *counter(&mut counts, CONSUMERS) += 1;
        assert_eq!(counts.len(), CLASSES_MAX + 2);
        assert_eq!(counts[OTHER], 6);
        assert_eq!(counts["CUSTOM_1"], 2);
        assert_eq!(counts[CONSUMERS], 1);
        let same = counts.clone();
        add(&mut counts, same);
        assert_eq!(counts[OTHER], 12);
    }
}
