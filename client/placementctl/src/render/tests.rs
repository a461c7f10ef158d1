use serde_json::json;

use super::*;

#[derive(Serialize)]
struct Host {
    name: &'static str,
    used: Option<u64>,
    held: Value,
}

fn rows() -> Rows<Host> {
    let host = |name, used, held| Host { name, used, held };
    let items = vec![
        host("計算, \"1\"", Some(9), json!({"MEMORY_MB": 8, "VCPU": 2})),
        host("host\u{1b}[2J", Some(10), Value::Null),
        host("cafe\u{301}\nx", None, json!(["A", "B"])),
    ];
    Rows::new(items)
        .column("name", |host| host.name)
        .column("used", |host| host.used)
        .wide("resources", |host| host.held.clone())
}

fn printed(format: Format, columns: &str, sort: &str, limit: Option<usize>) -> String {
    let output = Output {
        output: format,
        columns: columns.split_terminator(',').map(str::to_owned).collect(),
        sort: Some(sort.to_owned()).filter(|sort| !sort.is_empty()),
        limit,
    };
    output.rows(rows()).unwrap()
}

#[test]
fn columns_are_aligned_by_display_width() {
    assert_eq!(
        printed(Format::Table, "", "", None),
        "NAME           USED\n\
         計算, \"1\"         9\n\
         host\\u{1b}[2J    10\n\
         cafe\u{301}\\nx           -\n"
    );
    let wide = printed(Format::Wide, "", "", Some(1));
    assert_eq!(
        wide.lines().nth(1),
        Some("計算, \"1\"     9  MEMORY_MB=8 VCPU=2")
    );
}

#[test]
fn csv_has_no_formulas() {
    let cells = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "x=1", "1"].map(Value::from);
    assert_eq!(csv(&cells), "'=1+1,'+1,'-1,'@x,'\tx,\"'\rx\",x=1,1\n");
    assert_eq!(
        csv(&[json!(-1), json!(null), json!(["=1", "2"])]),
        "-1,,\"'=1, 2\"\n"
    );
}

#[test]
fn csv_keeps_cells_unescaped() {
    assert_eq!(
        printed(Format::Csv, "", "", None),
        "name,used,resources\n\"計算, \"\"1\"\"\",9,MEMORY_MB=8 VCPU=2\nhost\u{1b}[2J,10,\n\
         \"cafe\u{301}\nx\",,\"A, B\"\n"
    );
}

#[test]
fn rows_are_sorted_by_number_and_cut_afterwards() {
    let names = |sort| printed(Format::Name, "used", sort, Some(2));
    assert_eq!(names("used"), "9\n10\n");
    assert_eq!(names("-USED"), "10\n9\n");
    assert_eq!(
        printed(Format::Name, "", "name", Some(1)),
        "cafe\u{301}\\nx\n"
    );
}

#[test]
fn unknown_columns_are_found_before_there_are_rows() {
    let rows = || Rows::new(Vec::<u8>::new()).column("name", |row| *row);
    let check = |columns: &[&str], sort: Option<&str>| {
        let output = Output {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            sort: sort.map(str::to_owned),
            ..Output::default()
        };
        output.check_columns(&rows()).is_ok()
    };
    assert!(check(&[], None) && check(&["name"], Some("-name")));
    assert!(!check(&["size"], None) && !check(&[], Some("-size")));
}

#[test]
fn numbers_and_texts_in_one_column_have_an_order() {
    let cells = ["10", "1a", "2"].map(|text| match text.parse::<u64>() {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(text),
    });
    let mut rows = cells.to_vec();
    rows.push(Value::Null);
    rows.sort_by(|one, other| ordered(one, other, false));
    assert_eq!(Value::from(rows), serde_json::json!([2, 10, "1a", null]));
}

#[test]
fn amounts_have_units_in_tables_only() {
    let rows = || {
        Rows::new(vec![("a", 65_536_u64), ("b", 512)])
            .column("name", |row| row.0)
            .column("memory", |row| row.1)
            .in_units(|_| "MEMORY_MB".to_owned())
            .readable("share", |row| row.1, |row| Some(format!("{}/9", row.1)))
            .raw("capacity", |row| row.1)
    };
    assert_eq!(
        Format::Table.printed(rows()),
        "NAME   MEMORY    SHARE\na      64 GiB  65536/9\nb     512 MiB    512/9\n"
    );
    assert_eq!(
        Format::Csv.printed(rows()),
        "name,memory,capacity\na,65536,65536\nb,512,512\n"
    );
    let output = Output {
        sort: Some("share".to_owned()),
        limit: Some(1),
        ..Output::default()
    };
    let first = output.rows(rows()).unwrap();
    assert!(first.contains("\nb     512 MiB"), "{first}");
}

#[test]
fn message_replaces_an_empty_table() {
    let none = || Rows::new(Vec::<u8>::new()).column("name", |row| *row);
    assert_eq!(Format::Table.printed(none()), "NAME\n");
    assert_eq!(Format::Table.printed(none().if_none("no hosts found")), "");
    let csv = Format::Csv.printed(none().if_none("no hosts found"));
    assert_eq!(csv, "name\n");
}

#[test]
fn json_is_the_unchanged_response() {
    let lines = printed(Format::Jsonl, "", "name", Some(1));
    assert_eq!(
        lines,
        "{\"held\":[\"A\",\"B\"],\"name\":\"cafe\u{301}\\nx\",\"used\":null}\n"
    );
    let whole: Value = serde_json::from_str(&printed(Format::Json, "", "", None)).unwrap();
    assert_eq!(list(&whole).len(), 3);
}

#[test]
fn yaml_has_the_same_values_as_json() {
    let answer = json!({"b": [1, {"x": true, "z": null}], "a": "no", "big": u64::MAX, "none": []});
    let text = Output {
        output: Format::Yaml,
        ..Output::default()
    };
    let text = text.report(&answer, NO_ROWS, |text| text).unwrap();
    assert_eq!(
        text,
        "a: \"no\"\nb:\n  - 1\n  - x: true\n    z: ~\nbig: 18446744073709551615\nnone: []\n"
    );
}

#[test]
fn unknown_columns_and_formats_without_rows_are_refused() {
    let output = |format, column: &str| Output {
        output: format,
        columns: vec![column.to_owned()],
        ..Output::default()
    };
    let error = output(Format::Csv, "size").rows(rows()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no column \"size\"; columns: name, used, resources"
    );
    let text = |_| "text".to_owned();
    let answer = json!({ "a": 1 });
    let output = |format| Output {
        output: format,
        ..Output::default()
    };
    assert!(output(Format::Csv).report(&answer, NO_ROWS, text).is_err());
    assert_eq!(
        output(Format::Wide).report(&answer, NO_ROWS, text).unwrap(),
        "text"
    );
    assert_eq!(
        output(Format::Jsonl)
            .report(&answer, NO_ROWS, text)
            .unwrap(),
        "{\"a\":1}\n"
    );
}
