//! Checks the ways in and out: who may connect where, whether a server already uses the ports, and what the settings let out.

use std::sync::Arc;

use super::finding::Finding;
use super::sockets;
use crate::callbacks::delivery::WebhookSender;
use crate::config::{Config, TrunkSettings};
use crate::domain::claim::CalleeCaps;
use crate::outgoing::resolver::SystemResolver;
use crate::store::Database;

/// Returns the process that serves with these settings now. It holds the database's lock, or the port for clients.
pub fn serving_process(config: &Config, database: &Database) -> Option<u32> {
    // The server locks a database file of this machine. Without that lock, a server on our port is not ours.
    if database.folder().is_some() {
        return database.served_by();
    }
    let holders = sockets::listening(|port| is_ours(config, port));
    let processes = holders.into_iter().filter_map(|holder| holder.process);
    let mut serving = processes.filter(|process| process.serves);
    serving.next().map(|process| process.id)
}

fn is_ours(config: &Config, port: u16) -> bool {
    port != 0
        && config
            .http
            .listen
            .iter()
            .any(|address| address.port() == port)
}

/// Checks that the ports for clients and operators are ours or free.
pub fn server(config: &Config, serving: Option<u32>) -> Vec<Finding> {
    let mut findings = vec![match serving {
        Some(id) => Finding::ok("server", format!("is running (process {id})")),
        None => Finding::ok("server", "is not running here"),
    }];
    for (setting, addresses) in [
        ("http.listen", &config.http.listen),
        ("console.listen", &config.console.listen),
    ] {
        let is_wanted = |port| port != 0 && addresses.iter().any(|at| at.port() == port);
        let held = sockets::listening(is_wanted).into_iter();
        let foreign = held.filter(|holder| !holder.is(serving));
        findings.extend(foreign.map(|holder| {
            let (port, whose) = (holder.port, holder.describe());
            Finding::problem(
                "server",
                format!("port {port} ({setting}) is held by {whose}"),
                format!("end that, or choose another {setting}; run this check as root, or as the server's user, to see whose it is"),
            )
        }));
    }
    findings
}

/// Checks files that the settings name and that are read only when their part of the server starts.
pub fn parts(config: &Config) -> Vec<Finding> {
    let sender = WebhookSender::new(&config.callbacks, Arc::new(SystemResolver::default()));
    let wrong = sender.err().map(|error| {
        let remedy = "correct it: the server does not start with it";
        Finding::problem("configuration", format!("{error:#}"), remedy)
    });
    wrong.into_iter().collect()
}

/// Reports what follows from the settings alone.
pub fn policy(config: &Config) -> Vec<Finding> {
    let mut findings = vec![
        dialling(config),
        emergency(config),
        callee_caps(config),
        callbacks(config),
        bills(config),
        metrics(config),
    ];
    findings.extend(plain(config));
    findings
}

/// Without TLS there is a proxy in front, and everybody has its address.
fn plain(config: &Config) -> Option<Finding> {
    let http = &config.http;
    (http.plain && http.trusted_proxies.is_empty()).then(|| {
        Finding::problem(
            "http",
            "http.plain without http.trusted_proxies: behind a proxy, strangers have its address, see /metrics, and pass every IP allow-list that names it",
            "name the proxy in http.trusted_proxies, such as [\"127.0.0.1\"]",
        )
    })
}

