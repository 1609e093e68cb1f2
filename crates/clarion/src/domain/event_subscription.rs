//! Who watches a call while it goes on.

use super::resp_url::RespUrl;

/// Events to a receiver wait apart from final callbacks to it, so that these never wait for them.
pub const EVENTS_AT: &str = "events@";

/// Who wants to be told, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSubscription {
    pub url: RespUrl,
    /// Only of its end.
    pub only_last: bool,
}

impl EventSubscription {
    /// Where its events wait.
    pub fn receiver(&self) -> String {
        events_receiver(&self.url)
    }

    /// `callStatePush`, and the address.
    pub fn to_stored(&self) -> String {
        format!("{} {}", u8::from(self.only_last), self.url.as_str())
    }

    pub fn from_stored(text: &str) -> Option<Self> {
        let (push, url) = text.split_once(' ')?;
        Some(Self {
            url: RespUrl::from_stored(url.to_owned()),
            only_last: push == "1",
        })
    }
}

/// Where the events to an address wait.
pub fn events_receiver(url: &RespUrl) -> String {
    format!("{EVENTS_AT}{}", url.host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_reads_back() {
        for only_last in [false, true] {
            let subscription = EventSubscription {
                url: RespUrl::from_stored("https://example.com/a?b=c d".to_owned()),
                only_last,
            };
            assert_eq!(
                EventSubscription::from_stored(&subscription.to_stored()),
                Some(subscription)
            );
        }
        assert_eq!(EventSubscription::from_stored("nonsense"), None);
    }
}
