use std::path::Path;
use std::time::Duration;

use g711::Codec;
use jiff::SignedDuration;
use phone::signalling::Transport;
use phone::trunk::NumberForm;

use super::*;

fn variables(environment: &[(&str, &str)]) -> Vec<(String, String)> {
    environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn load(file: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::from_parts(file, &variables(environment))
}

fn error(file: &str, environment: &[(&str, &str)]) -> String {
    load(file, environment).unwrap_err().to_string()
}

/// Returns a valid trunk with some more settings.
fn trunk(more: &str) -> String {
    format!("[[trunk]]\nname = \"provider\"\nprefixes = [\"86\"]\n{more}\n")
}

#[test]
fn the_defaults_are_complete_and_sound() {
    let config = load("", &[]).unwrap();
    assert_eq!(config.http.soft_versions, ["2013-12-26", "2013-03-22"]);
    assert_eq!(config.callbacks.schedule.waits.len(), 9);
    assert_eq!(
        config.database,
        Database::Sqlite("clarion-data/clarion.db".into())
    );
    assert_eq!(config.bills.folder, Path::new("clarion-data/bills"));
    assert_eq!(
        config.calls.retention,
        Some(SignedDuration::from_hours(180 * 24))
    );
}

#[test]
fn every_setting_has_a_comment() {
    let mut explained = false;
    for line in DEFAULTS.lines() {
        let is_setting = line.contains(" = ");
        assert!(!is_setting || line.starts_with('#') || explained, "{line}");
        explained = line.starts_with('#') || (explained && is_setting);
    }
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_defaults() {
    let file = "time_zone = \"Asia/Shanghai\"\n[http]\nlisten = [\"127.0.0.1:1\"]\nmax_headers = 7";
    let environment = [
        ("CLARION_HTTP__LISTEN", "[\"127.0.0.1:2\"]"),
        ("CLARION_DATA_DIR", "/srv/x"),
        (
            "CLARION_TRUNK",
            "[{name = \"a\", host = \"192.0.2.1\", prefixes = [\"\"]}]",
        ),
    ];
    let config = load(file, &environment).unwrap();
    assert_eq!(config.http.listen, ["127.0.0.1:2".parse().unwrap()]);
    assert_eq!(
        (config.http.max_headers, config.data_dir.as_path()),
        (7, Path::new("/srv/x"))
    );
    assert_eq!(config.audio_files.folder, Path::new("/srv/x/voices"));
    assert_eq!(config.trunks[0].name(), "a");
}

#[test]
fn a_trunk_is_read_into_what_routing_and_sip_want() {
    let more = "host = \"sip.example:5070\"\ntransport = \"tls\"\ncodecs = [\"pcmu\"]\nsrtp = true\n\
                channels = 3\ncalls_per_second = 2\nuser = \"u\"\npassword = \"p\"\nregister_seconds = 300\n\
                options_seconds = 0\nbind = \"127.0.0.1:5080\"\nadvertised = \"203.0.113.7:5080\"\n\
                rewrite = [{ from = \"86\", to = \"0\" }]\ncaller = \"12345\"";
    let config = load(&trunk(more), &[]).unwrap();
    let [trunk] = config.trunks.as_slice() else {
        panic!("{:?}", config.trunks);
    };
    assert_eq!((trunk.channels, trunk.calls_per_second), (3, 2));
    assert_eq!(trunk.peer().to_string(), "sip.example:5070");
    assert_eq!(trunk.endpoint.transport, Transport::Tls);
    assert_eq!(
        trunk.endpoint.advertised,
        Some("203.0.113.7:5080".parse().unwrap())
    );
    assert_eq!(trunk.sip.media.codecs, [Codec::Pcmu]);
    assert_eq!(trunk.sip.register, Some(Duration::from_secs(300)));
    assert_eq!(trunk.sip.ask_every, None);
    assert_eq!(trunk.route.called("8613800138000"), "013800138000");
    assert_eq!(trunk.route.calling(None), "12345");
    assert!(trunk.loopback.is_none());
}

#[test]
fn a_loopback_trunk_stays_on_this_machine() {
    let config = load(&trunk("loopback = true\nrecord = \"/tmp/x\""), &[]).unwrap();
    let trunk = &config.trunks[0];
    assert!(trunk.endpoint.bind.ip().is_loopback() && trunk.sip.ask_every.is_none());
    assert_eq!(
        trunk.loopback.as_ref().unwrap().record.as_deref(),
        Some(Path::new("/tmp/x"))
    );
}

/// A file and its error: table and key first, then the rule.
const MISTAKES: &[(&str, &str)] = &[
    // Names, types and syntax.
    (
        "[http]\nlissen = 1",
        "there is no setting `http.lissen`; did you mean `http.listen`?",
    ),
    ("[htp]\n", "there is no setting `htp`; did you mean `http`?"),
    (
        "http = 1",
        "`http` is a section, not a setting: write [http]",
    ),
    (
        "[trunk]\nname = \"a\"",
        "`trunk` is a list: write [[trunk]]",
    ),
    (
        "[http]\nmax_headers = \"many\"",
        "http.max_headers: must be of type integer, not string",
    ),
    (
        "[http]\nlisten = [1]",
        "http.listen: must be of type array of strings, not integer",
    ),
    (
        "min_free_mb = -1",
        "min_free_mb: must be from 0 to 17179869184",
    ),
    // Time zone and database.
    (
        "time_zone = \"Peking\"",
        "time_zone: `Peking` is not an IANA time zone such as Asia/Shanghai",
    ),
    (
        "database = \"mysql:x\"",
        "database: must begin with `sqlite:` or `postgres:`",
    ),
    (
        "database = \"sqlite:\"",
        "database: name a file after `sqlite:`",
    ),
    (
        "database = \"postgres://host:port/x\"",
        "database: is not an address such as postgres://user:password@host/name: ",
    ),
    (
        "database = \"postgres://host/x?sslmode=on\"",
        "database: the parameter `sslmode` must be one of disable, allow, prefer, require, verify-ca, verify-full",
    ),
    (
        "[store]\nstatement_seconds = 0",
        "store.statement_seconds: must be from 1 to 60",
    ),
    (
        "[store]\nstatement_seconds = 9\nlong_statement_seconds = 8",
        "store.long_statement_seconds: must not be less than statement_seconds",
    ),
    // Addresses, networks, files.
    (
        "[http]\nlisten = []",
        "http.listen: name at least one address",
    ),
    (
        "[http]\nlisten = [\"localhost\"]",
        "http.listen: `localhost` is not an address with a port such as 0.0.0.0:8883",
    ),
    (
        "[http]\ncertificate = \"x\"",
        "http.certificate: name it together with private_key, or neither of them",
    ),
    (
        "[console]\nlisten = [\"localhost\"]",
        "console.listen: `localhost` is not an address with a port such as 127.0.0.1:8884",
    ),
    (
        "[console]\nplain = true\nlisten = [\"127.0.0.1:1\", \"0.0.0.0:2\"]",
        "console.plain: passwords are not sent in clear: listen on a loopback address such as 127.0.0.1:8884 only",
    ),
    (
        "[console]\nfailures_of_name = 0",
        "console.failures_of_name: must be from 1 to 1000",
    ),
    (
        "[http]\nhost_names = [\"a b\"]",
        "http.host_names: `a b` is neither a name nor an address",
    ),
    (
        "[http]\nsoft_versions = [\"a/b\"]",
        "http.soft_versions: `a/b` cannot be the first part of a path",
    ),
    (
        "[http]\ntrusted_proxies = [\"nowhere\"]",
        "http.trusted_proxies: `nowhere` is not an address such as 192.0.2.7 or a network such as 192.0.2.0/24",
    ),
    (
        "[http]\npublic_url = \"ftp://x\"",
        "http.public_url: `ftp://x` is not an address such as https://voice.example.com:8883",
    ),
    (
        "[http]\npublic_url = \"https://x/?a\"",
        "http.public_url: must have neither ? nor #",
    ),
    (
        "[callbacks]\nallowed_networks = [\"10.0.0.0/33\"]",
        "callbacks.allowed_networks: `10.0.0.0/33` is not an address",
    ),
    (
        "[media]\nbind = \"here\"",
        "media.bind: `here` is not an address such as 203.0.113.7",
    ),
    (
        "[media]\nports = \"20000\"",
        "media.ports: write two ports, such as 20000-29999",
    ),
    (
        "[media]\nports = \"30000-20000\"",
        "media.ports: write two ports, such as 20000-29999",
    ),
    ("[media]\ndscp = 64", "media.dscp: must be from 0 to 63"),
    (
        "[log]\nsip_trace_mb = 2000",
        "log.sip_trace_mb: must be from 0 to 1024",
    ),
    // Numbers, times, parts.
    (
        "[http]\nhead_seconds = 0",
        "http.head_seconds: must be from 1 to 1000000",
    ),
    (
        "[http]\nmax_connections = 9000000000000000000",
        "http.max_connections: must be from 1 to 1000000",
    ),
    (
        "[http]\nmax_body_bytes = 1",
        "http.max_body_bytes: must be from 1024 to",
    ),
    (
        "[calls]\nretention_days = -1",
        "calls.retention_days: must be from 0 to 36500",
    ),
    (
        "[callbacks]\nper_host = 0",
        "callbacks.per_host: must be from 1 to 10000",
    ),
    (
        "[callbacks]\nlease_seconds = 16",
        "callbacks.lease_seconds: must be at least 2 more than callbacks.time_limit_seconds",
    ),
    (
        "[callbacks]\nretry_seconds = [-1]",
        "callbacks.retry_seconds: must be from 0 to 2678400 each",
    ),
    (
        "[callbacks]\njitter = 2.0",
        "callbacks.jitter: must be from 0 to 1",
    ),
    (
        "[callbacks]\nuser_agent = \"a\\nb\"",
        "callbacks.user_agent: cannot be sent in a header",
    ),
    (
        "[callbacks]\nper_account = 0",
        "callbacks.per_account: must be from 1 to 10000",
    ),
    (
        "[callbacks]\nper_address = 0",
        "callbacks.per_address: must be from 1 to 10000",
    ),
    (
        "[audio_files]\nuploads_at_once = 0",
        "audio_files.uploads_at_once: must be from 1 to 1000000",
    ),
    (
        "[audio_files]\nuploads_per_account = 0",
        "audio_files.uploads_per_account: must be from 1 to 1000000",
    ),
    (
        "[audio_files]\nmin_upload_bytes_per_second = -1",
        "audio_files.min_upload_bytes_per_second: must be from 0 to 4294967295",
    ),
    (
        "[speech]\ntext_seconds = 0",
        "speech.text_seconds: must be from 1 to 86400",
    ),
    (
        "[prompts]\ngap_ms = -5",
        "prompts.gap_ms: must be from 0 to 3600000",
    ),
    (
        "[bills]\nretention_days = 2",
        "bills.retention_days: must be from 3 to 36500",
    ),
    (
        "[bills]\ntoken_hours = 0",
        "bills.token_hours: must be from 1 to 8760",
    ),
    (
        "[dispatch]\nlease_seconds = 1",
        "dispatch.lease_seconds: must be from 2 to 3600",
    ),
    (
        "[dispatch]\nring_seconds = 0",
        "dispatch.ring_seconds: must be from 1 to 600",
    ),
    // Words.
    (
        "[bills]\nbill_json_key = \"url\"",
        "bills.bill_json_key: `url` is neither downurl nor downUrl",
    ),
    (
        "[log]\nformat = \"xml\"",
        "log.format: `xml` is neither text nor json",
    ),
    (
        "[log]\nfilter = \"clarion=loud\"",
        "log.filter: `clarion=loud` is not a filter",
    ),
    (
        "[speech]\nurl = \"ftp://x/\"",
        "speech.url: `ftp://x/` is not an address such as https://voice.example.com:8883",
    ),
    (
        "[speech]\nurl = \"http://x/\"\ncommand = [\"y\"]",
        "speech.url: name either this or speech.command, not both",
    ),
    // Telephone numbers and rates.
    (
        "[numbers]\ncountry_code = \"\"",
        "numbers.country_code: must be digits, such as 86",
    ),
    (
        "[numbers]\ntrunk_prefix = \"o\"",
        "numbers.trunk_prefix: `o` must be digits",
    ),
    (
        "[numbers]\nlocal_numbers = [\"7x\"]",
        "numbers.local_numbers: `7x` is no pattern of 1 to 15 digits",
    ),
    (
        "[numbers]\narea_codes = [\"7X\"]",
        "numbers.local_numbers: there are area codes and local numbers, or neither of them",
    ),
    (
        "[dispatch]\ncallee_caps = \"all\"",
        "dispatch.callee_caps: `all` must be none or considerate",
    ),
    (
        "[numbers]\ndefault_caller = \"x\"",
        "numbers.default_caller: `x` is not a telephone number",
    ),
    (
        "[numbers]\nemergency = [\"\"]",
        "numbers.emergency: an empty text is no number",
    ),
    (
        "[numbers]\nforbidden = [\"x*\"]",
        "numbers.forbidden: `x*` is not a number pattern",
    ),
    (
        "[rates]\ndefault = [{ prefix = \"x\", unit_seconds = 60, price = \"0\", unanswered = \"0\" }]",
        "rates.default[0].prefix: `x` is not a prefix",
    ),
    (
        "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 0, price = \"0\", unanswered = \"0\" }]",
        "rates.default[0].unit_seconds: must be from 1 to 86400",
    ),
    (
        "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 60, price = \"-1\", unanswered = \"0\" }]",
        "rates.default[0].price: ",
    ),
    (
        "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 60, unanswered = \"0\" }]",
        "rates.default[0].price: is missing",
    ),
    (
        "[rates]\ndefault = [{ prefix = \"*\", unit_seconds = 60, price = \"0\", unanswered = \"0\", prise = 1 }]",
        "there is no setting `rates.default[0].prise`; did you mean `rates.default[0].price`?",
    ),
    (
        "[rates]\nreserve_seconds = 0",
        "rates.reserve_seconds: must be from 1 to 86400",
    ),
];

/// More settings of a trunk, and their error after the trunk's name.
const TRUNK_MISTAKES: &[(&str, &str)] = &[
    (
        "hots = \"x\"\nloopback = true",
        "there is no setting `hots`; did you mean `host`?",
    ),
    (
        "host = 5\nloopback = true",
        "host: must be of type string, not integer",
    ),
    ("", "host: name a host, or set loopback = true"),
    (
        "host = \"x\"\nloopback = true",
        "host: name a host, or set loopback = true",
    ),
    (
        "host = \"a b\"",
        "host: not a host name or address: \"a b\"",
    ),
    (
        "host = \"x\"\ntransport = \"carrier-pigeon\"",
        "transport: ",
    ),
    ("host = \"x\"\nproxy = \"a b\"", "proxy: not a host name"),
    (
        "host = \"x\"\nbind = \"5060\"",
        "bind: `5060` is not an address with a port such as 192.0.2.7:5060",
    ),
    (
        "host = \"x\"\nadvertised = \"1.2.3.4\"",
        "advertised: `1.2.3.4` is not an address with a port",
    ),
    (
        "host = \"x\"\ncodecs = [\"OPUS\"]",
        "codecs: there is no OPUS; PCMA and PCMU are spoken",
    ),
    (
        "host = \"x\"\ncodecs = []",
        "codecs: name at least one of PCMA and PCMU",
    ),
    (
        "host = \"x\"\nprivate_key = \"y\"",
        "certificate: name it together with private_key, or neither of them",
    ),
    (
        "host = \"x\"\nchannels = 1",
        "calls_per_second: must be at least 1",
    ),
    (
        "host = \"x\"\nregister_seconds = 60\nuser = \"u\"",
        "register_seconds: a registration needs user and password",
    ),
    (
        "host = \"x\"\noptions_seconds = -1",
        "options_seconds: must be from 0 to 86400",
    ),
    (
        "host = \"x\"\nrewrite = [{ from = \"\", to = \"x@y\" }]",
        "rewrite[0].from: from `` must be digits, to `x@y` digits with + * #",
    ),
    (
        "host = \"x\"\ncaller_rewrite = [{ from = \"\" }]",
        "caller_rewrite[0].to: is missing",
    ),
];

#[test]
fn a_mistake_is_named_by_table_key_and_rule() {
    for (file, said) in MISTAKES {
        let error = error(file, &[]);
        assert!(error.starts_with(said), "{file}\n{error}");
        assert_eq!(error.lines().count(), 1, "{file}\n{error}");
    }
    for (more, said) in TRUNK_MISTAKES {
        let error = error(&trunk(more), &[]);
        let said = format!("[[trunk]] \"provider\": {said}");
        assert!(error.starts_with(&said), "{more}\n{error}");
        assert_eq!(error.lines().count(), 1, "{more}\n{error}");
    }
}

#[test]
fn the_form_of_a_trunks_invites_is_read_and_mistakes_in_it_are_named() {
    let more = "host = \"x\"\nuser = \"u\"\nauth_user = \"a\"\npassword = \"p\"\nprivacy = \"id\"\n\
                number_form = \"sip-phone\"\nheaders = [{ name = \"X-Customer\", value = \"42\" }]";
    let config = load(&trunk(more), &[]).unwrap();
    let sip = &config.trunks[0].sip;
    assert_eq!(sip.headers, [("X-Customer".to_owned(), "42".to_owned())]);
    let credentials = sip.credentials.as_ref().unwrap();
    assert_eq!(credentials.auth_user.as_deref(), Some("a"));
    for (more, wanted) in [
        (
            "headers = [{ name = \"Via\", value = \"x\" }]",
            "headers[0].name: is a header that Clarion writes itself",
        ),
        (
            "headers = [{ name = \"X: y\", value = \"x\" }]",
            "headers[0].name: must be the name of a header",
        ),
        (
            "headers = [{ name = \"X-Y\", value = \"x\\r\\nVia: y\" }]",
            "headers[0].value: must be one line of text",
        ),
        ("privacy = \"id\\n\"", "privacy: must be one line of text"),
        (
            "display_name = 'the \"desk'",
            "display_name: must be one line of text without quotes and backslashes",
        ),
        (
            "number_form = \"fax\"",
            "number_form: `fax` is none of sip, sip-phone, tel",
        ),
        (
            "phone_context = \"86\"",
            "phone_context: `86` is neither a domain nor a beginning of numbers such as +86",
        ),
        (
            "hosts = [\"a b\"]",
            "hosts: not a host name or address: \"a b\"",
        ),
        (
            "hosts = [\"b.example\"]\nproxy = \"p.example\"",
            "hosts: have no place beside proxy or loopback",
        ),
        (
            "redirect_hosts = [\"a b\"]",
            "redirect_hosts: not a host name or address: \"a b\"",
        ),
        (
            "phone_context = \"192.0.2.1\"",
            "phone_context: `192.0.2.1` is neither",
        ),
        (
            "symmetric_rtp = \"yes\"",
            "symmetric_rtp: `yes` is none of off, peer, any",
        ),
        (
            "peer_networks = [\"10.0.0.0/33\"]",
            "peer_networks: `10.0.0.0/33` is not an address",
        ),
    ] {
        let said = error(&trunk(&format!("host = \"x\"\n{more}")), &[]);
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn a_trunk_with_tel_addresses_knows_the_context_of_every_number() {
    let local = "number_form = \"tel\"\nrewrite = [{ from = \"86\", to = \"0\" }]\n";
    let read = |more: &str| {
        let config = load(&trunk(more), &[]).unwrap();
        config.trunks[0].sip.identity.form.clone()
    };
    let tel = |context: Option<&str>| NumberForm::Tel {
        context: context.map(str::to_owned),
    };
    for (more, form) in [
        (
            "host = \"192.0.2.1\"\nnumber_form = \"tel\"".to_owned(),
            tel(None),
        ),
        (format!("host = \"sip.example\"\n{local}"), tel(None)),
        (
            format!("host = \"192.0.2.1\"\ndomain = \"sip.example\"\n{local}"),
            tel(None),
        ),
        (
            format!("host = \"192.0.2.1\"\nphone_context = \"+86\"\n{local}"),
            tel(Some("+86")),
        ),
    ] {
        assert_eq!(read(&more), form, "{more}");
    }
    let said = error(&trunk(&format!("host = \"192.0.2.1:5070\"\n{local}")), &[]);
    assert!(
        said.contains("[[trunk]] \"provider\": phone_context: name a domain"),
        "{said}"
    );
}

#[test]
fn the_rules_of_a_trunk_are_read_and_mistakes_in_them_are_named() {
    let with = |rule: &str| trunk(&format!("host = \"x\"\nresponses = [{rule}]"));
    for rule in [
        "{ code = 603, phrase = \"suspended\", then = \"trunk-down\" }",
        "{ code = \"500-599\", q850 = \"41-44\", then = \"wait\" }, { code = \"404\", q850 = 3, then = \"busy\" }",
    ] {
        load(&with(rule), &[]).unwrap();
    }
    for (rule, wanted) in [
        (
            "{ code = 200, then = \"busy\" }",
            "responses[0].code: `200` is no number from 300 to 699, nor a range of them such as 300-699",
        ),
        (
            "{ code = \"599-500\", then = \"busy\" }",
            "responses[0].code: `599-500` is no number",
        ),
        (
            "{ code = 404, q850 = 128, then = \"busy\" }",
            "responses[0].q850: `128` is no number from 1 to 127",
        ),
        (
            "{ code = 404, then = \"again\" }",
            "responses[0].then: `again` is none of busy, declined,",
        ),
        ("{ code = 404 }", "responses[0].then: is missing"),
        ("{ then = \"busy\" }", "responses[0].code: is missing"),
        (
            "{ code = 404, then = \"busy\", phrases = \"x\" }",
            "responses[0].phrases",
        ),
    ] {
        let said = error(&with(rule), &[]);
        assert!(said.contains(wanted), "{said}");
    }
    let said = error(&trunk("host = \"x\"\ncarrier = \"telco\""), &[]);
    assert!(said.contains("carrier: `telco` is none of standard, pbx, ims, wholesale"));
    let pauses = "host = \"x\"\npause_seconds = 20\nlongest_pause_seconds = 10";
    let said = error(&trunk(pauses), &[]);
    assert!(said.contains("longest_pause_seconds: must not be shorter than pause_seconds"));
}

#[test]
fn a_trunk_has_a_name_of_its_own_and_says_what_it_carries() {
    let said = |file: &str| error(file, &[]);
    assert_eq!(
        said("[[trunk]]\nname = \"a b\"\nhost = \"x\"\nprefixes = [\"\"]"),
        "[[trunk]] \"a b\": name: must be a word of letters, digits, - _ ."
    );
    assert_eq!(
        said("[[trunk]]\nhost = \"x\"\nprefixes = [\"\"]"),
        "[[trunk]] number 1: name: must be a word of letters, digits, - _ ."
    );
    let good = trunk("host = \"x\"");
    assert_eq!(
        said(&format!("{good}{good}")),
        "[[trunk]] \"provider\": name: there are two of this name"
    );
    assert!(
        said("[[trunk]]\nname = \"a\"\nhost = \"x\"")
            .starts_with("[[trunk]] \"a\": prefixes: name what may be called")
    );
    assert_eq!(
        said("[[trunk]]\nname = \"a\"\nhost = \"x\"\nprefixes = [\"+86\"]"),
        "[[trunk]] \"a\": prefixes: `+86` must be digits, country code first"
    );
    let trunk = "[[trunk]]\nname = \"a\"\nhost = \"x\"\nprefixes = [\"\"]\n";
    assert_eq!(
        said(&format!("{trunk}callers = [\"010\", \"x\"]")),
        "[[trunk]] \"a\": callers: `x` must be digits, country code first"
    );
    assert!(
        said(&format!("{trunk}hours = \"8-20\""))
            .starts_with("[[trunk]] \"a\": hours: `8-20` is no window such as 0800-2000")
    );
}

#[test]
fn all_tables_are_read_before_their_mistakes_are_told() {
    let file = format!(
        "[media]\nports = \"x\"\n[log]\nformat = \"x\"\n{}{}",
        trunk("host = \"a b\""),
        "[[trunk]]\nname = \"other\"\nhost = \"x\"\n"
    );
    let error = error(&file, &[]);
    let keys: Vec<_> = error
        .lines()
        .map(|line| line.rsplit_once(": ").unwrap().0)
        .collect();
    assert_eq!(
        keys,
        [
            "media.ports",
            "log.format",
            "[[trunk]] \"provider\": host: not a host name or address",
            "[[trunk]] \"other\": prefixes",
        ]
    );
}

#[test]
fn a_mistake_names_the_file_or_the_variable_that_it_is_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clarion.toml");
    let place = path.display();
    let said = |file: &str, environment: &[(&str, &str)]| {
        read(Some(&path), file, &variables(environment))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said("[media]\nports = \"x\"", &[]),
        format!("in {place}: media.ports: write two ports, such as 20000-29999")
    );
    assert!(
        said(&trunk("host = \"x\"\ntransport = \"x\""), &[])
            .starts_with(&format!("in {place}: [[trunk]] \"provider\": transport: "))
    );
    assert!(said("[media\n", &[]).starts_with(&format!("in {place}: TOML parse error at line 1")));
    for (name, value, rule) in [
        (
            "CLARION_MEDIA__PORTS",
            "x",
            "media.ports: write two ports, such as 20000-29999",
        ),
        (
            "CLARION_HTTP__LISTEN",
            "x",
            "http.listen: must be of type array, not string",
        ),
        (
            "CLARION_MEDIA__DSCP",
            "64",
            "media.dscp: must be from 0 to 63",
        ),
        (
            "CLARION_TRUNK",
            "[{name = \"a\", prefixes = [\"\"]}]",
            "[[trunk]] \"a\": host: name a host, or set loopback = true",
        ),
        (
            "CLARION_HTTP__LISSEN",
            "1",
            "there is no setting `http.lissen`; did you mean `http.listen`?",
        ),
    ] {
        assert_eq!(
            said("", &[(name, value)]),
            format!("in the variable {name}: {rule}")
        );
    }
    // A variable that sets something else is not to blame.
    let other = [("CLARION_MEDIA__DSCP", "46")];
    assert!(
        said("[media]\nports = \"x\"", &other).starts_with(&format!("in {place}: media.ports"))
    );
}

#[test]
fn a_password_is_in_no_message() {
    let file = "database = \"postgres://user:secret@host:port/x\"";
    assert!(!error(file, &[]).contains("secret"));
    let database = Database::parse("postgres://user:secret@host/x").unwrap();
    assert_eq!(database.to_string(), "postgres://user:…@host:5432/x");
    assert!(!format!("{database:?}").contains("secret"));
}

/// The default settings list the numbers of China for people, as comments.
#[test]
fn the_numbers_of_china_are_those_that_the_default_settings_list() {
    let listed = DEFAULTS
        .lines()
        .filter_map(|line| line.strip_prefix("#   "));
    let listed: String = listed.map(|line| format!("{line}\n")).collect();
    assert_eq!(listed.lines().count(), 4, "{listed}");
    let written = Config::from_parts(&format!("[numbers]\n{listed}"), &[])
        .unwrap()
        .numbers;
    let known = Config::from_parts("", &[]).unwrap().numbers;
    assert_eq!(written.area_codes, known.area_codes);
    assert_eq!(written.local_numbers, known.local_numbers);
    assert_eq!(written.national_numbers, known.national_numbers);
    assert_eq!(written.service_numbers, known.service_numbers);
    assert!(!known.service_numbers.is_empty());
}

#[test]
fn considerate_caps_are_one_a_minute_five_an_hour_and_twenty_a_day() {
    let caps = |settings: &str| {
        let config = Config::from_parts(&format!("[dispatch]\n{settings}"), &[]).unwrap();
        let caps = config.dispatch.callee_caps;
        (caps.per_minute, caps.per_hour, caps.per_day)
    };
    assert_eq!(caps(""), (0, 0, 0));
    assert_eq!(caps("callee_caps = \"considerate\""), (1, 5, 20));
    let own = "callee_caps = \"considerate\"\ncallee_per_hour = 7";
    assert_eq!(caps(own), (1, 7, 20));
}
