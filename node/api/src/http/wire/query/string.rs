//! A query string as parameters in order.

use percent_encoding::percent_decode;

use crate::http::errors::ApiError;
use crate::http::wire::json::Json;
use crate::http::wire::schema::Schema;

/// The parameters of a request in the order in which they came; a name may come several times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

/// Why a query string is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadQuery {
    /// It has percent-encoded bytes that are not UTF-8.
    NotUtf8,
    /// It has more than this many parameters.
    TooMany(usize),
}

impl Query {
    /// Reads a query string of so many parameters at most.
    ///
    /// # Errors
    /// More parameters, or bytes that are not UTF-8.
    pub(crate) fn parse_at_most(most: usize, text: &str) -> Result<Self, BadQuery> {
        match pieces(text).nth(most) {
            Some(_) => Err(BadQuery::TooMany(most)),
            None => Self::parse(text),
        }
    }

    /// Reads a query string: parameters are separated by `&` or `;`, as in WebOb, `+` is a blank, and a
    /// parameter without `=` is empty.
    ///
    /// # Errors
    /// Bytes that are not UTF-8.
    pub(crate) fn parse(text: &str) -> Result<Self, BadQuery> {
        pieces(text)
            .map(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                Ok((decode(name)?, decode(value)?))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// All parameters.
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

    /// The last value of a parameter, which is the one that counts for most.
    pub(crate) fn last<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next_back()
    }

    /// Checks names and last values.
    ///
    /// # Errors
    /// 400 for what does not fit the schema.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), ApiError> {
        let members = self
            .0
            .iter()
            .map(|(name, value)| (name.clone(), Json::Text(value.clone())));
        let checked = schema.check(&Json::Object(members.collect()));
        checked.map_err(|problem| {
            ApiError::bad_request(format!("Invalid query string parameters: {problem}"))
        })
    }
}

/// The parameters of a query string, still encoded.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split(['&', ';']);
    pieces.filter(|piece| !piece.is_empty())
}

fn decode(text: &str) -> Result<String, BadQuery> {
    let spaced = text.replace('+', " ");
    let bytes = percent_decode(spaced.as_bytes());
    bytes
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| BadQuery::NotUtf8)
}

impl From<BadQuery> for ApiError {
    fn from(bad: BadQuery) -> Self {
        match bad {
            BadQuery::NotUtf8 => Self::bad_request(
                "Invalid query string parameters: percent-encoded bytes are not UTF-8; encode text as UTF-8",
            ),
            BadQuery::TooMany(most) => Self::over_limit("query parameters", most),
        }
    }
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
        assert_eq!(
            Query::parse_at_most(2, "a=1;b=2&c=3;d=4"),
            Err(BadQuery::TooMany(2))
        );
        assert!(Query::parse_at_most(2, "a=1;;b=2&").is_ok());
        assert_eq!(Query::parse("a=%ff"), Err(BadQuery::NotUtf8));
        assert_eq!(Query::parse("a=%C3%A9").unwrap().last("a"), Some("é"));
    }

    proptest! {
        #[test]
        fn no_query_string_breaks_the_parser(text in ".{0,80}") {
            let _ = Query::parse(&text);
        }
    }
}
