//! Dumps of one database from three programs (`dumps/`): intact, damaged, and with the irregular
//! rows of old clouds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write;

use placement_transfer::{Dialect, Export, Import, ImportError, export, import};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const SQLITE: &str = include_str!("dumps/sqlite.sql");
const MYSQL: &str = include_str!("dumps/mysql.sql");
const POSTGRESQL: &str = include_str!("dumps/postgresql.sql");
const ALL: [(Dialect, &str); 3] = [
    (Dialect::Sqlite, SQLITE),
    (Dialect::MySql, MYSQL),
    (Dialect::PostgreSql, POSTGRESQL),
];

fn read(dump: &str) -> Result<Import, ImportError> {
    import(dump.as_bytes())
}

/// The error of a refused dump.
fn refused(dump: impl AsRef<[u8]>) -> String {
    import(dump.as_ref())
        .map(|import| import.report.to_string())
        .unwrap_err()
        .to_string()
}

/// The SQLite dump with one occurrence of a text replaced.
fn edited(from: &str, to: &str) -> String {
    assert_eq!(SQLITE.matches(from).count(), 1, "{from}");
    SQLITE.replace(from, to)
}

/// The SQLite dump with additional rows.
fn with_rows(rows: &[&str]) -> String {
    let rows = rows.iter().fold(String::new(), |mut rows, row| {
        writeln!(rows, "INSERT INTO {row};").unwrap();
        rows
    });
    SQLITE.replace("COMMIT;", &format!("{rows}COMMIT;"))
}

/// The SQLite dump without most traits, to make it short.
fn short() -> String {
    let is_trait =
        |line: &&str| line.starts_with("INSERT INTO \"traits\"") && !line.contains("CUSTOM_");
    let used = ["HW_NUMA_ROOT", "MISC_SHARES"];
    let lines = SQLITE
        .lines()
        .filter(|line| !is_trait(line) || used.iter().any(|name| line.contains(name)));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn dumps_of_three_databases_have_one_content() {
    let imports = ALL.map(|(dialect, dump)| {
        let import = read(dump).unwrap();
        assert_eq!(import.report.dialect, dialect);
        import
    });
    let [sqlite, mysql, postgresql] = imports;
    assert_eq!(sqlite.report.digest, mysql.report.digest);
    assert_eq!(sqlite.report.digest, postgresql.report.digest);
    assert_eq!(sqlite.report.used, mysql.report.used);
    // Both have whole seconds, as they come from exports.
    assert_eq!(mysql.state, postgresql.state);
    // Candidates are in the order of upstream's ids.
    let roots = sqlite
        .state
        .trees()
        .map(|(_, tree)| tree.root().uuid.to_string());
    let numbers: Vec<String> = roots
        .map(|uuid| {
            uuid.trim_start_matches("a0000000-0000-4000-8000-0")
                .trim_start_matches('0')
                .to_owned()
        })
        .collect();
    assert_eq!(numbers, ["1", "6", "7", "8"]);
    assert_eq!(sqlite.state.sizes().providers, 7);
}

#[test]
fn export_and_import_round_trip() {
    let imported = read(SQLITE).unwrap();
    for (dialect, dump) in ALL {
        let mut sql = Vec::new();
        let Export { digest, notes } =
            export(&imported.state, "7.1234", dialect, &mut sql).unwrap();
        assert_eq!(digest, imported.report.digest);
        assert!(notes.is_empty(), "{notes}");
        let sql = String::from_utf8(sql).unwrap();
        // The position for a feed of changes; a dump of that database contains the table, too.
        for part in ["INSERT INTO placementd_position VALUES (", "'7.1234');\n"] {
            assert!(sql.contains(part), "{dialect}");
        }
        assert!(
            sql.ends_with(&format!("-- content digest: {digest}\n")),
            "{dialect}"
        );
        let again = read(&as_dump(dump, &sql)).unwrap_or_else(|error| panic!("{dialect}: {error}"));
        assert_eq!(again.report.digest, digest);
    }
}

/// The dump of a database filled by an export, with the table definitions of another dump.
fn as_dump(dump: &str, sql: &str) -> String {
    let rows = with_plain_texts(sql);
    format!("{}{}{}", head(dump), definitions(dump), tail(&rows))
}

/// Texts that an export writes as bytes are plain in SQLite's dump.
fn with_plain_texts(sql: &str) -> String {
    let mut parts = sql.split("CAST(X'");
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let (bytes, rest) = part.split_once("' AS TEXT)").unwrap();
        let pairs = (0..bytes.len()).step_by(2).map(|at| &bytes[at..at + 2]);
        let bytes = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap());
        let text = String::from_utf8(bytes.collect()).unwrap();
        write!(plain, "'{}'{rest}", text.replace('\'', "''")).unwrap();
    }
    plain
}