fn dialling(config: &Config) -> Finding {
    let carries = |trunk: &&TrunkSettings| trunk.channels > 0;
    let real = config
        .trunks
        .iter()
        .filter(carries)
        .filter(|trunk| trunk.loopback.is_none());
    if config.trunks.is_empty() {
        return Finding::warning(
            "dialling",
            "closed: no trunk is configured, and every request is refused with 190007",
            "add a [[trunk]]: docs/operating.md",
        );
    }
    let prefixes: Vec<_> = real.flat_map(|trunk| &trunk.route.prefixes).collect();
    if prefixes.is_empty() {
        return Finding::warning(
            "dialling",
            "nobody is really called: no trunk with channels leads outside",
            "add a [[trunk]] with a host and channels",
        );
    }
    if prefixes.iter().any(|prefix| prefix.as_str().is_empty()) {
        return Finding::warning(
            "dialling",
            "open to every country: a trunk's prefixes hold \"\"",
            "name the countries that you call, such as [\"86\"]: fraud goes to the dear ones",
        );
    }
    let named: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
    Finding::ok("dialling", format!("open to {}", named.join(", ")))
}

fn emergency(config: &Config) -> Finding {
    let numbers = &config.numbers;
    if numbers.emergency.is_empty() {
        return Finding::warning(
            "emergency",
            "no number counts as an emergency number: a machine may call the police",
            "name them in numbers.emergency",
        );
    }
    if !numbers.permitted.is_empty() {
        return Finding::warning(
            "emergency",
            format!(
                "{} exceptions are made by numbers.permitted",
                numbers.permitted.len()
            ),
            "keep numbers.permitted as short as can be",
        );
    }
    Finding::ok(
        "emergency",
        format!("{} are refused", numbers.emergency.join(", ")),
    )
}

fn callee_caps(config: &Config) -> Finding {
    let caps = config.dispatch.callee_caps;
    if caps == CalleeCaps::default() {
        return Finding::warning(
            "callees",
            "one number may be called without end, one call after the other",
            "set dispatch.callee_caps = \"considerate\": 1 call a minute, 5 an hour and 20 a day",
        );
    }
    let limit = |cap: u32| match cap {
        0 => "any number of".to_owned(),
        cap => cap.to_string(),
    };
    let (minute, hour, day) = (caps.per_minute, caps.per_hour, caps.per_day);
    let [minute, hour, day] = [minute, hour, day].map(limit);
    Finding::ok(
        "callees",
        format!("get {minute} calls a minute, {hour} an hour and {day} a day at most"),
    )
}

fn callbacks(config: &Config) -> Finding {
    let allowed = &config.callbacks.allowed_networks;
    let wide = allowed.iter().find(|network| match network {
        ipnet::IpNet::V4(network) => network.prefix_len() < 16,
        ipnet::IpNet::V6(network) => network.prefix_len() < 48,
    });
    let list: Vec<_> = allowed.iter().map(ToString::to_string).collect();
    match wide {
        Some(network) => Finding::warning(
            "callbacks",
            format!(
                "callbacks.allowed_networks holds {network}: applications may post to anything in there"
            ),
            "name single receivers, such as 10.1.2.3/32",
        ),
        None if allowed.is_empty() => Finding::ok(
            "callbacks",
            "go to public addresses only; receivers of your own go into callbacks.allowed_networks",
        ),
        None => Finding::ok(
            "callbacks",
            format!("go to public addresses and {}", list.join(", ")),
        ),
    }
}

fn bills(config: &Config) -> Finding {
    let Some(url) = &config.http.public_url else {
        return Finding::warning(
            "bills",
            "http.public_url is empty: bills are offered at whatever address the request came to",
            "name the address that clients use, such as https://voice.example.com:8883",
        );
    };
    if !url.is_https() {
        return Finding::warning(
            "bills",
            format!("{url} is not https: download tokens travel in clear"),
            "offer bills by https",
        );
    }
    Finding::ok("bills", format!("are offered at {url}"))
}

fn metrics(config: &Config) -> Finding {
    let networks = &config.http.metrics_networks;
    let list: Vec<_> = networks.iter().map(ToString::to_string).collect();
    if networks.iter().any(|network| network.prefix_len() == 0) {
        return Finding::warning(
            "metrics",
            "/metrics is open to everybody (http.metrics_networks)",
            "name the network of your monitoring alone",
        );
    }
    Finding::ok("metrics", format!("are shown to {}", list.join(", ")))
}
