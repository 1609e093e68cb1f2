//! How calls end: one typed value, made from SIP codes and Q.850 causes by one table.

use std::fmt;
use std::time::Duration;

use crate::quoted::split_outside_quotes;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Someone answered. The time runs from the answer to the hang-up.
    Talked { time: Duration, hung_up_by: Side },
    /// Nobody answered.
    Failed(Failure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Us,
    Them,
}

/// Why a call was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    /// The final response, where there was one: code and reason phrase.
    pub response: Option<(u16, String)>,
    /// What the telephone network said, where a gateway has passed it on.
    pub q850: Option<Q850>,
    /// True if an 18x came before. After that no other trunk is tried.
    pub rang: bool,
    /// The peer asks to be left alone for this time (Retry-After).
    pub retry_after: Option<Duration>,
    /// We gave the call up: what came then says nothing about why it failed.
    pub given_up: bool,
    /// A provisional response has come, if only 100.
    pub trying: bool,
    pub at: FailedAt,
}

/// At whose address a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedAt {
    Trunk,
    /// The trunk had redirected the call there: that the trunk is at fault is not said.
    RedirectTarget,
}

/// The cause, as somebody who waits for the call would say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    Busy,
    Declined,
    NoAnswer,
    /// We gave the call up before anybody answered.
    Cancelled,
    /// The network does not know the number, or no route to it.
    NoRoute,
    /// The trunk or a gateway behind it cannot carry the call now.
    Unavailable,
    /// The trunk does not want this call from us: credentials, permission, or a request it does not like.
    Rejected,
    /// No common codec, or an answer that makes no sense.
    BadMedia,
    /// Nothing at all came back.
    TimedOut,
    /// The request could not be sent to the trunk: no address, no connection, no TLS.
    TransportDown,
    /// We had no port or no memory for it ourselves: the trunk is not to blame.
    Exhausted,
    /// We had no leave to send the request, and did not: it rings nowhere.
    Withheld,
    /// We had no leave any more when the request had left and nothing had come back: nobody knows whether it rings.
    LeaveLost,
}

impl Cause {
    pub const ALL: [Cause; 13] = [
        Cause::Busy,
        Cause::Declined,
        Cause::NoAnswer,
        Cause::Cancelled,
        Cause::NoRoute,
        Cause::Unavailable,
        Cause::Rejected,
        Cause::BadMedia,
        Cause::TimedOut,
        Cause::TransportDown,
        Cause::Exhausted,
        Cause::Withheld,
        Cause::LeaveLost,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Busy => "busy",
            Cause::Declined => "declined",
            Cause::NoAnswer => "no-answer",
            Cause::Cancelled => "cancelled",
            Cause::NoRoute => "no-route",
            Cause::Unavailable => "unavailable",
            Cause::Rejected => "rejected",
            Cause::BadMedia => "bad-media",
            Cause::TimedOut => "timed-out",
            Cause::TransportDown => "transport-down",
            Cause::Exhausted => "no-resources-of-ours",
            Cause::Withheld => "withheld",
            Cause::LeaveLost => "leave-lost",
        }
    }

    /// The meaning of a final response. A Q.850 cause (RFC 3326) is believed where the SIP code is vague, because gateways translate many
    /// causes into few codes; a precise code stands.
    pub fn from_response(code: u16, q850: Option<u8>) -> Cause {
        let vague = matches!(
            code,
            400 | 403 | 404 | 408 | 410 | 480 | 487 | 500..=599 | 603
        );
        let by_q850 = q850.filter(|_| vague).and_then(from_q850);
        by_q850.unwrap_or_else(|| from_code(code))
    }
}

/// RFC 3261 section 21, RFC 8197 (607), RFC 8688 (608).
fn from_code(code: u16) -> Cause {
    match code {
        486 | 600 => Cause::Busy,
        603 | 607 | 608 => Cause::Declined,
        408 | 480 | 487 => Cause::NoAnswer,
        404 | 410 | 416 | 484 | 485 | 604 => Cause::NoRoute,
        415 | 488 | 606 => Cause::BadMedia,
        500 | 502 | 503 | 504 | 513 => Cause::Unavailable,
        _ => Cause::Rejected,
    }
}

/// ITU-T Q.850, the causes that say more than a SIP code does.
fn from_q850(cause: u8) -> Option<Cause> {
    Some(match cause {
        // Unallocated number, no route to network or destination, number changed, invalid number format.
        1..=3 | 22 | 28 => Cause::NoRoute,
        17 => Cause::Busy,
        // No user responding, no answer from user, subscriber absent, destination out of order.
        18..=20 | 27 => Cause::NoAnswer,
        21 => Cause::Declined,
        // No circuit, network out of order, temporary failure, congestion, channel not available, resource unavailable, timer expired.
        34 | 38 | 41..=44 | 46 | 47 | 102 => Cause::Unavailable,
        // Bearer capability, incompatible destination.
        57 | 58 | 65 | 88 => Cause::BadMedia,
        _ => return None,
    })
}

impl Failure {
    /// Nothing has rung, and no response says why.
    pub fn plain(cause: Cause) -> Self {
        Self {
            cause,
            response: None,
            q850: None,
            rang: false,
            retry_after: None,
            given_up: false,
            trying: false,
            at: FailedAt::Trunk,
        }
    }