/// The line that identifies the program.
fn head(dump: &str) -> &str {
    let heads = [
        "BEGIN TRANSACTION;\n",
        "-- MariaDB dump\n",
        "-- PostgreSQL database dump\n",
    ];
    heads
        .into_iter()
        .find(|head| dump.contains(head.trim_end()))
        .unwrap()
}

/// The table definitions in a dump, and its revision.
fn definitions(dump: &str) -> String {
    let of_table = dump.split("CREATE TABLE ").skip(1).map(|table| {
        let (definition, _) = table.split_once(";\n").unwrap();
        format!("CREATE TABLE {definition};\n")
    });
    of_table.collect::<String>() + "INSERT INTO alembic_version VALUES ('a082b8bb98d0');\n"
}

/// An export in the form of the end of a dump.
fn tail(sql: &str) -> String {
    let end = "-- Dump completed\n-- PostgreSQL database dump complete\nCOMMIT;\n";
    sql.replace("COMMIT;\n", "") + end
}

#[test]
fn truncated_dump_is_refused() {
    let short = short();
    let digest = read(&short).unwrap().report.digest;
    for (dump, end, step) in [
        (short.as_str(), "COMMIT;", 1),
        (MYSQL, "-- Dump completed", 97),
        (POSTGRESQL, "-- PostgreSQL database dump complete", 97),
    ] {
        let end = dump.rfind(end).unwrap() + end.len();
        assert!(read(&dump[..end]).is_ok());
        for cut in (0..end).step_by(step) {
            let refused = refused(&dump.as_bytes()[..cut]);
            let is_clear = ["cut off", "does not begin like", "UTF-8", "not those of"]
                .iter()
                .any(|word| refused.contains(word));
            assert!(is_clear, "{cut}: {refused}");
        }
    }
    assert_eq!(read(&short).unwrap().report.digest, digest);
}

#[test]
fn dump_in_another_encoding_is_refused() {
    let latin1 = SQLITE.replace("Üser", "User").into_bytes();
    let latin1: Vec<u8> = String::from_utf8(latin1)
        .unwrap()
        .replacen("user of unused", "us\u{1}er", 1)
        .into_bytes()
        .into_iter()
        .map(|byte| if byte == 1 { 0xe9 } else { byte })
        .collect();
    let line = SQLITE
        .lines()
        .position(|line| line.contains("user of unused"))
        .unwrap()
        + 1;
    assert!(refused(latin1).contains(&format!("line {line} is not UTF-8")));
    let utf16: Vec<u8> = SQLITE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for other in [
        utf16.as_slice(),
        b"\x1f\x8b\x08 compressed",
        b"",
        b"SELECT 1;\n",
    ] {
        assert!(refused(other).contains("it does not begin like a dump"));
    }
    for (dump, from, to) in [
        (MYSQL, "SET NAMES utf8mb4", "SET NAMES latin1"),
        (
            POSTGRESQL,
            "client_encoding = 'UTF8'",
            "client_encoding = 'LATIN1'",
        ),
    ] {
        let refused = refused(dump.replacen(from, to, 1));
        assert!(refused.contains("the encoding is \"latin1\""), "{refused}");
    }
}

