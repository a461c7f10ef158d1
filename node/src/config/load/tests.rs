use super::*;

fn load(text: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), text).unwrap();
    let own = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
    };
    Config::load(Some(file.path()), own(env), own(flags)).map(|(config, _)| config)
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let file = "node_id = 1\n[api]\nlisten = \"127.0.0.1:1\"\nmax_connections = \
        7\ndrain_notice_ms = 9";
    let config = load(
        file,
        &[
            ("PLACEMENTD_API_LISTEN", "127.0.0.1:2"),
            ("PLACEMENTD_API_MAX_CONNECTIONS", "8"),
            ("HOME", "/"),
        ],
        &[("api-listen", "127.0.0.1:3")],
    )
    .unwrap();
    assert_eq!(config.api.listen, "127.0.0.1:3");
    assert_eq!(config.api.max_connections, 8);
    assert_eq!(config.api.drain_notice_ms, 9);
    assert_eq!(config.cluster.wait_ms, 5_000);
}

#[test]
fn unknown_key_is_refused_with_the_nearest_known_one() {
    let error = load("node_id = 1\n[api]\nlistn = \"127.0.0.1:1\"", &[], &[]).unwrap_err();
    assert!(
        error.to_string().contains("did you mean `api.listen`"),
        "{error}"
    );
    let error = load("nod_id = 1", &[], &[]).unwrap_err();
    assert!(
        error.to_string().contains("did you mean `node_id`"),
        "{error}"
    );
    let error = load("node_id = 1\nmax_connections = 4", &[], &[]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("did you mean `api.max_connections`"),
        "{error}"
    );
}

#[test]
fn empty_text_leaves_an_optional_setting_unset() {
    let file = "node_id = 1\ncluster_id = \"\"\n[api]\npublic_url = \
        \"\"\n[backup]\ndirectory = \"/b\"";
    let config = load(file, &[("PLACEMENTD_BACKUP_DIRECTORY", "")], &[]).unwrap();
    assert_eq!(config, load("node_id = 1", &[], &[]).unwrap());
}

#[test]
fn value_of_the_wrong_type_names_its_key() {
    let error = load("node_id = 1\n[api]\nmax_connections = \"big\"", &[], &[]).unwrap_err();
    assert!(error.to_string().contains("api.max_connections"), "{error}");
    let error = load("node_id = 1", &[("PLACEMENTD_NODE_ID", "one")], &[]).unwrap_err();
    assert!(error.to_string().contains("PLACEMENTD_NODE_ID"), "{error}");
}

#[test]
fn cluster_id_is_the_uuid_of_a_cluster() {
    for wrong in ["mine", "00000000-0000-0000-0000-000000000000"] {
        let file = format!("node_id = 1\ncluster_id = \"{wrong}\"");
        let error = load(&file, &[], &[]).unwrap_err().to_string();
        let says = format!(
            "`cluster_id`: \"{wrong}\": this is not the UUID of a cluster, which `placementctl \
             status` prints"
        );
        assert!(error.ends_with(&says), "{error}");
    }
}

