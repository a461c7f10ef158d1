//! Reads a dump statement by statement, so that memory does not grow with its size.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use sqlparser::ast::{Expr, Ident, ObjectName, SetExpr, Statement, TableObject, Value};
use sqlparser::dialect::{self, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use placement_wire::Dialect;

use crate::scan::Scan;
use crate::schema::table_named;
use crate::sql::Sql;

/// Maximum length of a statement: the longest that `mysqldump` can be configured to write.
const STATEMENT_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a table definition; upstream's have about 800 bytes. The nesting depth of the
/// parsed text is bounded by its length.
const TABLE_BYTES_MAX: usize = 16 << 10;
/// Maximum length of the quoted reason of a statement error.
const REASON_CHARS_MAX: usize = 200;
/// Maximum number of tokens of a statement, each about 100 bytes in memory. Statements of
/// `mysqldump` have a fifth of this, unless it is configured to write longer ones.
const TOKENS_MAX: usize = 1 << 20;
/// Maximum number of values in a row. Upstream's longest row has nine.
const VALUES_MAX: usize = 64;
const NOT_PLAIN: &str = "INSERT contains other values than numbers, texts and NULL. If it contains DEFAULT, the table has a \
                         generated column, which upstream's tables do not have: drop it, and dump again";
/// Keywords before the name of a table that a statement defines or fills.
const VERBS: [Keyword; 9] = [
    Keyword::CREATE,
    Keyword::TABLE,
    Keyword::IF,
    Keyword::NOT,
    Keyword::EXISTS,
    Keyword::INSERT,
    Keyword::REPLACE,
    Keyword::IGNORE,
    Keyword::INTO,
];
/// Maximum number of tokens of an `INSERT` before its values.
const HEAD_TOKENS_MAX: usize = 64;
/// Length of the head of a dump, which identifies the program.
const HEAD_BYTES: u64 = 1024;
/// UTF-8 byte order mark, which some editors write.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a dump cannot be read. Line numbers start at 1.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file or pipe cannot be read.
    #[error("read error: {0}")]
    Io(#[from] io::Error),
    /// It does not begin like a dump of a supported program.
    #[error(
        "it does not begin like a dump of mysqldump, mariadb-dump, pg_dump or sqlite3. It must be plain text, not \
         compressed, with the comments that these programs write"
    )]
    NotADump,
    /// It begins with the byte order mark of UTF-16.
    #[error(
        "it is UTF-16, as the redirection of PowerShell writes it: let the program write the file itself, with \
         --result-file (mysqldump) or --file (pg_dump)"
    )]
    Utf16,
    /// A line is not valid UTF-8.
    #[error(
        "line {0} is not UTF-8. Dump with --default-character-set=utf8mb4 (mysqldump) or --encoding=UTF8 (pg_dump)"
    )]
    NotUtf8(u64),
    /// It declares another encoding.
    #[error(
        "line {0}: the encoding is {1:?}. Dump with --default-character-set=utf8mb4 (mysqldump) or --encoding=UTF8 (pg_dump)"
    )]
    OtherEncoding(u64, String),
    /// A statement exceeds the maximum length or number of tokens.
    #[error(
        "the statement at line {0} is longer than {limit} MiB or has more than {TOKENS_MAX} tokens. Unless \
         it is damaged: mysqldump --net-buffer-length=1M writes shorter statements",
        limit = STATEMENT_BYTES_MAX >> 20
    )]
    TooLong(u64),
    /// It ends within a statement, or without the program's last line.
    #[error(
        "it is cut off: it ends at line {0} without the last line that {1} writes. Dump again, and check the exit status"
    )]
    CutOff(u64, &'static str),
    /// A statement is not SQL, or not of a supported form.
    #[error("line {0}: {1}")]
    Statement(u64, String),
    /// It contains rows as `COPY` data.
    #[error("line {0}: it contains rows as COPY data. Dump with pg_dump --inserts")]
    Copy(u64),
}

/// The relevant content of a statement.
#[derive(Debug)]
pub(crate) enum DumpPart {
    /// Definition of a table.
    Table { table: String, columns: Vec<String> },
    /// Rows of a table. If `columns` is empty, they have the columns of the definition, in order.
    Rows {
        table: String,
        columns: Vec<String>,
        rows: Vec<Vec<Sql>>,
    },
    /// Definition of a table that upstream does not have.
    OtherTable(String),
    /// Rows of a table that upstream does not have.
    OtherRows(String),
}