#[test]
fn other_schema_is_refused_with_a_remedy() {
    let revision = "VALUES('a082b8bb98d0')";
    for (from, to, reason) in [
        (
            revision,
            "VALUES('b5c396305c25')",
            "placement-manage db sync",
        ),
        (
            revision,
            "VALUES('0123456789ab')",
            "A newer placementd may know it",
        ),
        (
            revision,
            "VALUES('a082b8bb98d0'),('422ece571366')",
            "more than one row",
        ),
        (
            "INSERT INTO \"alembic_version\" VALUES('a082b8bb98d0');",
            "",
            "alembic_version is empty",
        ),
        (
            "CREATE TABLE projects (",
            "CREATE TABLE instances (",
            "table projects is missing",
        ),
        (
            "CREATE TABLE projects (",
            "CREATE TABLE users (",
            "table users is defined twice",
        ),
        (
            "\tused INTEGER NOT NULL, \n",
            "",
            "table allocations lacks upstream's column used",
        ),
        (
            "\tused INTEGER NOT NULL, \n",
            "\tused INTEGER, used INTEGER, \n",
            "table allocations has two columns \"used\"",
        ),
        (
            "'INSTANCE');",
            "'INSTANCE',1);",
            "rows of consumer_types do not have a value for each column: row 1 of the statement has 5 values for 4",
        ),
        (
            "INSERT INTO \"alembic_version\" VALUES('a082b8bb98d0');",
            "INSERT INTO \"alembic_version\"(other) VALUES('a082b8bb98d0');",
            "rows of alembic_version lack the column version_num",
        ),
        (
            "COMMIT;",
            "INSERT INTO x VALUES(1);\nCOMMIT;",
            "the definition of \"x\" does not precede its rows",
        ),
    ] {
        let refused = refused(edited(from, to));
        assert!(refused.contains(reason), "{refused}");
    }
    // The revision error takes precedence over the columns, wherever the revision is.
    let older = edited(revision, "VALUES('b5c396305c25')")
        .replace("CREATE TABLE consumer_types", "CREATE TABLE other");
    assert!(refused(older).contains("placement-manage db sync"));
    let copied = POSTGRESQL.replacen(
        "INSERT INTO public.traits",
        "COPY public.traits (id) FROM stdin;\n1\nINSERT INTO public.traits",
        1,
    );
    assert!(refused(copied).contains("pg_dump --inserts"));
    assert!(read(&edited(revision, "VALUES('422ece571366')")).is_ok());
}

/// Faults: the text replaced, its replacement, and a part of the report.
const FAULTS: [(&str, &str, &str); 18] = [
    (
        "'cmp-1',1,1,NULL",
        "'cmp-1',1,NULL,NULL",
        "placement-manage db online_data_migrations",
    ),
    (
        "'cmp-1',1,1,NULL",
        "NULL,1,1,NULL",
        "SELECT * FROM resource_providers WHERE id = 1;",
    ),
    (
        "'cmp-1',1,1,NULL",
        "'moved',1,1,NULL",
        "by name: SELECT * FROM resource_providers WHERE id =",
    ),
    (
        "'cmp-1-numa-0',3,1,1",
        "'cmp-1-numa-0',3,1,99",
        "parent_provider_id is 99: SELECT * FROM resource_providers WHERE id = 3;",
    ),
    (
        "'cmp-1-numa-0',3,1,1",
        "'cmp-1-numa-0',3,8,1",
        "wrong root: not the root of its parent",
    ),
    ("'cmp-1',1,1,NULL", "'cmp-1',1,1,3", "its own ancestor"),
    (
        "'cmp-1-numa-0',3,1,1",
        "'cmp-1-numa-0','x',1,1",
        "generation is \"x\", not an integer",
    ),
    (
        "1,3,0,16,0,1,2147483647,1,16.0",
        "1,99,0,16,0,1,2147483647,1,16.0",
        "SELECT * FROM inventories WHERE id = 1;",
    ),
    (
        "1,3,0,16,0,1,2147483647,1,16.0",
        "1,3,0,-16,0,1,2147483647,1,16.0",
        "total is -16, not an integer from 0",
    ),
    (
        "1,3,0,16,0,1,2147483647,1,16.0",
        "1,3,0,16,0,1,2147483647,0,16.0",
        "step_size is 0, not an integer from 1",
    ),
    (
        "1,3,0,16,0,1,2147483647,1,16.0",
        "1,3,0,16,0,1,2147483647,1,1e39",
        "allocation_ratio is 1e39",
    ),
    (
        "1,3,0,16,0,1,2147483647,1,16.0",
        "1,3,3,16,0,1,2147483647,1,16.0",
        "resource provider has no inventory of its resource class",
    ),
    (
        "2,'c0000000-0000-4000-8000-000000000002',1,1,1,2",
        "2,'c0000000-0000-4000-8000-000000000002',NULL,1,1,2",
        "project_id is NULL",
    ),
    (
        "2,'c0000000-0000-4000-8000-000000000002',1,1,1,2",
        "2,'c0000000-0000-4000-8000-000000000002',9,1,1,2",
        "WHERE id = 2;",
    ),
    (
        "2,'c0000000-0000-4000-8000-000000000002',1,1,1,2",
        "2,'c0000000-0000-4000-8000-00000000000f',1,1,1,2",
        "placement-status upgrade check",
    ),
    (
        "NULL,10001,'CUSTOM_GOLD'",
        "NULL,10001,'CUSTOM_gold'",
        "the API rejects",
    ),
    (
        "NULL,1,'project-1'",
        "'yesterday',1,'project-1'",
        "updated_at is \"yesterday\", not a moment from 1970 on",
    ),
    (
        "NULL,1,'project-1'",
        "'1969-12-31 23:59:59',1,'project-1'",
        "not a moment from 1970 on",
    ),
];