#[test]
fn unusable_settings_are_refused_with_their_key() {
    for (text, key) in [
        ("", "node_id"),
        (
            "node_id = 1\n[api]\nlisten = \"0.0.0.0:80\"",
            "api.advertise",
        ),
        ("node_id = 1\n[peer]\nlisten = \"localhost\"", "peer.listen"),
        (
            "node_id = 1\ninitial_members = [\"2=h:1\"]",
            "initial_members",
        ),
        (
            "node_id = 1\ninitial_members = [\"1=h:1\", \"1=h:2\"]",
            "initial_members",
        ),
        ("node_id = 1\ncluster_id = \"mine\"", "cluster_id"),
        (
            "node_id = 1\n[raft]\nround_trip_ms = 20000",
            "raft.round_trip_ms",
        ),
        (
            "node_id = 1\n[cluster]\nautopilot_after_s = 4",
            "cluster.autopilot_after_s",
        ),
        ("node_id = 1\n[api]\nprefix = \"placement\"", "api.prefix"),
        ("node_id = 1\n[api]\nprefix = \"/a//b\"", "api.prefix"),
        (
            "node_id = 1\n[api]\npublic_url = \"cloud.example\"",
            "api.public_url",
        ),
        (
            "node_id = 1\n[api]\nprefix = \"/placement\"\npublic_url = \
            \"https://cloud.example\"",
            "api.public_url",
        ),
        (
            "node_id = 1\n[backup_s3]\nbucket = \"b\"",
            "backup.directory",
        ),
        (
            "node_id = 1\n[backup]\ndirectory = \"/b\"\n[backup_s3]\nbucket = \"b\"\n\
             endpoint = \"https://key:secret@rgw\"",
            "backup_s3.endpoint",
        ),
        (
            "node_id = 1\n[backup]\ndirectory = \"/b\"\n[backup_s3]\nbucket = \"b//c\"",
            "backup_s3.bucket",
        ),
        ("node_id = 1\n[reads]\ndefault = \"fast\"", "reads.default"),
        (
            "node_id = 1\n[trace]\notlp_endpoint = \"collector:4318\"",
            "trace.otlp_endpoint",
        ),
        (
            "node_id = 1\n[trace]\notlp_endpoint = \"http://user:secret@collector\"",
            "trace.otlp_endpoint",
        ),
        ("node_id = 1\n[trace]\nratio = 1.5", "trace.ratio"),
        ("node_id = 1\n[trace]\nratio = nan", "trace.ratio"),
        (
            "node_id = 1\n[reads]\ndefault = \"edge;max=soon\"",
            "reads.default",
        ),
        (
            "node_id = 1\n[admin]\nlisten = \"10.0.0.1:1\"",
            "admin.listen",
        ),
        (
            "node_id = 1\n[cluster]\nsurvive = \"rack\"",
            "cluster.survive",
        ),
        (
            "node_id = 1\n[api]\nlisten = \"10.0.0.1:8778\"",
            "auth.noauth2_beyond_loopback",
        ),
        (
            "node_id = 1\n[api]\nadvertise = \"cloud.example:8778\"",
            "auth.noauth2_beyond_loopback",
        ),
        ("node_id = 1\n[auth]\nstrategy = \"none\"", "auth.strategy"),
        (
            "node_id = 1\n[auth]\nstrategy = \"proxy\"",
            "auth.proxy_addresses",
        ),
        (
            "node_id = 1\n[auth]\nstrategy = \"proxy\"\nproxy_addresses = [\"10.0.0.0/33\"]",
            "auth.proxy_addresses",
        ),
        (
            "node_id = 1\n[auth]\nstrategy = \"keystone\"",
            "keystone.auth_url",
        ),
        (
            "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \
            \"keystone:5000\"",
            "keystone.auth_url",
        ),
        (
            "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \
            \"http://k:5000\"",
            "keystone.username",
        ),
        (
            "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \
            \"http://k:5000\"\n\
             username = \"placement\"",
            "keystone.password",
        ),
        ("node_id = 1\n[log]\nformat = \"xml\"", "log.format"),
        ("node_id = 1\n[audit]\nto = \"kafka\"", "audit.to"),
        ("node_id = 1\n[audit]\nmode = \"hope\"", "audit.mode"),
        (
            "node_id = 1\ndata_dir = \"/d\"\n[audit]\nto = \"file\"\nfile = \"/d/a\"",
            "audit.file",
        ),
    ] {
        let error = load(text, &[], &[]).unwrap_err();
        assert!(error.to_string().contains(key), "{text:?}: {error}");
    }
}

