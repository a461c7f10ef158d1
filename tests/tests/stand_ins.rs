//! Replacements of `placement-manage` and `placement-status`, whose exit codes and tables
//! deployment tools check.

use std::path::Path;
use std::process::Command;

use placement_tests::binaries;
use serde_json::Value;

/// Exit code, standard output and standard error of a command.
fn run(line: &str) -> (i32, String, String) {
    let mut words = line.split_whitespace();
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/packaging/debian");
    let script = Path::new(scripts).join(words.next().unwrap());
    // The commands ask `placementd` for its version.
    let placementd = binaries::placementd().unwrap();
    let path = format!("{}:/usr/bin:/bin", placementd.parent().unwrap().display());
    let output = Command::new(script)
        .args(words)
        .env("PATH", path)
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code().unwrap(), out, err)
}

/// Exit codes and output equal those of openstack-placement 16.0.0; the commands' own notes are on
/// standard error.
#[test]
fn database_commands_report_that_they_do_nothing() {
    for call in [
        "placement-manage db sync",
        "placement-manage --config-file /etc/placement/placement.conf db sync",
        "placement-manage --config-dir /etc/placement/placement.conf.d --debug db sync",
        "placement-manage --log-file /var/log/placement.log db stamp a082b8bb98d0",
    ] {
        let (code, out, err) = run(call);
        assert_eq!((code, out.as_str()), (0, ""), "{call}");
        assert!(err.contains("has no database and no schema"), "{err}");
    }
    let (code, out, _) = run("placement-manage db version");
    assert_eq!((code, out.as_str()), (0, "None\n"));

    let table = "\
+-----------------------------+-------------+-----------+
|          Migration          | Total Found | Completed |
+-----------------------------+-------------+-----------+
|    set_root_provider_ids    |      0      |     0     |
| create_incomplete_consumers |      0      |     0     |
+-----------------------------+-------------+-----------+
";
    let (code, out, _) = run("placement-manage db online_data_migrations");
    assert_eq!(code, 0);
    assert_eq!(
        out,
        format!("Running batches of 50 until complete\n{table}")
    );
    let (code, out, _) = run("placement-manage db online_data_migrations --max-count 5");
    assert_eq!((code, out.as_str()), (0, table));
    for count in ["0", "x"] {
        let call = format!("placement-manage db online_data_migrations --max-count {count}");
        let (code, out, _) = run(&call);
        let words = "Must supply a positive value for max_count\n";
        assert_eq!((code, out.as_str()), (127, words), "{call}");
    }
}

#[test]
fn upgrade_check_reports_nothing_to_do() {
    let (code, out, _) = run("placement-status --config-file /etc/placement.conf upgrade check");
    assert_eq!(code, 0);
    let lines: Vec<_> = out.lines().collect();
    assert!(
        lines[0].starts_with("+--") && lines[0].ends_with("--+"),
        "{out}"
    );
    assert!(lines[1].starts_with("| Upgrade Check Results "), "{out}");
    assert!(
        lines.iter().all(|line| line.len() == lines[0].len()),
        "{out}"
    );
    let rules = lines.iter().filter(|line| **line == lines[0]).count();
    assert_eq!((lines.len(), rules), (3 + 3 * 4, 5), "{out}");
    let names = [
        "Missing Root Provider IDs",
        "Incomplete Consumers",
        "Policy File JSON to YAML Migration",
    ];
    for (check, name) in lines[3..].chunks(4).zip(names) {
        assert!(check[0].starts_with(&format!("| Check: {name} ")), "{out}");
        assert!(check[1].starts_with("| Result: Success "), "{out}");
        assert!(check[2].starts_with("| Details: Nothing to do: "), "{out}");
    }

    let (code, out, _) = run("placement-status upgrade --json check");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, json["name"].as_str()),
        (0, Some("Upgrade Check Results"))
    );
    let found: Vec<_> = json["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["check"].as_str().unwrap(), one["result"].as_u64()))
        .collect();
    assert_eq!(found, names.map(|name| (name, Some(0))));
}

#[test]
fn invalid_calls_fail_with_the_exit_codes_of_upstream() {
    for (call, code) in [
        ("placement-manage", 1),
        ("placement-manage db", 0),
        ("placement-manage --version", 0),
        ("placement-manage nonsense", 2),
        ("placement-manage db nonsense", 2),
        ("placement-manage db stamp", 2),
        ("placement-manage db sync --version", 2),
        ("placement-manage --nonsense db sync", 2),
        ("placement-status", 2),
        ("placement-status upgrade", 2),
        ("placement-status upgrade nonsense", 2),
    ] {
        let (found, out, err) = run(call);
        assert_eq!(found, code, "{call}: {out}{err}");
    }
}
