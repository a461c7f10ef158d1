//! `placement-manage` and `placement-status` as deployment tools call them. There is no database: a node makes what it
//! stores, and upgrades it with the cluster. So these say that there is nothing to do, in the words, the tables and the
//! exit codes of upstream's.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

/// Upstream's exit code for a count that is none.
const NOT_POSITIVE: u8 = 127;

/// What upstream looks for, and why it is not found here.
const CHECKS: [(&str, &str); 3] = [
    (
        "Missing Root Provider IDs",
        "Nothing to do: a provider has its root from the start.",
    ),
    (
        "Incomplete Consumers",
        "Nothing to do: a consumer has its owners from the start.",
    ),
    (
        "Policy File JSON to YAML Migration",
        "Nothing to do: JSON is read, as it is YAML.",
    ),
];

/// `placement-manage`.
pub fn manage() -> ExitCode {
    let db = Command::new("db")
        .about("What upstream does to its database")
        .subcommand(Command::new("sync").about("Nothing: there is no schema"))
        .subcommand(Command::new("version").about("Prints None: there is no schema"))
        .subcommand(
            Command::new("stamp")
                .about("Nothing: there is no schema")
                .arg(Arg::new("version").required(true)),
        )
        .subcommand(
            Command::new("online_data_migrations")
                .about("Nothing: the nodes bring their data up to date themselves")
                .arg(
                    Arg::new("max-count")
                        .long("max-count")
                        .value_name("N")
                        .help("How many rows upstream would migrate at most"),
                ),
        );
    let mut command = oslo("placement-manage").subcommand(db);
    let matches = command.clone().get_matches();
    let Some(("db", db)) = matches.subcommand() else {
        return help(&mut command, 1);
    };
    match db.subcommand() {
        Some(("online_data_migrations", matches)) => migrate(matches),
        Some((name, _)) => {
            if name == "version" {
                println!("None");
            }
            eprintln!(
                "placement-manage: placementd has no database and no schema: nothing to do for `db {name}`"
            );
            ExitCode::SUCCESS
        }
        None => help(&mut command, 0),
    }
}

fn migrate(matches: &ArgMatches) -> ExitCode {
    match matches.get_one::<String>("max-count") {
        Some(count) if !count.parse::<u64>().is_ok_and(|count| count > 0) => {
            println!("Must supply a positive value for max_count");
            return ExitCode::from(NOT_POSITIVE);
        }
        Some(_) => {}
        None => println!("Running batches of 50 until complete"),
    }
    let line = "+-----------------------------+-------------+-----------+";
    println!("{line}\n|          Migration          | Total Found | Completed |\n{line}");
    for name in ["set_root_provider_ids", "create_incomplete_consumers"] {
        println!("|{name:^29}|{:^13}|{:^11}|", 0, 0);
    }
    println!("{line}");
    ExitCode::SUCCESS
}

/// `placement-status`.
pub fn status() -> ExitCode {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    let upgrade = Command::new("upgrade")
        .about("What upstream asks before an upgrade")
        .arg(json.help("JSON for programs"))
        .subcommand_required(true)
        .subcommand(Command::new("check").about("Finds nothing to do"));
    let command = oslo("placement-status").subcommand_required(true);
    let matches = command.subcommand(upgrade).get_matches();
    let upgrade = matches.subcommand_matches("upgrade");
    match upgrade.is_some_and(|upgrade| upgrade.get_flag("json")) {
        true => println!("{}", as_json()),
        false => println!("{}", as_table()),
    }
    ExitCode::SUCCESS
}

fn as_json() -> serde_json::Value {
    let check = |(check, details)| json!({"check": check, "result": 0, "details": details});
    let checks: Vec<_> = CHECKS.map(check).into();
    json!({"name": "Upgrade Check Results", "checks": checks})
}

fn as_table() -> String {
    let mut cells = vec![vec!["Upgrade Check Results".to_owned()]];
    cells.extend(CHECKS.map(|(check, details)| {
        let lines = [
            ("Check", check),
            ("Result", "Success"),
            ("Details", details),
        ];
        lines.map(|(name, value)| format!("{name}: {value}")).into()
    }));
    let width = cells.iter().flatten().map(String::len).max().unwrap_or(0);
    let rule = format!("+{}+\n", "-".repeat(width + 2));
    let row = |cell: &Vec<String>| {
        let lines = cell.iter().map(|line| format!("| {line:width$} |\n"));
        lines.collect::<String>() + &rule
    };
    let table = rule.clone() + &cells.iter().map(row).collect::<String>();
    table.trim_end().to_owned()
}

/// A command with the options that all of OpenStack's have, of which none changes anything here.
fn oslo(name: &'static str) -> Command {
    let mut command = Command::new(name)
        .about("Stands in for the program of openstack-placement that has this name, where placementd serves")
        .disable_version_flag(true)
        .arg(
            Arg::new("version")
                .long("version")
                .action(ArgAction::Version)
                .help("Prints the version of placementd"),
        );
    for (option, alias) in [
        ("config-file", ""),
        ("config-dir", ""),
        ("log-file", "logfile"),
        ("log-dir", "logdir"),
    ] {
        let arg = Arg::new(option).long(option).value_name("PATH");
        let arg = arg.action(ArgAction::Append).global(true);
        let arg = match alias {
            "" => arg,
            alias => arg.alias(alias),
        };
        command = command.arg(arg.help("Taken and not read"));
    }
    let debug = Arg::new("debug").long("debug").short('d').global(true);
    let debug = debug.action(ArgAction::SetTrue).help("Changes nothing");
    command.arg(debug)
}

fn help(command: &mut Command, code: u8) -> ExitCode {
    println!("{}", command.render_help());
    ExitCode::from(code)
}
