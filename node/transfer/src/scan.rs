//! Finds the end of a statement in a dump, and an upper bound for its number of tokens. Each byte
//! is read once, so that no text is tokenized twice and no oversized statement is tokenized at all.

use placement_wire::Dialect;

/// The context of the next byte.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ScanContext {
    /// Neither a text nor a comment.
    Code,
    /// A text or a quoted name, up to this byte. With escapes, a backslash makes the next byte
    /// literal.
    Quotes { end: u8, has_escapes: bool },
    /// A comment up to the end of the line.
    Line,
    /// A comment with `depth` nested `/*`.
    Comment { depth: u32 },
    /// A dollar-quoted text of PostgreSQL, up to this tag.
    Dollars(Vec<u8>),
}

/// The state of the scan of a statement.
#[derive(Debug)]
pub(crate) struct Scan {
    dialect: Dialect,
    within: ScanContext,
    /// The last byte that is neither whitespace nor in a comment.
    last: u8,
    tokens: usize,
}

impl Scan {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            within: ScanContext::Code,
            last: 0,
            tokens: 0,
        }
    }

    /// Whether the statement ends here, at the end of a line.
    pub(crate) fn has_ended(&self) -> bool {
        self.within == ScanContext::Code && self.last == b';'
    }

    /// An upper bound for the number of tokens, including whitespace.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Scans another line, with its newline.
    pub(crate) fn read(&mut self, line: &[u8]) {
        let mut at = 0;
        while at < line.len() {
            at += self.step(&line[at..], at.checked_sub(1).map(|at| line[at]));
        }
        if self.within == ScanContext::Line {
            self.within = ScanContext::Code;
        }
    }

    /// Scans the beginning of the rest of a line, after the byte `previous`. Returns the number of
    /// bytes scanned.
    fn step(&mut self, rest: &[u8], previous: Option<u8>) -> usize {
        match &mut self.within {
            ScanContext::Code => return self.code(rest, previous),
            ScanContext::Quotes { has_escapes, .. } if *has_escapes && rest[0] == b'\\' => {
                return 2;
            }
            ScanContext::Quotes { end, .. } if rest[0] == *end => {
                // A doubled quote is part of the text.
                if rest.get(1) == Some(&*end) {
                    return 2;
                }
                self.within = ScanContext::Code;
            }
            ScanContext::Quotes { .. } => {}
            // MySQL has tokens in comments, and the parser reads an empty `--` as two signs.
            ScanContext::Line => self.tokens += 1,
            ScanContext::Comment { depth } => {
                self.tokens += 1;
                if rest.starts_with(b"*/") {
                    match *depth {
                        1 => self.within = ScanContext::Code,
                        _ => *depth -= 1,
                    }
                    return 2;
                }
                if rest.starts_with(b"/*") && self.dialect == Dialect::PostgreSql {
                    *depth += 1;
                    return 2;
                }
            }
            ScanContext::Dollars(tag) if rest.starts_with(tag.as_slice()) => {
                let length = tag.len();
                self.within = ScanContext::Code;
                return length;
            }
            ScanContext::Dollars(_) => {}
        }
        1
    }

    fn code(&mut self, rest: &[u8], previous: Option<u8>) -> usize {
        let (byte, in_word) = (rest[0], previous.is_some_and(is_word_byte));
        if let Some((within, length)) = self.opened(rest, previous) {
            self.tokens += length;
            if !matches!(within, ScanContext::Line | ScanContext::Comment { .. }) {
                self.last = byte;
            }
            self.within = within;
            return length;
        }
        self.tokens += usize::from(!in_word || !is_word_byte(byte));
        if !byte.is_ascii_whitespace() {
            self.last = byte;
        }
        1
    }

    /// The context that begins here, and the length of its opening.
    fn opened(&self, rest: &[u8], previous: Option<u8>) -> Option<(ScanContext, usize)> {
        let dialect = self.dialect;
        let quotes = |end, has_escapes| Some((ScanContext::Quotes { end, has_escapes }, 1));
        match rest[0] {
            b'\'' => match dialect {
                Dialect::MySql => quotes(b'\'', true),
                // An escape string: E'…'
                Dialect::PostgreSql => quotes(b'\'', matches!(previous, Some(b'E' | b'e'))),
                Dialect::Sqlite => quotes(b'\'', false),
            },
            b'"' => quotes(b'"', dialect == Dialect::MySql),
            b'`' if dialect != Dialect::PostgreSql => quotes(b'`', false),
            b'[' if dialect == Dialect::Sqlite => quotes(b']', false),
            b'#' if dialect == Dialect::MySql => Some((ScanContext::Line, 1)),
            b'-' if rest.starts_with(b"--") => {
                let is_comment = dialect != Dialect::MySql
                    || rest.get(2).is_none_or(|byte| byte.is_ascii_whitespace());
                is_comment.then_some((ScanContext::Line, 2))
            }
            b'/' if rest.starts_with(b"/*") => Some((ScanContext::Comment { depth: 1 }, 2)),
            b'$' if dialect == Dialect::PostgreSql && !previous.is_some_and(is_word_byte) => {
                let name = rest[1..]
                    .iter()
                    .position(|byte| !is_word_byte(*byte) || *byte == b'$');
                let end = 1 + name.filter(|length| rest[1 + length] == b'$')?;
                Some((ScanContext::Dollars(rest[..=end].to_vec()), end + 1))
            }
            _ => None,
        }
    }
}

