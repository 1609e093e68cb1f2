//! Checks each trunk: its address, whether it answers, whether it accepts our password, and whether its packets can reach us.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use phone::signalling::{
    Direction, Host, Registered, Resolver, Signalling, SipCredentials, Trace, Transport,
};
use supervisor::Supervisor;

use super::OtherClock;
use super::finding::{CheckSubject, Finding};
use super::media;
use super::sockets;
use crate::clock::Clock;
use crate::config::{Config, TrunkSettings};
use crate::domain::wording::{Wording, wording};
use crate::outgoing::address_policy::is_public;

const LOOKUP_TIME: Duration = Duration::from_secs(10);
const SLOW_ANSWER: Duration = Duration::from_millis(500);
/// Length of the trial registration, just long enough to get it and give it back.
const TRIED_FOR: Duration = Duration::from_secs(60);

pub async fn check(
    config: &Config,
    serving: Option<u32>,
    clock: &Clock,
) -> (Vec<Finding>, Vec<OtherClock>) {
    let looks = config.trunks.iter().map(|trunk| {
        let look = Look {
            trunk,
            config,
            clock,
            serving,
            subject: CheckSubject::Trunk(trunk.name().to_owned()),
            findings: Vec::new(),
            clocks: Vec::new(),
        };
        look.whole()
    });
    let mut all = (Vec::new(), Vec::new());
    for (findings, clocks) in futures_util::future::join_all(looks).await {
        all.0.extend(findings);
        all.1.extend(clocks);
    }
    all
}

/// One trunk and what was found about it so far.
struct Look<'a> {
    trunk: &'a TrunkSettings,
    config: &'a Config,
    clock: &'a Clock,
    serving: Option<u32>,
    subject: CheckSubject,
    findings: Vec<Finding>,
    clocks: Vec<OtherClock>,
}