#[test]
fn inconsistent_rows_are_refused_with_the_row() {
    for (from, to, reason) in FAULTS {
        let refused = refused(edited(from, to));
        assert!(refused.contains(reason), "{from} -> {to}: {refused}");
    }
    for (row, reason) in [
        (
            "inventories VALUES(NULL,NULL,90,3,0,1,0,1,1,1,1.0)",
            "SELECT * FROM inventories WHERE id = 90;",
        ),
        (
            "resource_provider_traits VALUES(NULL,NULL,9999,1)",
            "trait_id = 9999 AND resource_provider_id = 1;",
        ),
        (
            "resource_provider_aggregates VALUES(NULL,NULL,1,99)",
            "aggregate_id = 99;",
        ),
        (
            "resource_provider_aggregates VALUES(NULL,NULL,1,1)",
            "duplicate row",
        ),
        (
            "projects VALUES(NULL,NULL,90,'project-1')",
            "SELECT * FROM projects WHERE id = 90;",
        ),
        (
            "users VALUES(NULL,NULL,1,'one more')",
            "SELECT * FROM users WHERE id = 1;",
        ),
        (
            "allocations VALUES(NULL,NULL,90,3,'c0000000-0000-4000-8000-000000000001',3,1)",
            "has no inventory of its resource class",
        ),
        (
            "allocations VALUES(NULL,NULL,90,3,'c0000000-0000-4000-8000-000000000001',0,2147483647)",
            "whose sum exceeds 2147483647",
        ),
        (
            "consumers VALUES(NULL,NULL,90,'c',1,1,0,77)",
            "SELECT * FROM consumers WHERE id = 90;",
        ),
    ] {
        let refused = refused(with_rows(&[row]));
        assert!(refused.contains(reason), "{row}: {refused}");
    }
}

