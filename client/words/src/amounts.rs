//! Amounts of resources with units.

use placement_wire::Capacity;

/// Units of memory and disk; each has 1,024 of the one before.
const UNITS: [&str; 4] = ["MiB", "GiB", "TiB", "PiB"];

/// An amount of a class: `35`, or `16 GiB` if the class counts MiB or GiB.
pub fn amount(class: &str, units: f64) -> String {
    match scale(class, units) {
        Some((divisor, unit)) if units != 0.0 => format!("{} {unit}", short(units / divisor)),
        _ => units.to_string(),
    }
}

/// The classes that lists show first.
const USUAL_CLASSES: [&str; 4] = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

/// Place of a class in lists. Classes with the same place are sorted by name.
pub fn class_order(class: &str) -> usize {
    let place = USUAL_CLASSES.iter().position(|usual| *usual == class);
    place.unwrap_or(USUAL_CLASSES.len())
}

/// Used amount and capacity of a class: `35/256`, or `70/248 GiB`.
pub fn share(class: &str, used: u64, capacity: Capacity) -> String {
    let all = capacity.as_f64();
    match scale(class, all.max(used as f64)) {
        Some((divisor, unit)) => {
            let (used, all) = (short(used as f64 / divisor), short(all / divisor));
            format!("{used}/{all} {unit}")
        }
        None => format!("{used}/{capacity}"),
    }
}

/// The divisor and the unit for an amount of a class whose name ends with a unit. Amounts below 10
/// TiB are in GiB, so that the rows of a list can be compared.
fn scale(class: &str, units: f64) -> Option<(f64, &'static str)> {
    let counted = match class.rsplit('_').next() {
        Some("MB") => 0,
        Some("GB") => 1,
        _ => return None,
    };
    let (mut at, mut divisor) = (counted, 1.0);
    while at + 1 < UNITS.len() {
        let least = if at == 0 { 1024.0 } else { 10.0 * 1024.0 };
        if units / divisor < least {
            break;
        }
        divisor *= 1024.0;
        at += 1;
    }
    Some((divisor, UNITS[at]))
}

/// A number with at most one decimal. A small amount is not shown as 0.
fn short(number: f64) -> String {
    if number > 0.0 && number < 0.05 {
        return "<0.1".to_owned();
    }
    let text = format!("{number:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_disk_have_units() {
        for (class, units, text) in [
            ("VCPU", 16_384.0, "16384"),
            ("MEMORY_MB", 0.0, "0"),
            ("MEMORY_MB", 512.0, "512 MiB"),
            ("MEMORY_MB", 1536.0, "1.5 GiB"),
            ("MEMORY_MB", 65_536.0, "64 GiB"),
            ("MEMORY_MB", 2_097_152.0, "2048 GiB"),
            ("MEMORY_MB", 20_971_520.0, "20 TiB"),
            ("DISK_GB", 100.0, "100 GiB"),
            ("DISK_GB", 20_480.0, "20 TiB"),
            ("CUSTOM_SSD_GB", 1.0, "1 GiB"),
            ("CUSTOM_GB_COUNT", 7.0, "7"),
        ] {
            assert_eq!(amount(class, units), text, "{class}");
        }
    }

    #[test]
    fn both_amounts_of_a_share_have_the_unit_of_the_larger() {
        for (class, used, capacity, text) in [
            ("VCPU", 35, 256, "35/256"),
            ("VCPU", 9, -1, "9/-1"),
            ("MEMORY_MB", 71_680, 253_952, "70/248 GiB"),
            ("MEMORY_MB", 512, 253_952, "0.5/248 GiB"),
            ("MEMORY_MB", 1, 253_952, "<0.1/248 GiB"),
            ("MEMORY_MB", 0, 0, "0/0 MiB"),
            ("MEMORY_MB", 2048, 1024, "2/1 GiB"),
        ] {
            assert_eq!(share(class, used, Capacity::Units(capacity)), text);
        }
    }
}
