//! Generates a sample file and `docs/configuration.md` from the declarations of the settings.

use super::{Config, FitSection, LISTS, PartitionSection};
use placement_base::settings::Table;

/// All tables, in the order of the file.
fn tables() -> Vec<Table> {
    let mut tables = Config::tables("");
    tables.extend(PartitionSection::tables("partitions"));
    tables.extend(FitSection::tables("fits"));
    tables
}

/// Each line of a text, without the space at the start of a comment.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim)
}

/// A file with each setting and its default, commented out.
pub(crate) fn sample() -> String {
    let mut text = String::new();
    for table in tables() {
        match table.name {
            "" => {}
            list if LISTS.contains(&list) => text += &format!("\n# [[{list}]]\n"),
            name => text += &format!("\n[{name}]\n"),
        }
        for line in lines(table.about) {
            text += &format!("## {line}\n");
        }
        for setting in &table.settings {
            let default = match &setting.default {
                Some(default) => default,
                None if LISTS.contains(&table.name) => "…",
                None => "\"\"",
            };
            for line in lines(setting.doc) {
                text += &format!("## {line}\n");
            }
            text += &format!("# {} = {default}\n", setting.key);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_base::settings::Setting;

    /// Settings of a typical cloud; the other defaults fit.
    const COMMON: [&str; 14] = [
        "node_id",
        "initial_members",
        "api.listen",
        "api.public_url",
        "peer.listen",
        "peer.tls",
        "tls.ca_file",
        "tls.cert_file",
        "tls.key_file",
        "auth.strategy",
        "keystone.auth_url",
        "keystone.username",
        "keystone.password",
        "backup.directory",
    ];

    /// The text of `docs/configuration.md`.
    fn document() -> String {
        let mut text = "# Configuration\n\n\
            A setting is a key of the TOML file (`placementd --config FILE`), a variable of the environment \
            (`PLACEMENTD_API_LISTEN` for `listen` in `[api]`) or a flag (`--api-listen`); flags override variables, and variables \
            the file. In a variable or a flag, a list is separated by commas. An unknown key is refused. `placementd \
            check-config` checks a configuration and prints it with all defaults, and `placementd config sample` prints a file to \
            begin with.\n\n\
            `SIGHUP` re-reads `[policy]` and `[log] level`; every other change takes effect at a restart.\n\n\
            A cloud sets these fourteen:\n\n"
            .to_owned();
        let tables = tables();
        let all = || tables.iter().flat_map(|table| &table.settings);
        for path in COMMON {
            let setting = all()
                .find(|setting| setting.path() == path)
                .expect("it is one of them");
            let doc: Vec<_> = lines(setting.doc).collect();
            let doc = doc.join(" ");
            let first = doc.split_inclusive(". ").next().unwrap_or_default();
            text += &format!("* `{path}`: {}\n", first.trim());
        }
        for table in &tables {
            let name = match table.name {
                "" => "The top of the file".to_owned(),
                list if LISTS.contains(&list) => format!("`[[{list}]]`"),
                name => format!("`[{name}]`"),
            };
            let about: Vec<_> = lines(table.about).collect();
            text += &format!("\n## {name}\n\n{}\n\n", about.join("\n"));
            for setting in &table.settings {
                let doc: Vec<_> = lines(setting.doc).collect();
                text += &format!(
                    "* `{}`{}: {}\n",
                    setting.key,
                    default(setting),
                    doc.join("\n  ")
                );
            }
        }
        text
    }

    fn default(setting: &Setting) -> String {
        match setting.default.as_deref() {
            None => String::new(),
            Some("\"\"" | "[]") => " (empty)".to_owned(),
            Some(default) => format!(" (`{default}`)"),
        }
    }

    #[test]
    fn page_is_up_to_date() {
        placement_docs::assert_kept("configuration.md", &document());
    }

    #[test]
    fn sample_is_a_configuration_of_defaults() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), sample()).unwrap();
        let (config, _) = Config::read(Some(file.path()), [], []).unwrap();
        assert_eq!(config, Config::default());
        // Each line is valid without the comment mark, except those of lists.
        let sample_text = sample();
        let (tables_of_one, _) = sample_text.split_once("\n# [[partitions]]").unwrap();
        std::fs::write(file.path(), tables_of_one.replace("\n# ", "\n")).unwrap();
        let (config, _) = Config::read(Some(file.path()), [], []).unwrap();
        assert_eq!(config, Config::default());
        for setting in tables().iter().flat_map(|table| &table.settings) {
            assert!(sample().contains(&format!("\n# {} = ", setting.key)));
        }
    }
}
