//! The measurements behind `scripts/bench candidates` and `scripts/bench compare`, on clouds so small that their
//! figures mean nothing: they still seed, ask, find candidates and print a line for each question.

#![allow(clippy::unwrap_used)] // A test may fail.

use std::process::Command;

use placement_tests::binaries;

#[test]
fn every_question_for_candidates_gets_its_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_placement-bench"))
        .env("PLACEMENTD", binaries::placementd().unwrap())
        .args(["candidates", "--seconds", "0.05", "--hosts", "12,24"])
        .args(["--trees", "2", "--pci-hosts", "2"])
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Whether the bars are met is for a machine that does nothing else; that it says so is not.
    let missed = table.contains("| MISSED |");
    assert_eq!(output.status.success(), !missed, "{table}\n{said}");
    assert_eq!(said.contains("bars missed"), missed, "{table}\n{said}");
    for (question, candidates) in [
        ("flat, 12 hosts | limit=10", 10),
        ("flat, 12 hosts | no limit", 12),
        ("flat, 24 hosts | limit=10", 10),
        ("flat, 24 hosts | no limit", 24),
        ("nested, 2 trees of 7 | limit=10", 4),
        ("nested, 2 trees of 7 | no limit", 4),
        ("PCI, 2 hosts of 8 | 1 devices, limit=1000", 16),
        ("PCI, 2 hosts of 8 | 2 devices, limit=1000", 112),
        ("PCI, 2 hosts of 8 | 4 devices, limit=1000", 1000),
        ("PCI, 2 hosts of 8 | 8 devices, limit=1000", 1000),
        ("flat with limit=10 at 24 hosts within", 0),
        ("PCI, 8 devices, within 64.0 MiB", 0),
        ("no request above 1s", 0),
    ] {
        let line = match candidates {
            0 => format!("| {question}"),
            count => format!("| {question} | {count} |"),
        };
        assert!(
            table.contains(&line),
            "`{line}` is not in:\n{table}\n{said}"
        );
    }
}

/// The parts of the comparison that need nobody but us: no peer is started, and no load generator.
#[test]
fn the_comparison_tells_its_rows_without_peers() {
    let results = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_placement-bench"))
        .env("PLACEMENTD", binaries::placementd().unwrap())
        .env_remove("PLACEMENT_UPSTREAM_VENV")
        .args(["compare", "--quick", "--seconds", "1", "--size-max", "12"])
        .args(["--only", "claims", "snapshot", "start"])
        .args(["--without", "upstream", "etcd", "wrk"])
        .arg("--results")
        .arg(results.path())
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let missed = table.contains("| MISS |");
    assert_eq!(output.status.success(), !missed, "{table}\n{said}");
    assert_eq!(said.contains("bars missed"), missed, "{table}\n{said}");

    let json = std::fs::read(results.path().join("compare.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let named = |name: &str| rows.iter().find(|row| row["row"] == name).unwrap();
    let claims = named("claims");
    assert!(claims["ours"].as_f64().unwrap() > 0.0, "{claims}");
    assert!(
        claims["met"].is_null() && claims["peer"].is_null(),
        "{claims}"
    );
    let snapshot = named("snapshot");
    let (ours, peer) = (&snapshot["ours"], &snapshot["peer"]);
    let within = ours.as_f64().unwrap() <= 1.5 * peer.as_f64().unwrap();
    assert_eq!(snapshot["met"], within, "{snapshot}");
    let start = rows.iter().filter(|row| row["row"] == "start").count();
    assert_eq!(start, 2, "{table}");
    assert_eq!(rows.len(), 4, "{table}");
}