/// A dump that is being read.
pub(crate) struct Dump<R> {
    source: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    dialect: Dialect,
    line: u64,
    /// Whether the program's last line was read.
    is_whole: bool,
}

impl<R: Read> Dump<R> {
    /// Detects the program that wrote a dump.
    pub(crate) fn open(mut source: R) -> Result<Self, DumpError> {
        let mut head = Vec::new();
        source.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return Err(DumpError::Utf16);
        }
        if head.starts_with(MARK) {
            head.drain(..MARK.len());
        }
        let dialect = head.split(|byte| *byte == b'\n').find_map(dialect_of_line);
        let source = Cursor::new(head).chain(source);
        Ok(Self {
            source: BufReader::with_capacity(1 << 20, source),
            dialect: dialect.ok_or(DumpError::NotADump)?,
            line: 0,
            is_whole: false,
        })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The number of the last line read.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The next piece; `None` at the end of a complete dump.
    pub(crate) fn next_piece(&mut self) -> Result<Option<DumpPart>, DumpError> {
        while let Some((line, statement)) = self.statement()? {
            if let Some(piece) = self.piece(line, statement)? {
                self.is_whole = false;
                return Ok(Some(piece));
            }
        }
        if self.is_whole {
            Ok(None)
        } else {
            Err(self.cut_off())
        }
    }

    /// Appends the next line, with its newline.
    fn read_line(&mut self, line: &mut Vec<u8>) -> Result<(), DumpError> {
        self.line += 1;
        let limit = (STATEMENT_BYTES_MAX + 1).saturating_sub(line.len());
        (&mut self.source)
            .take(limit as u64)
            .read_until(b'\n', line)?;
        Ok(())
    }

    /// The tokens of the next statement, and the line where it begins.
    fn statement(&mut self) -> Result<Option<(u64, Vec<TokenWithSpan>)>, DumpError> {
        let (mut text, mut begins, mut scan) = (Vec::new(), 0, Scan::new(self.dialect));
        loop {
            let before = text.len();
            self.read_line(&mut text)?;
            let line = &text[before..];
            if line.is_empty() {
                return match before {
                    0 => Ok(None),
                    _ => Err(self.cut_off()),
                };
            }
            if before == 0 {
                begins = self.line;
                if self.is_passed_over(line) {
                    text.clear();
                    continue;
                }
            }
            scan.read(line);
            if text.len() > STATEMENT_BYTES_MAX || scan.tokens() > TOKENS_MAX {
                return Err(DumpError::TooLong(begins));
            }
            if !scan.has_ended() {
                continue;
            }
            let statement = std::str::from_utf8(&text).map_err(|error| {
                let lines = text[..error.valid_up_to()]
                    .iter()
                    .filter(|byte| **byte == b'\n');
                DumpError::NotUtf8(begins + lines.count() as u64)
            })?;
            let tokens = Tokenizer::new(parsed(self.dialect), statement)
                .tokenize_with_location()
                .map_err(|error| wrong(begins, &error.to_string()))?;
            return Ok(Some((begins, tokens)));
        }
    }

    fn cut_off(&self) -> DumpError {
        let program = match self.dialect {
            Dialect::MySql => "mysqldump",
            Dialect::PostgreSql => "pg_dump",
            Dialect::Sqlite => "sqlite3",
        };
        DumpError::CutOff(self.line, program)
    }

    /// Whether a line between statements is not SQL: a comment, a psql command, or empty. Records
    /// whether it is the program's last line.
    fn is_passed_over(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii();
        let last: &[u8] = match self.dialect {
            Dialect::MySql => b"-- Dump completed",
            Dialect::PostgreSql => b"-- PostgreSQL database dump complete",
            Dialect::Sqlite => b"COMMIT;",
        };
        self.is_whole |= line.starts_with(last);
        line.is_empty() || line.starts_with(b"--") || line.starts_with(b"\\") || is_comment(line)
    }

