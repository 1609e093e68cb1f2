//! Checks the ways in and out: who may connect where, whether a server already uses the ports, and what the settings let out.

use std::sync::Arc;

use super::finding::{CheckSubject, Finding};
use super::sockets;
use crate::callbacks::delivery::WebhookSender;
use crate::config::{Config, TrunkSettings};
use crate::domain::claim::CalleeCaps;
use crate::domain::wording::wording;
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
        Some(id) => Finding::ok(
            CheckSubject::Server,
            wording!("is running (process {id})", "正在运行（进程 {id}）"),
        ),
        None => Finding::ok(
            CheckSubject::Server,
            wording!("is not running here", "本机没有运行"),
        ),
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
                CheckSubject::Server,
                wording!(
                    "port {port} ({setting}) is held by {whose}",
                    "端口 {port}（{setting}）已被{whose}占用"; whose
                ),
                wording!(
                    "end that, or choose another {setting}; run this check as root, or as the server's user, to see whose it is",
                    "结束该进程，或更换 {setting}；以 root 或服务运行用户执行 clarion check 可查看占用者"
                ),
            )
        }));
    }
    findings
}

/// Checks files that the settings name and that are read only when their part of the server starts.
pub fn parts(config: &Config) -> Vec<Finding> {
    let sender = WebhookSender::new(&config.callbacks, Arc::new(SystemResolver::default()));
    let wrong = sender.err().map(|error| {
        Finding::problem(
            CheckSubject::Configuration,
            wording!("callbacks cannot be sent", "无法发送回调").because(format!("{error:#}")),
            wording!(
                "correct it: the server does not start with it",
                "请修正，否则服务无法启动"
            ),
        )
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
            CheckSubject::Http,
            wording!(
                "http.plain without http.trusted_proxies: behind a proxy, strangers have its address, see /metrics, and pass every IP allow-list that names it",
                "开启了 http.plain 却没有配置 http.trusted_proxies：经反向代理而来的请求都会被当作代理自身的地址，外人可以查看 /metrics，也能通过含有该地址的 IP 白名单"
            ),
            wording!(
                "name the proxy in http.trusted_proxies, such as [\"127.0.0.1\"]",
                "在 http.trusted_proxies 中填写代理地址，例如 [\"127.0.0.1\"]"
            ),
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
            CheckSubject::Dialling,
            wording!(
                "closed: no trunk is configured, and every request is refused with 190007",
                "无法外呼：没有配置中继，所有请求都会被拒绝（190007）"
            ),
            wording!(
                "add a [[trunk]]: docs/operating.md",
                "添加 [[trunk]]，参见 docs/operating.md"
            ),
        );
    }
    let prefixes: Vec<_> = real.flat_map(|trunk| &trunk.route.prefixes).collect();
    if prefixes.is_empty() {
        return Finding::warning(
            CheckSubject::Dialling,
            wording!(
                "nobody is really called: no trunk with channels leads outside",
                "不会真正拨出：没有通向外部且配置了并发（channels）的中继"
            ),
            wording!(
                "add a [[trunk]] with a host and channels",
                "添加配有 host 和 channels 的 [[trunk]]"
            ),
        );
    }
    if prefixes.iter().any(|prefix| prefix.as_str().is_empty()) {
        return Finding::warning(
            CheckSubject::Dialling,
            wording!(
                "open to every country: a trunk's prefixes hold \"\"",
                "可呼叫所有国家：有中继的 prefixes 含 \"\""
            ),
            wording!(
                "name the countries that you call, such as [\"86\"]: fraud goes to the dear ones",
                "只写需要呼叫的国家码，例如 [\"86\"]；盗打多发往高资费国家"
            ),
        );
    }
    let named: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
    let named = named.join(", ");
    Finding::ok(
        CheckSubject::Dialling,
        wording!("open to {named}", "可呼叫 {named}"),
    )
}

fn emergency(config: &Config) -> Finding {
    let numbers = &config.numbers;
    if numbers.emergency.is_empty() {
        return Finding::warning(
            CheckSubject::Emergency,
            wording!(
                "no number counts as an emergency number: a machine may call the police",
                "没有配置紧急号码：系统可能误拨报警电话"
            ),
            wording!(
                "name them in numbers.emergency",
                "在 numbers.emergency 中填写"
            ),
        );
    }
    let exceptions = numbers.permitted.len();
    if exceptions > 0 {
        return Finding::warning(
            CheckSubject::Emergency,
            wording!(
                "{exceptions} exceptions are made by numbers.permitted",
                "numbers.permitted 中有 {exceptions} 个例外"
            ),
            wording!(
                "keep numbers.permitted as short as can be",
                "numbers.permitted 应尽量少"
            ),
        );
    }
    let named = numbers.emergency.join(", ");
    Finding::ok(
        CheckSubject::Emergency,
        wording!("{named} are refused", "拒绝呼叫 {named}"),
    )
}

