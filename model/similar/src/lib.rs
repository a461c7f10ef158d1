//! Finds the names that a misspelled name probably means. All suggestions in messages use it.

use strsim::osa_distance;

/// Maximum length of a text for which similar names are searched.
const TEXT_MAX_BYTES: usize = 64;
/// One mistake is tolerated per this many letters. A transposition of two letters is one mistake.
const LETTERS_PER_MISTAKE: usize = 4;
/// A text of at least this many letters also matches names that begin or end with it.
const PART_MIN: usize = 3;

/// The names that are most similar to `text`, at most `count`. Names that differ from it by the
/// fewest mistakes come first, then the shortest names that begin or end with it. Upper and lower
/// case are equal.
pub fn similar<'a>(
    text: &str,
    names: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    if count == 0 || text.len() > TEXT_MAX_BYTES {
        return Vec::new();
    }
    let text = text.to_ascii_uppercase();
    let most = text.len() / LETTERS_PER_MISTAKE;
    let is_part_of = |name: &str| {
        let rest = name.len().saturating_sub(text.len());
        let parts = [name.get(..text.len()), name.get(rest..)];
        let is_text = |part: &str| part.eq_ignore_ascii_case(&text);
        text.len() >= PART_MIN && parts.into_iter().flatten().any(is_text)
    };
    let mistakes = |name: &str| {
        let is_as_long = name.len().abs_diff(text.len()) <= most;
        let mistakes = is_as_long.then(|| osa_distance(&text, &name.to_ascii_uppercase()));
        let mistakes = mistakes.filter(|mistakes| *mistakes <= most);
        mistakes.or_else(|| is_part_of(name).then_some(usize::MAX))
    };
    let names = names.into_iter();
    let mut alike: Vec<_> = names
        .filter_map(|name| Some((mistakes(name)?, name.len(), name)))
        .collect();
    alike.sort_unstable();
    alike.truncate(count);
    alike.into_iter().map(|(.., name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanged_letters_beginnings_and_ends_find_a_name() {
        let names = [
            "CUSTOM_GPU",
            "DISK_GB",
            "HW_CPU_X86_AVX2",
            "HW_CPU_X86_AVX512F",
            "MEMORY_MB",
            "PCPU",
            "VCPU",
        ];
        for (text, found) in [
            ("VPCU", &["VCPU"][..]),
            ("VCPUS", &["VCPU"]),
            ("vcpu", &["VCPU", "PCPU"]),
            ("CPU", &["PCPU", "VCPU"]),
            ("DISK", &["DISK_GB"]),
            ("MEMORY", &["MEMORY_MB"]),
            ("memory_gb", &["MEMORY_MB"]),
            ("CUSTOM_GUP", &["CUSTOM_GPU"]),
            ("GPU", &["CUSTOM_GPU"]),
            ("AVX2", &["HW_CPU_X86_AVX2"]),
            ("HW_CPU_X86_AVX", &["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F"]),
            ("DI", &[]),
            ("FPGA", &[]),
        ] {
            assert_eq!(similar(text, names, 3), found, "{text}");
        }
    }

    #[test]
    fn a_few_names_are_enough() {
        let names = ["CUSTOM_A1", "CUSTOM_A2", "CUSTOM_A3"];
        assert_eq!(similar("CUSTOM_A", names, 2), ["CUSTOM_A1", "CUSTOM_A2"]);
        assert!(similar(&"A".repeat(65), names, 2).is_empty());
    }
}