    fn piece(&self, line: u64, tokens: Vec<TokenWithSpan>) -> Result<Option<DumpPart>, DumpError> {
        let words = tokens.iter().filter_map(|token| match &token.token {
            Token::Word(word) => Some(word.keyword),
            _ => None,
        });
        let other = other_table(&tokens);
        match words.take(2).collect::<Vec<_>>().as_slice() {
            [Keyword::CREATE, Keyword::TABLE] if other.is_some() => {
                Ok(other.map(DumpPart::OtherTable))
            }
            [Keyword::CREATE, Keyword::TABLE] if text_length(&tokens) > TABLE_BYTES_MAX => Err(
                wrong(line, "a table definition is longer than any of upstream's"),
            ),
            [Keyword::CREATE, Keyword::TABLE] => Ok(definition(self.parse(line, tokens)?)),
            [Keyword::INSERT | Keyword::REPLACE, ..] if other.is_some() => {
                Ok(other.map(DumpPart::OtherRows))
            }
            [Keyword::INSERT | Keyword::REPLACE, ..] => {
                let rows = if is_plain_insert(&tokens) {
                    rows(self.parse(line, tokens)?)
                } else {
                    None
                };
                rows.map(Some).ok_or_else(|| wrong(line, NOT_PLAIN))
            }
            [Keyword::COPY, ..] => Err(DumpError::Copy(line)),
            [Keyword::SET, ..] => self.check_encoding(line, &tokens),
            _ => Ok(None),
        }
    }

    fn parse(&self, line: u64, tokens: Vec<TokenWithSpan>) -> Result<Statement, DumpError> {
        let mut parser = Parser::new(parsed(self.dialect)).with_tokens_with_locations(tokens);
        parser.parse_statement().map_err(|error| {
            let reason = match error {
                ParserError::TokenizerError(reason) | ParserError::ParserError(reason) => reason,
                ParserError::RecursionLimitExceeded => "it is nested too deeply".to_owned(),
            };
            wrong(line, &reason)
        })
    }

    /// Rejects a dump that declares another encoding.
    fn check_encoding(
        &self,
        line: u64,
        tokens: &[TokenWithSpan],
    ) -> Result<Option<DumpPart>, DumpError> {
        let mut texts = tokens.iter().filter_map(|token| match &token.token {
            Token::Word(word) => Some(word.value.as_str()),
            Token::SingleQuotedString(text) => Some(text.as_str()),
            _ => None,
        });
        let sets = texts.any(|text| {
            text.eq_ignore_ascii_case("client_encoding") || text.eq_ignore_ascii_case("names")
        });
        let encoding = texts
            .next()
            .unwrap_or_default()
            .chars()
            .take(REASON_CHARS_MAX)
            .collect::<String>()
            .to_ascii_lowercase();
        if sets
            && !["utf8", "utf8mb3", "utf8mb4", "sql_ascii", "default"].contains(&encoding.as_str())
        {
            Err(DumpError::OtherEncoding(line, encoding))
        } else {
            Ok(None)
        }
    }
}

/// Creates a statement error. The reason may quote the statement, so control characters are
/// replaced: it must not start a new line.
fn wrong(line: u64, reason: &str) -> DumpError {
    let reason = reason
        .chars()
        .take(REASON_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c });
    DumpError::Statement(line, reason.collect())
}

/// The parser's dialect for a kind of dump.
fn parsed(dialect: Dialect) -> &'static dyn dialect::Dialect {
    match dialect {
        Dialect::MySql => &MySqlDialect {},
        Dialect::PostgreSql => &PostgreSqlDialect {},
        Dialect::Sqlite => &SQLiteDialect {},
    }
}

fn dialect_of_line(line: &[u8]) -> Option<Dialect> {
    let begins = |text: &str| line.starts_with(text.as_bytes());
    if begins("-- MySQL dump") || begins("-- MariaDB dump") {
        Some(Dialect::MySql)
    } else if begins("-- PostgreSQL database dump") {
        Some(Dialect::PostgreSql)
    } else if begins("BEGIN TRANSACTION;") || begins("PRAGMA foreign_keys=OFF;") {
        Some(Dialect::Sqlite)
    } else {
        None
    }
}

/// Whether a line is only an executable comment. Comments that set an encoding do not count.
fn is_comment(line: &[u8]) -> bool {
    let ends = line.ends_with(b"*/") || line.ends_with(b"*/;");
    line.starts_with(b"/*")
        && ends
        && !line
            .windows(5)
            .any(|word| word.eq_ignore_ascii_case(b"NAMES"))
}

