//! The help of `placementctl`: groups of commands, examples, and a page for flags that many
//! commands accept.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, Error};

/// Width of help texts, in columns. A narrower terminal has narrower texts.
const WIDTH: usize = 80;
/// Groups of commands in the overview.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Content",
        &[
            "providers",
            "consumers",
            "capacity",
            "usages",
            "candidates",
            "claim",
            "holds",
            "limits",
            "reservations",
            "explain",
            "searches",
            "refuge",
            "fits",
            "what-if",
            "history",
            "watch",
            "bulk",
            "events",
            "compare",
            "api",
        ],
    ),
    (
        "Cluster",
        &[
            "status",
            "top",
            "topology",
            "check",
            "init",
            "members",
            "join-token",
            "replace",
            "drain",
            "undrain",
            "transfer-leader",
            "partitions",
            "compact",
        ],
    ),
    ("Backup", &["backup"]),
    ("Certificates", &["tls"]),
    (
        "Tools",
        &["web", "support-bundle", "completion", "man", "flags"],
    ),
];

/// Examples of the commands without subcommands.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "providers list",
        &[
            "providers list --roots --sort=-vcpu",
            "providers list --class VCPU:8 --trait HW_CPU_X86_AVX2 -o csv",
        ],
    ),
    (
        "providers tree",
        &[
            "providers tree compute-1",
            "providers tree compute-1 --as-of 2h",
        ],
    ),
    ("providers show", &["providers show compute-1 -o json"]),
    (
        "providers holders",
        &["providers holders compute-1 --class VCPU"],
    ),
    (
        "consumers list",
        &[
            "consumers list --provider compute-1 --older-than 7d",
            "consumers list --several-trees -o name",
        ],
    ),
    (
        "consumers show",
        &["consumers show 5e24e200-0000-4000-8000-000000000001"],
    ),
    (
        "consumers audit",
        &[
            "consumers audit",
            "consumers audit --servers-command ./servers.sh --plan plan.jsonl",
        ],
    ),
    (
        "consumers release",
        &[
            "consumers release --apply plan.jsonl --undo undo.jsonl --max 100",
            "consumers release --undo-from undo.jsonl",
        ],
    ),
    (
        "consumers label",
        &[
            "consumers label --servers-command ./servers.sh --plan plan.jsonl",
            "consumers label --apply plan.jsonl",
        ],
    ),
    (
        "capacity",
        &["capacity", "capacity --class VCPU --by aggregate"],
    ),
    ("usages", &["usages --sort=-vcpu --limit 10"]),
    (
        "candidates",
        &["candidates VCPU:8 MEMORY_MB:4096 --limit 10"],
    ),
    (
        "claim",
        &[
            "claim VCPU:4 MEMORY_MB:8192 --project 5f0c --user 9d01",
            "claim VCPU:4 --order pack --project 5f0c --user 9d01",
            "claim VCPU:4 --lease 1h --project 5f0c --user 9d01",
            "claim --data claim.json -o json",
        ],
    ),
    ("holds list", &["holds list", "holds list --overdue"]),
    (
        "holds renew",
        &[
            "holds renew 5e24e200-0000-4000-8000-000000000001 --lease 12h",
            "holds renew 5e24e200-0000-4000-8000-000000000001 --open",
        ],
    ),
    ("limits show", &["limits show", "limits show -o json"]),
    (
        "limits list",
        &["limits list --over", "limits list --project 5f0c"],
    ),
    (
        "limits sync",
        &[
            "limits sync --plan plan.jsonl --region RegionOne",
            "limits sync --apply plan.jsonl",
        ],
    ),
    (
        "limits mode",
        &["limits mode report", "limits mode enforce"],
    ),
    (
        "reservations",
        &["reservations", "reservations --project 5f0c -o wide"],
    ),
    (
        "explain",
        &[
            "explain 'resources=VCPU:8&required=HW_CPU_X86_AVX512F'",
            "explain req-9a1c0000-0000-4000-8000-000000000000",
        ],
    ),
    ("searches", &["searches --since 1h --empty"]),
    (
        "refuge",
        &[
            "refuge compute-1",
            "refuge compute-1 compute-2 --moves",
            "refuge --each",
        ],
    ),
    ("fits", &["fits", "fits -o csv"]),
    ("what-if", &["what-if question.json"]),
    (
        "history",
        &[
            "history --provider compute-1 --kind allocation --limit 20",
            "history --request-id req-9a1c0000-0000-4000-8000-000000000000",
        ],
    ),
    ("watch", &["watch --kind inventory,trait"]),
    ("bulk", &["bulk", "bulk --kind provider"]),
    ("events", &["events --sql mysql --after 7.1234"]),
    (
        "compare",
        &["compare http://old:8778 unix:/var/lib/placementd/admin.sock"],
    ),
    (
        "api",
        &[
            "api GET '/resource_providers?name=compute-1'",
            "api POST /allocations --data body.json",
        ],
    ),
    ("status", &["status", "status -o wide", "status -o json"]),
    ("top", &["top", "top --once --interval 10s"]),
    ("topology", &["topology"]),
    ("check", &["check", "check -o json"]),
    (
        "init",
        &["init --member 1=n1:18779 --member 2=n2:18779 --member 3=n3:18779"],
    ),
    ("members list", &["members list", "members list -o wide"]),
    ("members promote", &["members promote node-4"]),
    ("members demote", &["members demote 4"]),
    ("members remove", &["members remove 2"]),
    (
        "join-token create",
        &["join-token create --ttl 30m > token"],
    ),
    ("join-token list", &["join-token list"]),
    ("join-token revoke", &["join-token revoke 5"]),
    ("replace", &["replace node-2 > token"]),
    ("drain", &["drain node-1", "drain --region north"]),
    ("undrain", &["undrain node-1"]),
    (
        "transfer-leader",
        &["transfer-leader", "transfer-leader node-2"],
    ),
    ("partitions list", &["partitions list"]),
    (
        "partitions create",
        &["partitions create north --prefix /north"],
    ),
    (
        "partitions route",
        &["partitions route north --host placement.north.example"],
    ),
    (
        "partitions import",
        &["partitions import north north.backup"],
    ),
    ("partitions delete", &["partitions delete north"]),
    ("compact", &["compact", "compact node-2"]),
    (
        "backup",
        &["backup /backups/monday", "backup - | gzip > monday.gz"],
    ),
    ("tls init", &["tls init --dir pki"]),
    (
        "tls issue node",
        &["tls issue node 1 --dir pki --host 10.0.0.1 --host ctl1.example"],
    ),
    ("tls issue admin", &["tls issue admin alice --dir pki"]),
    ("tls renew node", &["tls renew node 1 --dir pki"]),
    ("tls renew admin", &["tls renew admin alice --dir pki"]),
    (
        "tls show",
        &["tls show pki/node-1.pem", "tls show pki/ca.pem -o json"],
    ),
    ("web", &["web", "web --listen 127.0.0.1:8780"]),
    ("support-bundle", &["support-bundle bundle.tar.gz"]),
    (
        "completion",
        &["completion bash > /etc/bash_completion.d/placementctl"],
    ),
    ("man", &["man /usr/local/share/man/man1"]),
];

