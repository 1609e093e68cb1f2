//! The settings of a trunk.

use std::time::Duration;

use ipnet::IpNet;

use super::{HostFailover, NumberCheck, RedirectHosts};
use crate::media::engine::MediaOptions;
use crate::signalling::{Host, SipCredentials};

#[derive(Debug, Clone)]
pub struct SipTrunkConfig {
    pub name: String,
    /// The host of the called address.
    pub host: Host,
    /// Further hosts of the same trunk, called where the first cannot.
    pub more_hosts: Vec<Host>,
    /// The host that packets are sent to, if it is not the called one.
    pub proxy: Option<Host>,
    /// Networks of the trunk beside the addresses of its hosts: whoever is there is heard, and may connect to us.
    pub peer_networks: Vec<IpNet>,
    /// The host in From, To and the registration, where the trunk wants another one than its own name.
    pub domain: Option<String>,
    pub credentials: Option<SipCredentials>,
    /// The time to register for; `None` for a trunk that knows us by our address.
    pub register: Option<Duration>,
    /// How often OPTIONS is sent; `None` for never: then the trunk counts as up.
    pub ask_every: Option<Duration>,
    /// How often the connection is pinged, where the transport has connections.
    pub keep_alive: Option<Duration>,
    pub identity: Identity,
    /// Headers with fixed values in every INVITE, name and value.
    pub headers: Vec<(String, String)>,
    /// Follow a 3xx to other addresses.
    pub follow_redirects: bool,
    pub redirect_hosts: RedirectHosts,
    pub redirect_check: NumberCheck,
    pub failover: HostFailover,
    /// Offer session refreshes at this interval.
    pub session_interval: Option<Duration>,
    /// How long a trunk may stay at "trying" before another one is tried.
    pub progress_time: Option<Duration>,
    /// How its calls send and receive sound.
    pub media: MediaOptions,
}

impl SipTrunkConfig {
    pub fn new(name: &str, host: Host) -> Self {
        Self {
            name: name.to_owned(),
            host,
            more_hosts: Vec::new(),
            proxy: None,
            peer_networks: Vec::new(),
            domain: None,
            credentials: None,
            register: None,
            ask_every: None,
            keep_alive: None,
            identity: Identity::default(),
            headers: Vec::new(),
            follow_redirects: false,
            redirect_hosts: RedirectHosts::default(),
            redirect_check: NumberCheck::default(),
            failover: HostFailover::default(),
            session_interval: None,
            progress_time: None,
            media: MediaOptions::default(),
        }
    }

    pub fn domain(&self) -> String {
        self.domain.clone().unwrap_or_else(|| self.host.to_string())
    }

    /// The domain as it stands in To and From: without a port (RFC 3261 section 19.1.1).
    pub fn domain_name(&self) -> String {
        without_port(self.domain())
    }
}

/// The host alone.
pub(super) fn without_port(domain: String) -> String {
    match domain.parse::<Host>() {
        Ok(host) => Host { port: None, ..host }.to_string(),
        Err(_) => domain,
    }
}

/// How the numbers of a call are written in its addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NumberForm {
    /// `sip:NUMBER@host`
    #[default]
    Sip,
    /// `sip:NUMBER@host;user=phone` (RFC 3261 section 19.1.1)
    SipPhone,
    /// `tel:NUMBER` (RFC 3966). A number without `+` is a local one, and means something in its context only: a domain, or the beginning of
    /// global numbers. Without a context of its own that is the domain of the trunk.
    Tel { context: Option<String> },
}

/// How the calling number is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// A fixed user part of From, for trunks that want to see their customer there instead of the calling number.
    pub from_user: Option<String>,
    /// Show the calling number in P-Asserted-Identity too (RFC 3325).
    pub asserted: bool,
    /// Show it in P-Preferred-Identity: the trunk asserts it, or another one.
    pub preferred: bool,
    /// What shall not be shown to the callee (RFC 3323), such as `id`.
    pub privacy: Option<String>,
    /// The number from which calls are said to be diverted (RFC 5806).
    pub diversion: Option<String>,
    pub display_name: Option<String>,
    /// The host in From, where it is not the domain.
    pub from_domain: Option<String>,
    /// The user part of our Contact. Without one it is the name of the account, or else the calling number.
    pub contact_user: Option<String>,
    pub form: NumberForm,
}