fn callee_caps(config: &Config) -> Finding {
    let caps = config.dispatch.callee_caps;
    if caps == CalleeCaps::default() {
        return Finding::warning(
            CheckSubject::Callees,
            wording!(
                "one number may be called without end, one call after the other",
                "对同一号码的呼叫次数没有限制，可能被连续呼叫"
            ),
            wording!(
                "set dispatch.callee_caps = \"considerate\": 1 call a minute, 5 an hour and 20 a day",
                "设置 dispatch.callee_caps = \"considerate\"：每分钟 1 次、每小时 5 次、每天 20 次"
            ),
        );
    }
    let limit = |cap: u32| match cap {
        0 => wording!("any number of", "不限"),
        cap => wording!("{cap}", "{cap} 次"),
    };
    let (minute, hour, day) = (caps.per_minute, caps.per_hour, caps.per_day);
    let [minute, hour, day] = [minute, hour, day].map(limit);
    Finding::ok(
        CheckSubject::Callees,
        wording!(
            "get {minute} calls a minute, {hour} an hour and {day} a day at most",
            "同一号码的呼叫上限：每分钟 {minute}，每小时 {hour}，每天 {day}"; minute, hour, day
        ),
    )
}

fn callbacks(config: &Config) -> Finding {
    let allowed = &config.callbacks.allowed_networks;
    let wide = allowed.iter().find(|network| match network {
        ipnet::IpNet::V4(network) => network.prefix_len() < 16,
        ipnet::IpNet::V6(network) => network.prefix_len() < 48,
    });
    let list: Vec<_> = allowed.iter().map(ToString::to_string).collect();
    let list = list.join(", ");
    match wide {
        Some(network) => Finding::warning(
            CheckSubject::Callbacks,
            wording!(
                "callbacks.allowed_networks holds {network}: applications may post to anything in there",
                "callbacks.allowed_networks 含 {network}：应用可以向该网段内的任何地址发送请求"
            ),
            wording!(
                "name single receivers, such as 10.1.2.3/32",
                "只写具体的接收方，例如 10.1.2.3/32"
            ),
        ),
        None if allowed.is_empty() => Finding::ok(
            CheckSubject::Callbacks,
            wording!(
                "go to public addresses only; receivers of your own go into callbacks.allowed_networks",
                "只发往公网地址；内网接收方请加入 callbacks.allowed_networks"
            ),
        ),
        None => Finding::ok(
            CheckSubject::Callbacks,
            wording!("go to public addresses and {list}", "发往公网地址和 {list}"),
        ),
    }
}

fn bills(config: &Config) -> Finding {
    let Some(url) = &config.http.public_url else {
        return Finding::warning(
            CheckSubject::Bills,
            wording!(
                "http.public_url is empty: bills are offered at whatever address the request came to",
                "http.public_url 为空：话单下载地址取自请求所访问的地址"
            ),
            wording!(
                "name the address that clients use, such as https://voice.example.com:8883",
                "填写客户端访问的地址，例如 https://voice.example.com:8883"
            ),
        );
    };
    if !url.is_https() {
        return Finding::warning(
            CheckSubject::Bills,
            wording!(
                "{url} is not https: download tokens travel in clear",
                "{url} 不是 https：下载令牌以明文传输"
            ),
            wording!("offer bills by https", "改用 https 提供话单下载"),
        );
    }
    Finding::ok(
        CheckSubject::Bills,
        wording!("are offered at {url}", "下载地址为 {url}"),
    )
}

fn metrics(config: &Config) -> Finding {
    let networks = &config.http.metrics_networks;
    let list: Vec<_> = networks.iter().map(ToString::to_string).collect();
    if networks.iter().any(|network| network.prefix_len() == 0) {
        return Finding::warning(
            CheckSubject::Metrics,
            wording!(
                "/metrics is open to everybody (http.metrics_networks)",
                "/metrics 对所有人开放（http.metrics_networks）"
            ),
            wording!(
                "name the network of your monitoring alone",
                "只填写监控系统所在的网段"
            ),
        );
    }
    let list = list.join(", ");
    Finding::ok(
        CheckSubject::Metrics,
        wording!("are shown to {list}", "允许 {list} 访问"),
    )
}
