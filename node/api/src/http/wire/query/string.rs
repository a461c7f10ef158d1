//! A query string as a list of parameters.

use std::borrow::Cow;
use std::collections::BTreeSet;

use percent_encoding::percent_decode;

use crate::http::errors::{ApiError, code};
use crate::http::wire::json::Json;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::schema;

/// The parameters of a request in their order; a name may occur several times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query string of at most `most` parameters: they are separated by `&` or `;`, as in
    /// WebOb, `+` is a blank, and a parameter without `=` is empty.
    ///
    /// # Errors
    /// 400 for more than `most` parameters, and for bytes that are not UTF-8.
    pub(crate) fn parse_at_most(most: usize, text: &str) -> Result<Self, ApiError> {
        let pieces = text.split(['&', ';']).filter(|piece| !piece.is_empty());
        if pieces.clone().nth(most).is_some() {
            return Err(ApiError::over_limit("query parameters", most));
        }
        let parameters = pieces.map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            Ok((decode(name)?, decode(value)?))
        });
        parameters.collect::<Result<_, _>>().map(Self)
    }

    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        Self::parse_at_most(usize::MAX, text)
    }

    /// The names and values of all parameters.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All values of one parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
        let matching = self.0.iter().filter(move |(other, _)| other == name);
        matching.map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter.
    pub(crate) fn first<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// The last value of a parameter, which most parameters use if they are repeated.
    pub(crate) fn last<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next_back()
    }

    /// Checks names and last values against the schema of this path and version.
    ///
    /// # Errors
    /// 400 with the first problem.
    pub(crate) fn check(&self, path: &str, version: Microversion) -> Result<(), ApiError> {
        let members = self
            .iter()
            .map(|(name, value)| (name.to_owned(), Json::Text(value.to_owned())));
        let checked = schema::query_of(path, version).check(&Json::Object(members.collect()));
        checked.map_err(|problem| {
            ApiError::bad_request(format!("Invalid query string parameters: {problem}"))
        })
    }

    /// As [`Query::check`], for a path on which each parameter may occur only once.
    ///
    /// # Errors
    /// 400 with the first problem.
    pub(crate) fn check_once(&self, path: &str, version: Microversion) -> Result<(), ApiError> {
        self.check(path, version)?;
        let mut seen = BTreeSet::new();
        let twice = self.iter().find(|(name, _)| !seen.insert(*name));
        twice.map_or(Ok(()), |(name, _)| {
            let message = format!("Query parameter '{name}' may be specified only once.");
            Err(ApiError::bad_request(message).with_code(code::DUPLICATE_KEY))
        })
    }
}

fn decode(text: &str) -> Result<String, ApiError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| {
        ApiError::bad_request(
            "Invalid query string parameters: percent-encoded bytes are not UTF-8; encode text as UTF-8",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_keep_their_order() {
        let query = Query::parse("a=1&b&&a=2%263&c=x+y&=z").unwrap();
        let all: Vec<_> = query.iter().collect();
        assert_eq!(
            all,
            [("a", "1"), ("b", ""), ("a", "2&3"), ("c", "x y"), ("", "z")]
        );
        assert_eq!(
            (query.first("a"), query.last("a")),
            (Some("1"), Some("2&3"))
        );
        let semicolons = Query::parse("a=1;b&;a=2%3B3").unwrap();
        let all: Vec<_> = semicolons.iter().collect();
        assert_eq!(all, [("a", "1"), ("b", ""), ("a", "2;3")]);
        assert!(Query::parse_at_most(2, "a=1;b=2&c=3;d=4").is_err());
        assert!(Query::parse_at_most(2, "a=1;;b=2&").is_ok());
        assert!(Query::parse("a=%ff").is_err());
        assert_eq!(Query::parse("a=%C3%A9").unwrap().last("a"), Some("é"));
    }

    proptest! {
        #[test]
        fn no_query_string_breaks_the_parser(text in ".{0,80}") {
            let _ = Query::parse(&text);
        }
    }
}