/// Words of other tools, and the commands for them. clap would suggest words that look similar.
const ELSEWHERE: &[(&str, &str)] = &[
    ("allocation", "consumers"),
    ("allocations", "consumers"),
    ("health", "status"),
    ("host", "providers"),
    ("hosts", "providers"),
    ("inventories", "providers"),
    ("inventory", "providers"),
    ("node", "members"),
    ("nodes", "members"),
    ("quota", "limits"),
    ("resource", "providers"),
    ("server", "consumers"),
    ("servers", "consumers"),
];

/// Suggests the command for a word of another tool.
pub(crate) fn suggest(refused: &mut Error) {
    let found = match refused.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => ELSEWHERE.iter().find(|(other, _)| other == word),
        _ => None,
    };
    if let Some((_, command)) = found {
        let command = ContextValue::Strings(vec![(*command).to_owned()]);
        refused.insert(ContextKind::SuggestedSubcommand, command);
    }
}

/// All commands with examples. Manual pages and completions are generated from this.
pub(crate) fn definition() -> Command {
    with_examples(crate::Command::command(), "")
}

/// The commands as parsed. The help of a command shows its own flags, and only the names of flags
/// that many commands accept.
pub(crate) fn command() -> Command {
    let mut root = without_global_flags(definition()).max_term_width(WIDTH);
    root.build();
    let flags = flags();
    let root = finished(root, "", &flags);
    let overview = overview(&root);
    root.help_template(overview)
}