/// A lower bound for the length of the statement with these tokens.
fn text_length(tokens: &[TokenWithSpan]) -> usize {
    tokens
        .iter()
        .map(|token| token.token.to_string().len())
        .sum()
}

/// Whether an `INSERT` contains only what a dump contains: numbers, texts and NULL. Other
/// expressions could be nested as deeply as the statement is long.
fn is_plain_insert(tokens: &[TokenWithSpan]) -> bool {
    let mut tokens = tokens
        .iter()
        .map(|token| &token.token)
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    let is_values =
        |token: &&Token| matches!(token, Token::Word(word) if word.keyword == Keyword::VALUES);
    // The names of the table and its columns.
    let mut head = tokens
        .by_ref()
        .take(HEAD_TOKENS_MAX)
        .take_while(|token| !is_values(token));
    let is_name = |token: &Token| {
        matches!(
            token,
            Token::Word(_) | Token::Period | Token::Comma | Token::LParen | Token::RParen
        )
    };
    if !head.all(is_name) {
        return false;
    }
    let (mut previous, mut values) = (&Token::EOF, 1);
    tokens.all(|token| {
        let begins = matches!(previous, Token::LParen | Token::Comma);
        previous = token;
        match token {
            Token::LParen => values = 1,
            Token::Comma => values += 1,
            _ => {}
        }
        values <= VALUES_MAX
            && match token {
                Token::Word(word) => word.keyword == Keyword::NULL,
                Token::Minus => begins,
                Token::Number(..)
                | Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_) => true,
                Token::Comma | Token::LParen | Token::RParen | Token::SemiColon => true,
                _ => false,
            }
    })
}

/// The table that a statement defines or fills, if upstream has no such table.
fn other_table(tokens: &[TokenWithSpan]) -> Option<String> {
    let mut tokens = tokens
        .iter()
        .map(|token| &token.token)
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    let is_of_verb = |token: &&Token| match token {
        Token::Word(word) if word.quote_style.is_none() => VERBS.contains(&word.keyword),
        _ => false,
    };
    let mut name = tokens.by_ref().find(|token| !is_of_verb(token))?;
    // The name of the table follows the name of its schema.
    while let (Some(Token::Period), Some(next)) = (tokens.next(), tokens.next()) {
        name = next;
    }
    match name {
        Token::Word(word) if table_named(&word.value).is_none() => Some(word.value.clone()),
        _ => None,
    }
}

/// The table that a statement defines, and its columns.
fn definition(statement: Statement) -> Option<DumpPart> {
    let Statement::CreateTable(table) = statement else {
        return None;
    };
    let columns = table.columns.into_iter().map(|column| column.name.value);
    Some(DumpPart::Table {
        table: last_name(&table.name)?,
        columns: columns.collect(),
    })
}

/// The rows of an `INSERT`; `None` if it contains anything else.
fn rows(statement: Statement) -> Option<DumpPart> {
    let Statement::Insert(insert) = statement else {
        return None;
    };
    let TableObject::TableName(table) = &insert.table else {
        return None;
    };
    let SetExpr::Values(values) = *insert.source?.body else {
        return None;
    };
    let rows = values
        .rows
        .into_iter()
        .map(|row| row.content.into_iter().map(value).collect());
    Some(DumpPart::Rows {
        table: last_name(table)?,
        columns: insert
            .columns
            .iter()
            .map(last_name)
            .collect::<Option<_>>()?,
        rows: rows.collect::<Option<_>>()?,
    })
}

fn value(expression: Expr) -> Option<Sql> {
    Some(match expression {
        Expr::Value(literal) => match literal.value {
            Value::Null => Sql::Null,
            Value::Number(digits, _) => Sql::Number(digits),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Sql::Text(text),
            _ => return None,
        },
        Expr::UnaryOp { expr, .. } => match value(*expr)? {
            Sql::Number(digits) => Sql::Number(format!("-{digits}")),
            _ => return None,
        },
        _ => return None,
    })
}

/// The last part of a name: a table without its schema.
fn last_name(name: &ObjectName) -> Option<String> {
    let part: &Ident = name.0.last()?.as_ident()?;
    Some(part.value.clone())
}