/// An operator who sets up the first node sees in the error what to write.
#[test]
fn errors_of_addresses_and_members_say_what_to_set() {
    for (text, says) in [
        (
            "[peer]\nlisten = \"0.0.0.0:18779\"",
            "`peer.advertise`: is required, because other nodes cannot connect to 0.0.0.0:18779: \
             set an address of this node that they reach, such as 10.0.0.1:18779",
        ),
        (
            "[api]\nlisten = \"[::]:8778\"",
            "`api.advertise`: is required, because clients cannot connect to [::]:8778: set an \
             address of this node that they reach, such as 10.0.0.1:8778",
        ),
        (
            "initial_members = [\"1=a:1\", \"2=b:1\"]",
            "`initial_members`: names 1, 2, but not this node: add \"4=HOST:PEER_PORT\" on all \
             nodes, or correct node_id, which is 4",
        ),
        (
            "initial_members = [\"4=a:1\", \"2=b:1\", \"2=c:1\"]",
            "`initial_members`: contains node 2 twice: give each node a number of its own",
        ),
    ] {
        let error = load(&format!("node_id = 4\n{text}"), &[], &[]).unwrap_err();
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn secrets_are_not_shown() {
    let text = "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\n\
                auth_url = \"https://k/identity, http://k2:5000/v3/\"\nusername = \
                \"placement\"\n";
    let environment = [("PLACEMENTD_KEYSTONE_PASSWORD", "hidden")];
    let config = load(text, &environment, &[]).unwrap();
    assert_eq!(
        config.keystone.auth_urls(),
        ["https://k/identity/v3", "http://k2:5000/v3"]
    );
    for shown in [format!("{config:?}"), config.to_toml()] {
        assert!(!shown.contains("hidden"), "{shown}");
    }
    let other = [("PLACEMENTD_KEYSTONE_PASSWORD", "hidden-2")];
    let other = load(text, &other, &[]).unwrap();
    assert_eq!(config.differs_in(&other), ["keystone.password"]);
    let flag = load(text, &[], &[("keystone-password", "hidden")]).unwrap_err();
    assert!(flag.to_string().contains("unknown setting"), "{flag}");
    for wrong in [
        "password = 777hidden",
        "password = 777",
        "password = [\"hidden\"]",
    ] {
        let error = load(&format!("{text}{wrong}\n"), &[], &[]).unwrap_err();
        let words = error.to_string();
        assert!(
            !words.contains("hidden") && !words.contains("777"),
            "{words}"
        );
    }
}

#[test]
fn a_printed_configuration_reads_back_the_same() {
    let chosen = "node_id = 7\n[api]\nprefix = \"/placement\"\n\
                  public_url = \"https://cloud.example/placement\"\n\
                  trust_proxy_headers = true\n[reads]\ndefault = \"edge\"\n";
    for text in ["node_id = 1\n", chosen] {
        let config = load(text, &[], &[]).unwrap();
        let again = load(&config.to_toml(), &[], &[]).unwrap();
        assert_eq!(again, config);
        assert_eq!(config.differs_in(&again), Vec::<String>::new());
    }
}

#[test]
fn differences_are_named_by_their_settings() {
    let before = load("node_id = 1\n", &[], &[]).unwrap();
    let after = "node_id = 1\n[log]\nlevel = \"warn\"\n[policy]\nfile = \"p\"\n";
    let after = load(after, &[], &[]).unwrap();
    assert_eq!(before.differs_in(&after), ["policy.file", "log.level"]);
}

#[test]
fn every_setting_is_documented_and_numbers_carry_their_unit() {
    for setting in Config::settings() {
        assert!(setting.doc.len() > 10, "{}", setting.path());
        let units = [
            ("_bytes_per_s", "bytes a second"),
            ("_per_s", "a second"),
            ("_ms", "milliseconds"),
            ("_s", "seconds"),
            ("_bytes", "bytes"),
        ];
        let suffixed = |(suffix, _): &&(&str, &str)| setting.key.ends_with(suffix);
        if let Some((_, unit)) = units.iter().find(suffixed) {
            assert!(
                setting.doc.to_lowercase().contains(unit),
                "{}",
                setting.path()
            );
        }
    }
}
