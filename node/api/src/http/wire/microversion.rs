//! Microversions: `OpenStack-API-Version: placement 1.N`. Source: the OpenStack API guideline on
//! microversions, and the behaviour of microversion-parse.

use std::sync::LazyLock;

use placement_wire::microversion::{self, NEWEST_HEADER, NEWEST_MINOR};

use super::spelling;
use crate::http::errors::{ApiError, Varies};

/// The newest minor version, in the type of parsed integers.
const NEWEST: i128 = NEWEST_MINOR as i128;
/// Prefix of each header value.
const SERVICE: &str = "placement ";

/// The header value of each version.
static HEADERS: LazyLock<[String; NEWEST_MINOR as usize + 1]> =
    LazyLock::new(|| std::array::from_fn(|minor| format!("{SERVICE}1.{minor}")));

/// A version of the API: 1.0 to [`NEWEST_MINOR`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Microversion(u8);

impl Microversion {
    /// The oldest version, and the default of requests without the header.
    pub(crate) const MIN: Self = Self(0);
    /// The newest microversion that the API serves.
    pub(crate) const MAX: Self = Self(NEWEST_MINOR);

    /// Version `1.minor`.
    #[cfg(test)]
    pub(crate) const fn new(minor: u8) -> Self {
        Self(minor)
    }

    /// The version as text, such as `1.0`.
    pub(crate) fn text(self) -> &'static str {
        &self.header()[SERVICE.len()..]
    }

    /// The value of the response header for this version.
    pub(crate) fn header(self) -> &'static str {
        &HEADERS[usize::from(self.0)]
    }

    pub(crate) fn minor(self) -> u8 {
        self.0
    }

    /// Whether this is `1.minor` or later.
    pub(crate) fn from(self, minor: u8) -> bool {
        self.0 >= minor
    }

    /// Parses the value of the header; several headers are joined by commas, and the last entry for
    /// placement is used.
    ///
    /// # Errors
    /// 406 for a version that does not exist; 400 for malformed text.
    pub(crate) fn parse(header: Option<&str>) -> Result<Self, ApiError> {
        let entries = header.unwrap_or_default().rsplit(',');
        let asked = entries
            .filter_map(|entry| entry.trim().split_once(char::is_whitespace))
            .map(|(service, text)| (service, text.trim_start()))
            .find(|(service, _)| service.eq_ignore_ascii_case("placement"));
        match asked {
            None => Ok(Self::MIN),
            Some((_, "latest")) => Ok(Self::MAX),
            Some((_, text)) => Self::parse_number(text),
        }
    }

    fn parse_number(text: &str) -> Result<Self, ApiError> {
        let numbers = text.split_once('.').and_then(|(major, minor)| {
            Some((spelling::integer(major)?, spelling::integer(minor)?))
        });
        match numbers {
            None => Err(ApiError::bad_request(format!(
                "Invalid microversion: invalid version string: {text}; give two numbers, as in \"{NEWEST_HEADER}\""
            ))
            .varying(Varies::No)),
            Some((1, minor @ 0..=NEWEST)) => Ok(Self(minor as u8)),
            Some(_) => Err(ApiError::unacceptable_version(
                format!(
                    "Invalid microversion: Unacceptable version header: {text}; this service supports 1.0 to {}",
                    microversion::NEWEST
                ),
                Self::MIN.text(),
                Self::MAX.text(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(header: &str) -> Result<u8, bool> {
        Microversion::parse(Some(header))
            .map(|version| version.0)
            .map_err(|error| error.status == http::StatusCode::NOT_ACCEPTABLE)
    }

    #[test]
    fn versions_are_found_in_every_spelling_that_clients_may_use() {
        assert_eq!(Microversion::parse(None), Ok(Microversion::MIN));
        for header in ["", "placement", "compute 2.1", "compute 2.1, identity 3.1"] {
            assert_eq!(parse(header), Ok(0), "{header:?}");
        }
        for header in [
            "placement 1.39",
            "PLACEMENT  1.39",
            "placement latest",
            "placement 1.039",
            "placement +1.39",
            "placement 1. 39",
            "placement 1.5, placement 1.39",
            "placement 1.39, compute 2.1",
        ] {
            assert_eq!(parse(header), Ok(39), "{header:?}");
        }
    }

    #[test]
    fn malformed_versions_differ_from_unknown_ones() {
        for header in [
            "placement 1",
            "placement 1.2.3",
            "placement v1.20",
            "placement 1.20 foo",
            "placement 1.3_9",
            "placement Latest",
        ] {
            assert_eq!(parse(header), Err(false), "{header:?}");
        }
        for header in [
            "placement 1.40",
            "placement 2.0",
            "placement 0.9",
            "placement -1.0",
        ] {
            assert_eq!(parse(header), Err(true), "{header:?}");
        }
    }
}