/// Whether a byte may be within a word or a number.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    /// The lines of a text at which statements end.
    fn ends(dialect: Dialect, text: &str) -> Vec<usize> {
        let mut scan = Scan::new(dialect);
        let mut ends = Vec::new();
        for (at, line) in text.split_inclusive('\n').enumerate() {
            scan.read(line.as_bytes());
            if scan.has_ended() {
                ends.push(at);
                scan = Scan::new(dialect);
            }
        }
        ends
    }

    #[test]
    fn statement_ends_after_its_texts_and_comments() {
        let (mysql, postgresql, sqlite) = (Dialect::MySql, Dialect::PostgreSql, Dialect::Sqlite);
        for (dialect, text, expected) in [
            (sqlite, "A 'b;\nc';\nD;\n", &[1, 2][..]),
            (sqlite, "A 'it''s;\n';\n", &[1]),
            (sqlite, "A '\\';\nB;\n", &[0, 1]),
            (sqlite, "A [x;\n];\n", &[1]),
            (mysql, "A '\\';\n';\n", &[1]),
            (mysql, "A `\\`;\nB \"\\\";\n\";  \n", &[0, 2]),
            (mysql, "A # b;\n; -- c\nD --1;\n", &[1, 2]),
            (mysql, "A /* /* ;\n */;\n", &[1]),
            (postgresql, "A /* /* */;\n */;\n", &[1]),
            (postgresql, "A '\\';\nB E'\\';\n';\n", &[0, 2]),
            (postgresql, "A $x$;\n$y$;\n$x$;\nb$1;\n", &[2, 3]),
            (postgresql, "A $$;\n$$;\n", &[1]),
            (postgresql, "A -- b;\n;\n", &[1]),
        ] {
            assert_eq!(ends(dialect, text), expected, "{text}");
        }
    }

    /// For dumps, the count is at least the number of parsed tokens.
    #[test]
    fn token_count_is_an_upper_bound_for_dumps() {
        for (dialect, parsed, dump) in [
            (
                Dialect::Sqlite,
                &SQLiteDialect {} as &dyn sqlparser::dialect::Dialect,
                include_str!("../tests/dumps/sqlite.sql"),
            ),
            (
                Dialect::MySql,
                &MySqlDialect {},
                include_str!("../tests/dumps/mysql.sql"),
            ),
            (
                Dialect::PostgreSql,
                &PostgreSqlDialect {},
                include_str!("../tests/dumps/postgresql.sql"),
            ),
        ] {
            let mut scan = Scan::new(dialect);
            let mut statement = String::new();
            // psql commands are not SQL.
            for line in dump
                .split_inclusive('\n')
                .filter(|line| !line.starts_with('\\'))
            {
                scan.read(line.as_bytes());
                statement += line;
                if scan.has_ended() {
                    let tokens = Tokenizer::new(parsed, &statement).tokenize().unwrap();
                    assert!(tokens.len() <= scan.tokens(), "{statement}");
                    statement.clear();
                    scan = Scan::new(dialect);
                }
            }
            assert!(!statement.contains("INSERT"), "{statement}");
        }
    }

    #[test]
    fn tokens_are_counted_in_code_and_in_comments() {
        for (text, at_least, at_most) in [
            ("A(1,,,,'b,,,,,,');\n", 11, 12),
            ("A/*!40000 ,,,,*/;\n", 6, 20),
            ("    \n", 5, 5),
            ("word1_2 3\n", 4, 4),
        ] {
            let mut scan = Scan::new(Dialect::MySql);
            scan.read(text.as_bytes());
            assert!(
                (at_least..=at_most).contains(&scan.tokens()),
                "{text}: {scan:?}"
            );
        }
    }
}