    /// Somebody was there.
    pub fn after_answer(cause: Cause) -> Self {
        Self {
            rang: true,
            ..Self::plain(cause)
        }
    }

    /// The final response, where it says why the call failed, with the cause that the telephone network gave.
    pub fn reason(&self) -> Option<(u16, Option<u8>)> {
        let (code, _) = self.response.as_ref().filter(|_| !self.given_up)?;
        Some((*code, self.q850.as_ref().map(|q850| q850.cause)))
    }

    pub fn is_redirected(&self) -> bool {
        self.at == FailedAt::RedirectTarget
    }

    /// The trunk was not to be reached, and nothing has left.
    pub fn was_not_sent(&self) -> bool {
        self.cause == Cause::TransportDown && !self.rang
    }

    /// Whoever the INVITE was sent to has responded, however late or little.
    pub fn has_response(&self) -> bool {
        self.trying || self.response.is_some()
    }

    /// True if another target of a redirect may be called: nothing has rung, and nobody has said that no other target will do (6xx).
    pub fn leaves_other_targets(&self) -> bool {
        let is_ours = matches!(
            self.cause,
            Cause::Cancelled | Cause::Withheld | Cause::LeaveLost
        );
        let is_global = matches!(self.response, Some((600.., _)));
        !self.rang && !self.given_up && !is_ours && !is_global
    }

    /// True if another address of the trunk may be tried, where its own policy does not say: only when the trouble lies with this one.
    pub fn may_fail_over(&self) -> bool {
        !self.rang
            && matches!(
                self.cause,
                Cause::Unavailable | Cause::TimedOut | Cause::TransportDown
            )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.response {
            Some((code, reason)) => write!(f, "{} ({code} {reason})", self.cause.as_str()),
            None => f.write_str(self.cause.as_str()),
        }
    }
}

/// What the telephone network says about a call, in the Reason header of a gateway (RFC 3326): `Q.850;cause=17;text="User busy"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Q850 {
    pub cause: u8,
    pub text: Option<String>,
}

impl Q850 {
    /// Several reasons may stand in one header.
    pub fn from_reason(header: &str) -> Option<Self> {
        split_outside_quotes(header, ',').find_map(|reason| {
            let mut fields = split_outside_quotes(reason, ';');
            let is_q850 = fields.next()?.eq_ignore_ascii_case("q.850");
            let (mut cause, mut text) = (None, None);
            for (name, value) in fields.filter_map(|field| field.split_once('=')) {
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "cause" => cause = value.parse().ok(),
                    "text" => text = Some(value.to_owned()),
                    _ => {}
                }
            }
            let cause = cause.filter(|_| is_q850)?;
            Some(Self { cause, text })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_what_people_expect() {
        for (code, cause) in [
            (486, Cause::Busy),
            (600, Cause::Busy),
            (603, Cause::Declined),
            (480, Cause::NoAnswer),
            (404, Cause::NoRoute),
            (484, Cause::NoRoute),
            (488, Cause::BadMedia),
            (503, Cause::Unavailable),
            (403, Cause::Rejected),
            (407, Cause::Rejected),
            (499, Cause::Rejected),
            (302, Cause::Rejected),
        ] {
            assert_eq!(Cause::from_response(code, None), cause, "{code}");
        }
    }

    #[test]
    fn a_q850_cause_is_believed_where_the_code_is_vague() {
        assert_eq!(Cause::from_response(480, Some(17)), Cause::Busy);
        assert_eq!(Cause::from_response(503, Some(1)), Cause::NoRoute);
        assert_eq!(Cause::from_response(500, Some(21)), Cause::Declined);
        assert_eq!(Cause::from_response(404, Some(34)), Cause::Unavailable);
        assert_eq!(
            Cause::from_response(486, Some(1)),
            Cause::Busy,
            "486 is precise"
        );
        assert_eq!(
            Cause::from_response(480, Some(16)),
            Cause::NoAnswer,
            "16 says nothing"
        );
    }

    #[test]
    fn reasons_are_read_as_they_are_written() {
        let read = |header| Q850::from_reason(header).map(|q850| (q850.cause, q850.text));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("Q.850;cause=17;text=\"User busy\""),
            Some((17, text("User busy")))
        );
        assert_eq!(
            read("SIP;cause=200, q.850 ; Cause = \"19\""),
            Some((19, None))
        );
        assert_eq!(
            read("SIP;text=\"a, Q.850;cause=1\", Q.850;text=\"no; really, no\";cause=21"),
            Some((21, text("no; really, no")))
        );
        assert_eq!(read("SIP;cause=480"), None);
        assert_eq!(read("Q.850;cause=999"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn another_trunk_is_tried_only_while_nothing_has_rung() {
        let failure = |cause, rang| Failure {
            rang,
            ..Failure::plain(cause)
        };
        for cause in Cause::ALL {
            assert!(!failure(cause, true).may_fail_over(), "{cause:?}");
        }
        assert!(failure(Cause::Unavailable, false).may_fail_over());
        assert!(failure(Cause::TimedOut, false).may_fail_over());
        assert!(failure(Cause::TransportDown, false).may_fail_over());
        assert!(!failure(Cause::Busy, false).may_fail_over());
        assert!(!failure(Cause::Rejected, false).may_fail_over());
    }
}