#[test]
fn all_faults_are_listed_with_some_examples() {
    let dangling: Vec<String> = (100..150)
        .map(|id| format!("inventories VALUES(NULL,NULL,{id},{id},0,1,0,1,1,1,1.0)"))
        .collect();
    let mut rows: Vec<&str> = dangling.iter().map(String::as_str).collect();
    rows.push("resource_providers VALUES(NULL,NULL,90,'b0000000-0000-4000-8000-000000000001','new',0,NULL,NULL)");
    let refused = refused(with_rows(&rows));
    for part in [
        "50: row with a reference to a missing row",
        "and 45 more",
        "1: resource provider without a root",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(refused.lines().count() < 20, "{refused}");
}

#[test]
fn client_visible_differences_are_reported() {
    let found = |dump: &str, note: &str| {
        let import = read(dump).unwrap();
        let report = import.report.to_string();
        assert!(report.contains(note), "{note}: {report}");
        import
    };
    let upper = edited(
        "'a0000000-0000-4000-8000-000000000001'",
        "'A0000000-0000-4000-8000-000000000001'",
    );
    let import = found(
        &upper,
        "1: resource provider whose UUID is not in lower case",
    );
    assert_eq!(import.report.digest, read(SQLITE).unwrap().report.digest);
    found(
        &edited("'cmp-1',1,1,NULL", "'cmp-1',NULL,1,NULL"),
        "1: resource provider without a generation",
    );
    let twice = with_rows(&[
        "allocations VALUES(NULL,NULL,90,3,'c0000000-0000-4000-8000-000000000001',0,5)",
    ]);
    let import = found(&twice, "imported as one allocation of their sum");
    assert_eq!(import.report.used["VCPU"], (3, 20));
    // 9 units with the decimal number, 8 with the 32-bit float that only MySQL uses.
    let [before, after] = [
        "5,5,0,5,0,1,2147483647,1,0.9",
        "5,5,0,10,0,1,2147483647,1,0.9",
    ];
    assert!(MYSQL.contains(before));
    found(
        &MYSQL.replace(before, after),
        "9 here, 8 there: SELECT * FROM inventories WHERE id = 5;",
    );
    found(MYSQL, "\"Storage\"");
    assert!(
        !read(POSTGRESQL)
            .unwrap()
            .report
            .to_string()
            .contains("Storage")
    );
}

/// Properties of databases that began with an earlier release of Nova, or whose server has special
/// settings.
#[test]
fn tables_and_columns_unknown_to_upstream_are_ignored_and_reported() {
    let plain = read(MYSQL).unwrap().report.digest;
    let table = "CREATE TABLE `resource_providers` (\n";
    let last = "  `parent_provider_id` int(11) DEFAULT NULL,\n";
    assert_eq!(
        (MYSQL.matches(table).count(), MYSQL.matches(last).count()),
        (1, 1)
    );
    let can_host = format!("{last}  `can_host` int(11) DEFAULT NULL,\n");
    let key = format!(
        "{table}  `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,\n"
    );
    let leftover = "CREATE TABLE `migrate_version` (\n  `repository_id` varchar(250) NOT NULL,\n  `blob` blob\n);\n\
                    INSERT INTO `migrate_version` VALUES ('nova; (',_binary 'x\\'',0x00),(DEFAULT);\n-- Dump completed";
    for (dump, note) in [
        (
            with_values_of_providers(&MYSQL.replacen(last, &can_host, 1), "", ",0"),
            "resource_providers: \"can_host\"",
        ),
        (
            with_values_of_providers(&MYSQL.replacen(table, &key, 1), "7,", ""),
            "resource_providers: \"my_row_id\"",
        ),
        (
            MYSQL.replacen("-- Dump completed", leftover, 1),
            "\"migrate_version\"",
        ),
    ] {
        let import = read(&dump).unwrap_or_else(|error| panic!("{note}: {error}"));
        assert_eq!(import.report.digest, plain, "{note}");
        let report = import.report.to_string();
        assert!(report.contains(note), "{report}");
    }
    // A generated column has no value, and mysqldump names the other columns.
    let generated =
        format!("{last}  `shown` varchar(200) GENERATED ALWAYS AS (lower(`name`)) VIRTUAL,\n");
    let dump = MYSQL.replacen(last, &generated, 1).replacen(
        "INSERT INTO `resource_providers` VALUES",
        "INSERT INTO `resource_providers` (`created_at`, `updated_at`, `id`, `uuid`, `name`, `generation`, `root_provider_id`, `parent_provider_id`) VALUES",
        1,
    );
    assert_eq!(read(&dump).unwrap().report.digest, plain);
    // A missing table of upstream's is refused.
    let renamed = refused(edited(
        "CREATE TABLE projects (",
        "CREATE TABLE instances (",
    ));
    for part in [
        "table projects is missing",
        "the definition of \"projects\"",
    ] {
        assert!(renamed.contains(part), "{renamed}");
    }
    let without = edited(
        "CREATE TABLE alembic_version (",
        "CREATE TABLE migrate_version (",
    );
    assert!(refused(without).contains("placement-manage db stamp b4ed3a175331"));
}

/// A MySQL dump with an additional value in each provider row.
fn with_values_of_providers(dump: &str, first: &str, last: &str) -> String {
    let begin = "INSERT INTO `resource_providers` VALUES\n";
    let (before, rest) = dump.split_once(begin).unwrap();
    let (rows, after) = rest.split_once(";\n").unwrap();
    let row = |row: &str| {
        let values = row
            .trim_start_matches('(')
            .trim_end_matches(&[')', ','][..]);
        format!("({first}{values}{last})")
    };
    let rows: Vec<String> = rows.lines().map(row).collect();
    format!("{before}{begin}{};\n{after}", rows.join(",\n"))
}

#[test]
fn byte_order_marks_are_skipped_or_reported() {
    let marked = format!("\u{feff}{MYSQL}");
    assert_eq!(
        read(&marked).unwrap().report.digest,
        read(MYSQL).unwrap().report.digest
    );
    let utf16: Vec<u8> = format!("\u{feff}{SQLITE}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(refused(utf16).contains("it is UTF-16, as the redirection of PowerShell"));
}

#[test]
fn export_notes_names_that_mysql_treats_as_equal() {
    let alike = with_rows(&[
        "resource_providers VALUES(NULL,NULL,90,'b0000000-0000-4000-8000-000000000001','CMP-1',0,90,NULL)",
        "resource_providers VALUES(NULL,NULL,91,'b0000000-0000-4000-8000-000000000002','cafe\u{301} ',0,91,NULL)",
        "resource_providers VALUES(NULL,NULL,92,'b0000000-0000-4000-8000-000000000003','Café',0,92,NULL)",
    ]);
    let state = read(&alike).unwrap().state;
    let notes = |dialect| {
        let export = export(&state, "7.1234", dialect, &mut Vec::new()).unwrap();
        export.notes.to_string()
    };
    let noted = notes(Dialect::MySql);
    for part in [
        "2: two names",
        "resource_providers.name: \"cmp-1\" and \"CMP-1\"",
        "and \"Café\"",
    ] {
        assert!(noted.contains(part), "{noted}");
    }
    assert_eq!(notes(Dialect::PostgreSql), "");
}

#[test]
fn refusals_have_no_control_characters() {
    let hostile = "\u{1b}]0;pwned\u{7}\u{9b}2J";
    for (dump, reason) in [
        (
            edited(
                "\tused INTEGER NOT NULL, \n",
                &format!("\t\"{hostile}\" INTEGER, \"{hostile}\" INTEGER, \n"),
            ),
            "table allocations has two columns",
        ),
        (
            format!("BEGIN TRANSACTION;\nINSERT INTO users VALUES('a' '{hostile}');\nCOMMIT;\n"),
            "line 2",
        ),
        (
            MYSQL.replacen("SET NAMES utf8mb4", &format!("SET NAMES `{hostile}`"), 1),
            "the encoding is",
        ),
        (
            edited(
                "'2026-11-27 09:22:47.982812',NULL,1,'user",
                &format!("'{hostile}',NULL,1,'user"),
            ),
            "created_at is",
        ),
    ] {
        let refused = refused(dump);
        assert!(refused.contains(reason), "{refused:?}");
        let is_inert = |c: char| c == '\n' || !c.is_control();
        assert!(refused.chars().all(is_inert), "{refused:?}");
    }
}

#[test]
fn unusual_statement_is_refused() {
    let chain = |of: &str| of.repeat(100_000);
    for (statement, reason) in [
        (
            format!("INSERT INTO users VALUES({}1)", chain("1-")),
            "other values than",
        ),
        (
            format!("INSERT INTO users VALUES({}1)", chain("1 IS NULL ")),
            "other values than",
        ),
        (
            format!("INSERT INTO users VALUES({}", chain("(")),
            "nested too deeply",
        ),
        (
            format!("INSERT INTO users VALUES({})", chain("- ")),
            "other values than",
        ),
        (
            "INSERT INTO users SELECT * FROM projects".to_owned(),
            "other values than",
        ),
        (
            "INSERT INTO users VALUES(now())".to_owned(),
            "other values than",
        ),
        ("INSERT INTO users VALUES(1 2)".to_owned(), "line"),
        (
            format!(
                "CREATE TABLE users (a INTEGER DEFAULT {}1)",
                "1+".repeat(7_000)
            ),
            "not those of",
        ),
        (
            format!("CREATE TABLE users (a INTEGER DEFAULT {}1)", chain("1+")),
            "longer than any of upstream's",
        ),
        (
            format!(
                "CREATE TABLE users (a INTEGER DEFAULT {}1)",
                "(".repeat(10_000)
            ),
            "nested too deeply",
        ),
        (
            format!("INSERT INTO users VALUES('{}", "\n;".repeat(70)),
            "cut off",
        ),
        // Each of them would take 100 bytes before an error is found.
        (
            format!("INSERT INTO traits VALUES (1{})", ",".repeat(15 << 20)),
            "more than 1048576 tokens",
        ),
        (
            format!(
                "INSERT INTO traits VALUES (1 /*! {} */)",
                ",".repeat(2 << 20)
            ),
            "more than 1048576 tokens",
        ),
        (
            format!("INSERT INTO traits VALUES (1{})", ",1".repeat(64)),
            "other values than",
        ),
        (
            format!("INSERT INTO users VALUES('{}')", "x".repeat(17 << 20)),
            "is longer than",
        ),
    ] {
        let refused = refused(format!("BEGIN TRANSACTION;\n{statement};\nCOMMIT;\n"));
        assert!(
            refused.contains(reason),
            "{}: {refused}",
            &statement[..60.min(statement.len())]
        );
    }
}

/// Damages a dump in one place: a byte, a piece, or a line.
fn damage(dump: &mut Vec<u8>, random: &mut SmallRng) {
    let at = random.random_range(0..dump.len());
    match random.random_range(0..6) {
        0 => dump[at] = random.random(),
        1 => dump[at] = b"0123456789-'(),;NULL\n\\"[random.random_range(0..22)],
        2 => dump[at] ^= 1 << random.random_range(0..8),
        3 => drop(dump.drain(at..dump.len().min(at + random.random_range(1..40)))),
        4 => {
            let is_end = |byte: &u8| *byte == b'\n';
            let begins = dump[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
            let line = dump[at..].iter().position(is_end);
            drop(dump.drain(begins..line.map_or(dump.len(), |end| at + end + 1)));
        }
        _ => {
            let from = random.random_range(0..dump.len());
            let piece = dump[from..dump.len().min(from + random.random_range(1..300))].to_vec();
            dump.splice(at..at, piece);
        }
    }
}

#[test]
fn damaged_dump_is_refused_or_imported_consistently() {
    let mut random = SmallRng::seed_from_u64(7);
    let dumps = [short(), MYSQL.to_owned(), POSTGRESQL.to_owned()];
    let mut accepted = 0;
    for case in 0..3000 {
        let which = if case % 10 == 0 { 1 + case / 10 % 2 } else { 0 };
        let mut dump = dumps[which].clone().into_bytes();
        for _ in 0..random.random_range(1..4) {
            damage(&mut dump, &mut random);
        }
        let Ok(import) = import(dump.as_slice()) else {
            continue;
        };
        accepted += 1;
        assert!(import.state.agrees_with_recount());
        let mut sql = Vec::new();
        export(&import.state, "7.1234", Dialect::MySql, &mut sql).unwrap();
        let again = as_dump(MYSQL, &String::from_utf8(sql).unwrap());
        let again = read(&again).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(again.report.digest, import.report.digest, "{case}");
    }
    assert!((1..3000).contains(&accepted), "{accepted}");
}
