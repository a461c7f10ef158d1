//! Black-box tests: clusters of real processes, in one binary. Tests that measure time or memory
//! have binaries of their own, which cargo runs one at a time; `Cargo.toml` lists them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod backup;
mod backup_store;
mod bad_input;
mod balancer;
mod blazar;
mod browser;
mod callers;
mod capacity_gauges;
mod changes;
mod claims;
mod clients;
mod clocks;
mod commands;
mod consistency;
mod deploy;
mod differential;
mod disk;
mod documents;
mod drain;
mod edge;
mod events;
mod explain;
mod following;
mod holds;
mod imports;
mod inspect;
mod introductions;
mod join;
mod keystone;
mod limits;
mod membership;
mod metrics;
mod mirror;
mod moments;
mod nova_lists;
mod observability;
mod older_copy;
mod operator;
mod operator_api;
mod orphans;
mod osc_placement;
mod pages;
mod partitions;
mod policy;
mod power_cut;
mod random_requests;
mod recover;
mod refuse_to_start;
mod reload;
mod round_trips;
mod run_cluster_tool;
mod runbook;
mod scripts;
mod sites;
mod slow_clients;
mod stand_ins;
mod supervisor;
mod support_bundle;
mod syncs;
mod terminals;
mod tls;
mod topology;
mod traces;
mod transfer;
mod tutorial;
mod unread_log;
mod upgrade;
mod web_login;
mod what_if;

/// Checks the packages that list their test binaries.
#[test]
fn every_test_file_belongs_to_a_binary() {
    for package in ["tests", "raft-store", "simulations"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let read = |path| std::fs::read_to_string(format!("{folder}/{package}/{path}")).unwrap();
        let (manifest, main) = (read("Cargo.toml"), read("tests/main.rs"));
        for file in std::fs::read_dir(format!("{folder}/{package}/tests")).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            let stem = file.trim_end_matches(".rs");
            let module = format!("\nmod {stem};\n");
            let is_run = main.contains(&module)
                || manifest.contains(&format!("path = \"tests/{stem}.rs\"\n"))
                || file == "fixtures";
            assert!(is_run, "{package}/tests/{file} is in no binary");
        }
    }
}