/// The text of `help flags`.
pub(crate) fn flags() -> String {
    let mut root = definition();
    root.build();
    let reader = root.find_subcommand("capacity");
    let reader = reader.expect("a command that accepts all flags for content");
    let flags = reader.get_arguments().filter(|flag| flag.is_global_set());
    let mut page = Command::new("flags")
        .max_term_width(WIDTH)
        .disable_help_flag(true)
        .args(flags.cloned())
        .help_template("{all-args}");
    page.render_long_help().to_string()
}

/// The path of a subcommand, without the name of the program.
fn path_of(parent: &str, command: &Command) -> String {
    format!("{parent} {}", command.get_name()).trim().to_owned()
}

/// Adds a paragraph to the text below the flags.
fn with_paragraph(command: Command, paragraph: &str) -> Command {
    let text = match command.get_after_help() {
        Some(text) => format!("{text}\n\n{paragraph}"),
        None => paragraph.to_owned(),
    };
    command.after_help(text)
}

fn with_examples(command: Command, path: &str) -> Command {
    let found = EXAMPLES.iter().find(|(name, _)| *name == path);
    let command = match found {
        None => command,
        Some((_, examples)) => {
            let lines = examples.iter();
            let lines: Vec<_> = lines.map(|line| format!("  placementctl {line}")).collect();
            with_paragraph(command, &format!("Examples:\n{}", lines.join("\n")))
        }
    };
    command.mut_subcommands(|sub| {
        let path = path_of(path, &sub);
        with_examples(sub, &path)
    })
}

/// Omits the global flags from the help.
fn without_global_flags(command: Command) -> Command {
    let command = command.mut_args(|flag| {
        let is_hidden = flag.is_global_set();
        flag.hide_short_help(is_hidden).hide_long_help(is_hidden)
    });
    command.mut_subcommands(without_global_flags)
}

/// Adds the names of the global flags, and fixes the usage line: in errors it would contain each
/// flag that an environment variable sets. `flags`: the text of `help flags`.
fn finished(mut command: Command, path: &str, flags: &str) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    let names: Vec<_> = (command.get_arguments())
        .filter(|flag| flag.is_global_set())
        .filter_map(|flag| Some(format!("--{}", flag.get_long()?)))
        .collect();
    let names = names.join(", ");
    let names = format!("Common flags (`placementctl help flags`): {names}");
    let paragraph = match path {
        "" => format!("{names}\n\n`placementctl help COMMAND` describes a command."),
        "flags" => flags.to_owned(),
        _ => names,
    };
    let mut command = with_paragraph(command.override_usage(usage), &paragraph);
    if path == "flags" {
        command =
            command.help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}");
    }
    for sub in command.get_subcommands_mut() {
        if sub.get_name() != "help" {
            let path = path_of(path, sub);
            *sub = finished(std::mem::take(sub), &path, flags);
        }
    }
    command
}

/// The help of the program, with its commands in groups.
fn overview(root: &Command) -> String {
    let heading = root.get_styles().get_header();
    let all = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = all.map(|name| name.len()).max().unwrap_or(0);
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        text += &format!("\n{heading}{group}:{heading:#}\n");
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {name:width$}  {about}\n");
        }
    }
    text += &format!("\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    text
}

#[cfg(test)]
mod tests;