impl Look<'_> {
    async fn whole(mut self) -> (Vec<Finding>, Vec<OtherClock>) {
        if self.trunk.channels == 0 {
            self.warning(
                wording!(
                    "has no channels: nothing is dialled over it",
                    "没有配置并发（channels），不会经它外呼"
                ),
                wording!(
                    "set `channels` and `calls_per_second`",
                    "设置 `channels` 和 `calls_per_second`"
                ),
            );
        }
        if self.trunk.loopback.is_some() {
            self.ok(wording!(
                "leads to the telephone in the server itself, for trying things out",
                "通向服务内置的测试话机，供试用"
            ));
        } else if let Err(problem) = self.outside().await {
            self.findings.push(problem);
        }
        (self.findings, self.clocks)
    }

    /// Checks the trunk from outside. The error is the finding after which it is useless to look further.
    async fn outside(&mut self) -> Result<(), Finding> {
        self.port_is_free();
        let (trunk, mut addresses) = (self.trunk, Vec::new());
        for host in trunk.peers() {
            match self.addresses(host).await {
                Ok(found) => addresses.extend(found.into_iter().map(|address| (address, host))),
                Err(problem) => self.findings.push(problem),
            }
        }
        if addresses.is_empty() {
            return Ok(());
        }
        let heard = Arc::new(Mutex::new(None));
        let signalling = self.signalling(&heard).await?;
        for (address, host) in addresses.iter().rev() {
            signalling.expect_host(*address, host);
        }
        let addresses: Vec<_> = addresses.into_iter().map(|(address, _)| address).collect();
        self.can_be_reached(signalling.contact().ip(), &addresses);
        let mut there = None;
        for address in addresses {
            if self.ask(&signalling, address, &heard).await {
                there = there.or(Some(address));
            }
        }
        let registers = self.trunk.sip.register.is_some();
        let credentials = self.trunk.sip.credentials.clone().filter(|_| registers);
        if let Some((address, credentials)) = there.zip(credentials) {
            self.register(&signalling, address, credentials).await;
        }
        Ok(())
    }

    /// Checks that no other process holds our fixed port.
    fn port_is_free(&mut self) {
        let endpoint = &self.trunk.endpoint;
        let bind = endpoint.bind;
        let wanted = |port: u16| port == bind.port() && port != 0;
        let holders = match endpoint.transport {
            Transport::Udp => sockets::udp(wanted),
            Transport::Tcp | Transport::Tls => sockets::listening(wanted),
        };
        if let Some(other) = holders.iter().find(|holder| !holder.is(self.serving)) {
            let whose = other.describe();
            self.problem(
                wording!(
                    "its port {bind} is held by {whose}",
                    "端口 {bind} 已被{whose}占用"; whose
                ),
                wording!(
                    "end that, or choose another `bind`",
                    "结束该进程，或更换 `bind`"
                ),
            );
        }
    }

    async fn addresses(&mut self, host: &Host) -> Result<Vec<SocketAddr>, Finding> {
        let transport = self.trunk.endpoint.transport;
        let resolver = Resolver::default();
        let lookup = tokio::time::timeout(LOOKUP_TIME, resolver.addresses(host, transport)).await;
        let found = match lookup {
            Ok(Ok(found)) if !found.is_empty() => {
                if host.address().is_none() {
                    let list: Vec<_> = found.iter().map(ToString::to_string).collect();
                    let list = list.join(", ");
                    self.ok(wording!("{host} is {list}", "{host} 解析为 {list}"));
                }
                return Ok(found);
            }
            Ok(Ok(_)) => wording!(
                "{host} cannot be looked up (SRV, A, AAAA): it has no address",
                "{host} 无法解析（SRV、A、AAAA）：没有地址"
            ),
            Ok(Err(why)) => wording!(
                "{host} cannot be looked up (SRV, A, AAAA)",
                "{host} 无法解析（SRV、A、AAAA）"
            )
            .because(why),
            Err(_) => wording!(
                "{host} cannot be looked up (SRV, A, AAAA): the name servers do not answer",
                "{host} 无法解析（SRV、A、AAAA）：DNS 服务器无应答"
            ),
        };
        let remedy = wording!(
            "correct `host`, or the name servers in /etc/resolv.conf",
            "修正 `host`，或 /etc/resolv.conf 中的 DNS 服务器"
        );
        Err(Finding::problem(self.subject.clone(), found, remedy))
    }

    /// Starts an endpoint of its own on any free port, so that a running server keeps the configured one.
    async fn signalling(
        &self,
        heard: &Arc<Mutex<Option<jiff::Timestamp>>>,
    ) -> Result<Signalling, Finding> {
        let mut sip = self.trunk.signalling().map_err(|error| {
            Finding::problem(
                self.subject.clone(),
                wording!("its files cannot be used", "证书文件无法使用")
                    .because(format!("{error:#}")),
                wording!(
                    "name readable PEM files in `ca`, `certificate` and `private_key`",
                    "`ca`、`certificate` 和 `private_key` 应为可读的 PEM 文件"
                ),
            )
        })?;
        sip.bind.set_port(0);
        sip.advertised = None;
        let date = Arc::clone(heard);
        sip.trace = Some(Trace::new(move |message| {
            if message.direction == Direction::Received
                && let Some(said) = date_of(&message.text)
            {
                *date.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            }
        }));
        Signalling::start(&Supervisor::new(), &sip, None)
            .await
            .map_err(|error| {
                Finding::problem(
                    self.subject.clone(),
                    wording!("cannot be tried", "无法检测").because(error),
                    wording!(
                        "`bind` must be an address of this machine",
                        "`bind` 必须是本机地址"
                    ),
                )
            })
    }

    async fn ask(
        &mut self,
        signalling: &Signalling,
        address: SocketAddr,
        heard: &Mutex<Option<jiff::Timestamp>>,
    ) -> bool {
        let began = Instant::now();
        let asked = signalling
            .ping(&format!("sip:{}", self.trunk.sip.domain()), address)
            .await;
        let took = began.elapsed();
        let ms = took.as_millis();
        let reachable = wording!(
            "see the address, the transport, the firewalls on both sides, and that the provider knows your address",
            "检查地址、传输协议和两侧防火墙，并确认服务商已登记您的地址"
        );
        match &asked {
            Ok(Some(503)) => self.problem(
                wording!(
                    "{address} answers 503 (overloaded, or shut)",
                    "{address} 返回 503（过载或已停用）"
                ),
                wording!(
                    "ask the provider; until it says something else, calls take another trunk or wait",
                    "联系服务商；恢复之前，呼叫改走其他中继或排队等待"
                ),
            ),
            Ok(Some(code)) if took > SLOW_ANSWER => self.warning(
                wording!(
                    "{address} answers OPTIONS with {code} after {ms} ms",
                    "{address} 对 OPTIONS 返回 {code}，但用时 {ms} 毫秒"
                ),
                wording!(
                    "calls begin as slowly: look at the line to the provider",
                    "呼叫建立同样会变慢，请检查到服务商的线路"
                ),
            ),
            Ok(Some(code)) => self.ok(wording!(
                "{address} answers OPTIONS with {code} in {ms} ms",
                "{address} 对 OPTIONS 返回 {code}，用时 {ms} 毫秒"
            )),
            Ok(None) => self.problem(
                wording!(
                    "{address} does not answer OPTIONS",
                    "{address} 对 OPTIONS 无应答"
                ),
                reachable,
            ),
            Err(error) => {
                let found = wording!("OPTIONS cannot be sent", "无法发送 OPTIONS");
                self.problem(found.because(error), reachable);
            }
        }
        if let Some(said) = heard.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let name = self.subject.wording();
            self.clocks
                .push(OtherClock::new(name, said, self.clock.now()));
        }
        matches!(asked, Ok(Some(code)) if code != 503)
    }

    /// Tries to register. If a server is running, it does not, because some registrars keep only the last registration.
    async fn register(
        &mut self,
        signalling: &Signalling,
        address: SocketAddr,
        credentials: SipCredentials,
    ) {
        if self.serving.is_some() {
            return self.ok(wording!(
                "its registration is left to the running server (metric clarion_trunk_up)",
                "注册由运行中的服务负责（见指标 clarion_trunk_up）"
            ));
        }
        let domain = self.trunk.sip.domain();
        let prepared = signalling.registration(&domain, address, credentials);
        let failed = || wording!("cannot register", "无法注册");
        let password = wording!(
            "see `user`, `password` and `domain`",
            "检查 `user`、`password` 和 `domain`"
        );
        let mut registration = match prepared {
            Ok(registration) => registration,
            Err(error) => return self.problem(failed().because(error), password),
        };
        match signalling.register(&mut registration, TRIED_FOR).await {
            Ok(Registered::For(_)) => {
                let _ = signalling.register(&mut registration, Duration::ZERO).await;
                self.ok(wording!(
                    "{address} takes our registration",
                    "{address} 接受注册"
                ));
            }
            Ok(Registered::Refused(code)) => {
                let found = wording!(
                    "{address} refuses our registration with {code}",
                    "{address} 以 {code} 拒绝注册"
                );
                self.problem(found, password);
            }
            Ok(Registered::Silence) => self.problem(
                wording!(
                    "{address} does not answer REGISTER",
                    "{address} 对 REGISTER 无应答"
                ),
                wording!(
                    "ask the provider which address takes registrations",
                    "向服务商确认注册地址"
                ),
            ),
            Err(error) => self.problem(failed().because(error), password),
        }
    }

    /// Checks that the trunk can reach us. A trunk on the public Internet cannot answer a private address.
    fn can_be_reached(&mut self, bound: IpAddr, addresses: &[SocketAddr]) {
        let advertised = self.trunk.endpoint.advertised;
        let ours = advertised.map_or(bound, |address| address.ip());
        let media = media::told(self.config);
        let outside = addresses.iter().any(|address| is_public(address.ip()));
        let far = addresses.iter().any(|address| !address.ip().is_loopback());
        for (what, told, setting) in [
            (
                wording!("SIP", " SIP 信令"),
                ours,
                wording!("`advertised` of the trunk", "中继的 `advertised`"),
            ),
            (
                wording!("the sound", "语音"),
                media,
                Wording::named("media.advertised"),
            ),
        ] {
            let remedy = wording!(
                "name the address that it can reach in {setting}",
                "填写对端可达的地址：{setting}"; setting
            );
            if told.is_unspecified() || (far && told.is_loopback()) {
                let found = wording!(
                    "it is told to send {what} to {told}, which is no use to it",
                    "通告给对端的{what}地址是 {told}，对端无法到达"; what
                );
                self.problem(found, remedy);
            } else if outside && !is_public(told) {
                let found = wording!(
                    "it is public, and is told to send {what} to the private address {told}",
                    "对端在公网，通告给它的{what}地址却是内网地址 {told}"; what
                );
                let remedy = wording!(
                    "{remedy}, unless a gateway rewrites it",
                    "{remedy}；如有网关改写地址则无需处理"; remedy
                );
                self.warning(found, remedy);
            }
        }
    }

    fn ok(&mut self, found: Wording) {
        self.findings.push(Finding::ok(self.subject.clone(), found));
    }

    fn warning(&mut self, found: Wording, remedy: Wording) {
        let subject = self.subject.clone();
        self.findings.push(Finding::warning(subject, found, remedy));
    }

    fn problem(&mut self, found: Wording, remedy: Wording) {
        let subject = self.subject.clone();
        self.findings.push(Finding::problem(subject, found, remedy));
    }
}

/// Returns the time in a message's Date header (RFC 3261 section 20.17).
fn date_of(message: &str) -> Option<jiff::Timestamp> {
    let line = message.lines().find(|line| {
        line.get(..5)
            .is_some_and(|name| name.eq_ignore_ascii_case("date:"))
    })?;
    let said = jiff::fmt::rfc2822::parse(line[5..].trim()).ok()?;
    Some(said.timestamp())
}

#[cfg(test)]
mod tests {
    use super::date_of;

    #[test]
    fn the_time_is_read_from_an_answer() {
        let answer = "SIP/2.0 200 OK\r\nVia: x\r\nDate: Sat, 13 Nov 2010 23:29:00 GMT\r\n\r\n";
        let said = date_of(answer).unwrap();
        assert_eq!(said.to_string(), "2010-11-13T23:29:00Z");
        assert_eq!(date_of("SIP/2.0 200 OK\r\nDate: soon\r\n\r\n"), None);
    }
}
