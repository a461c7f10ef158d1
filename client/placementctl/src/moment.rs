//! Formatting and parsing of times.

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Formats seconds since 1970 as RFC 3339 in UTC, followed by the time from or until now.
pub(crate) fn moment(seconds: i64) -> String {
    moment_from(seconds, OffsetDateTime::now_utc().unix_timestamp())
}

/// Like [`moment`], but with the time from or until `now` in whole days.
pub(crate) fn day(seconds: i64, now: i64) -> String {
    let (text, days) = (rfc3339(seconds), seconds.abs_diff(now) / 86_400);
    let plural = if days == 1 { "" } else { "s" };
    if seconds < now {
        format!("{text} ({days} day{plural} ago)")
    } else {
        format!("{text} (in {days} day{plural})")
    }
}

/// Formats seconds since 1970 as RFC 3339 in UTC.
pub(crate) fn rfc3339(seconds: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp(seconds).ok();
    // The year may have more than four digits.
    (at.and_then(|at| at.format(&Rfc3339).ok()))
        .unwrap_or_else(|| format!("{seconds} seconds after 1970"))
}

fn moment_from(seconds: i64, now: i64) -> String {
    let (text, distance) = (rfc3339(seconds), span(seconds.abs_diff(now)));
    if seconds < now {
        format!("{text} ({distance} ago)")
    } else {
        format!("{text} (in {distance})")
    }
}

/// Formats a duration in its two largest units.
pub(crate) fn span(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// Formats a duration in its largest unit.
pub(crate) fn short_span(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600, seconds / 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, _) => format!("{hours} h"),
        (days, ..) => format!("{days} d"),
    }
}

/// Longer durations may exceed the clock.
const DURATION_MAX: std::time::Duration = std::time::Duration::from_secs(36_500 * 86_400);
const LENGTHS: &str = "expected a number with s, m, h or d, such as 90s, 15m, 12h or 7d";

/// A number, and the seconds of the unit behind it.
fn with_unit(text: &str) -> Option<(&str, u32)> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    Some((digits, unit))
}

/// Parses a duration with an optional unit into seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let seconds = with_unit(text).and_then(|(number, unit)| {
        let number = number.parse::<u64>().ok()?;
        number.checked_mul(unit.into())
    });
    seconds.ok_or_else(|| LENGTHS.to_owned())
}

/// Parses a duration with an optional unit, which may be a fraction of a second.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let duration = with_unit(text).and_then(|(number, unit)| {
        let number = number.parse::<f64>().ok()?;
        std::time::Duration::try_from_secs_f64(number * f64::from(unit)).ok()
    });
    match duration {
        Some(long) if long > DURATION_MAX => Err("this duration is too long".to_owned()),
        duration => duration.ok_or_else(|| LENGTHS.to_owned()),
    }
}

/// Parses a time in the past for the API. A token or a time is returned unchanged; an age is
/// converted to a time.
pub(crate) fn earlier(text: &str) -> Result<String, String> {
    let ago = seconds(text).ok().and_then(|ago| i64::try_from(ago).ok());
    let Some(ago) = ago else {
        let mut numbers = text.split('.').map(str::parse::<u64>);
        let is_token = numbers.clone().count() == 2 && numbers.all(|number| number.is_ok());
        return if is_token || OffsetDateTime::parse(text, &Rfc3339).is_ok() {
            Ok(text.to_owned())
        } else {
            Err(
                "expected a Placement-Index such as 7.1234, a time such as 2026-11-27T06:00:00Z, or an age \
                 such as 90s, 15m, 12h or 7d"
                    .to_owned(),
            )
        };
    };
    let at = OffsetDateTime::now_utc().checked_sub(Duration::seconds(ago));
    let at = at.and_then(|at| at.format(&Rfc3339).ok());
    at.ok_or_else(|| "this age is too large".to_owned())
}

/// Checks a time for the API, which is returned unchanged.
pub(crate) fn timestamp(text: &str) -> Result<String, String> {
    match OffsetDateTime::parse(text, &Rfc3339) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("expected a time such as 2026-12-24T06:00:00Z".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units() {
        for (text, expected) in [
            ("0", 0),
            ("90s", 90),
            ("15m", 900),
            ("12h", 43_200),
            ("7d", 604_800),
        ] {
            assert_eq!(seconds(text), Ok(expected));
        }
        for text in ["", "d", "1w", "-1s", "1.5h", "1 h", "300000000000000d"] {
            assert!(seconds(text).is_err(), "{text:?}");
        }
        for (text, millis) in [
            ("0.1", 100),
            ("15", 15_000),
            ("1.5m", 90_000),
            ("2h", 7_200_000),
        ] {
            let expected = std::time::Duration::from_millis(millis);
            assert_eq!(duration(text), Ok(expected));
        }
        for text in ["", "-1", "1w", "inf", "nan", "1e300d", "40000d"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
        let spans = [59, 60, 7199, 86_400 * 9].map(short_span);
        assert_eq!(spans, ["59 s", "1 min", "1 h", "9 d"]);
    }

    #[test]
    fn an_earlier_moment_is_a_token_or_a_time() {
        assert_eq!(earlier("7.1234"), Ok("7.1234".to_owned()));
        let at = OffsetDateTime::parse(&earlier("1h").unwrap(), &Rfc3339).unwrap();
        let ago = OffsetDateTime::now_utc() - at;
        assert!(ago >= Duration::HOUR && ago < Duration::HOUR * 2, "{ago}");
        for text in ["9000000d", "tomorrow", "7.x", "7.1.2", "2026-11-27"] {
            assert!(earlier(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_time_has_a_zone() {
        for text in ["2026-12-24T06:00:00Z", "2026-12-24T06:00:00.5+01:00"] {
            assert_eq!(timestamp(text).as_deref(), Ok(text));
        }
        for text in ["", "2026-12-24", "2026-12-24T06:00:00", "2h", "7.1234"] {
            assert!(timestamp(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_moment_is_a_date_and_a_distance() {
        let now = 1_795_532_432;
        for (after, text) in [
            (0, "2026-11-24T15:00:32Z (in 0 s)"),
            (59, "2026-11-24T15:01:31Z (in 59 s)"),
            (3600, "2026-11-24T16:00:32Z (in 1 h 0 min)"),
            (3 * 86_400 + 7200, "2026-11-27T17:00:32Z (in 3 d 2 h)"),
            (-90, "2026-11-24T14:59:02Z (1 min 30 s ago)"),
        ] {
            assert_eq!(moment_from(now + after, now), text);
        }
        assert!(moment_from(i64::MAX, now).contains("seconds after 1970"));
        assert_eq!(
            day(now + 364 * 86_400 + 5, now),
            "2027-11-23T15:00:37Z (in 364 days)"
        );
        assert_eq!(day(now - 86_400, now), "2026-11-23T15:00:32Z (1 day ago)");
    }
}
