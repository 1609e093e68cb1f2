//! Reads a record of another service: the columns of the bill as texts, each checked by its rule.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::BillLine;
use super::call_type::{CallType, Fault};
use crate::domain::account::AppId;
use crate::domain::money::Money;

/// A higher fee of one record is a typing error. The limit also keeps sums in the range in which they are exact.
const HIGHEST_FEE: Money = Money::from_millionths(1_000_000_000_000_000);
const LONGEST_TEXT: usize = 128;
const LONGEST_USER_DATA: usize = 4096;

/// A record that keeps every rule, and its application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub app: AppId,
    pub line: BillLine,
}

/// Reads a record from its texts. An absent column counts as empty.
pub fn read<'a>(
    zone: &TimeZone,
    column: impl Fn(&'static str) -> &'a str,
) -> Result<Record, Fault> {
    let order_id = column("orderid");
    if !(1..=64).contains(&order_id.len()) || !order_id.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Fault::new(
            "orderid",
            "must be 1 to 64 visible ASCII characters",
        ));
    }
    let kind: CallType = parsed("type", column("type"))?;
    let app = parsed("appId", column("appId"))?;
    let [caller, called, outcome, call_sid] =
        ["caller", "called", "outcome", "callSid"].map(|name| short(name, column(name)));
    let (caller, called, outcome, call_sid) = (caller?, called?, outcome?, call_sid?);
    let call_sid = Some(call_sid).filter(|sid| !sid.is_empty());
    kind.check(caller, called, call_sid)?;
    if called.is_empty() {
        return Err(Fault::new("called", "is required"));
    }
    let user_data = checked("userData", column("userData"), LONGEST_USER_DATA)?;
    let times = Times::read(zone, &column)?;
    let (units, rate, fee) = price(&column)?;
    Ok(Record {
        app,
        line: BillLine {
            order_id: order_id.to_owned(),
            call_type: kind,
            call_sid: call_sid.map(str::to_owned),
            caller: caller.to_owned(),
            called: called.to_owned(),
            started_at: times.started,
            answered_at: times.answered,
            ended_at: times.ended,
            seconds: times.seconds,
            units,
            rate,
            fee,
            outcome: outcome.to_owned(),
            user_data: Some(user_data.to_owned()).filter(|data| !data.is_empty()),
        },
    })
}

struct Times {
    started: Timestamp,
    answered: Option<Timestamp>,
    ended: Timestamp,
    seconds: u32,
}

impl Times {
    fn read<'a>(zone: &TimeZone, column: &impl Fn(&'static str) -> &'a str) -> Result<Self, Fault> {
        let started = time("start", column("start"), zone)?
            .ok_or_else(|| Fault::new("start", "is required"))?;
        let answered = time("answer", column("answer"), zone)?;
        let ended =
            time("end", column("end"), zone)?.ok_or_else(|| Fault::new("end", "is required"))?;
        if ended < started {
            return Err(Fault::new("end", "must not lie before start"));
        }
        if answered.is_some_and(|answered| answered < started || answered > ended) {
            return Err(Fault::new("answer", "must lie between start and end"));
        }
        let talked = answered.map_or(SignedDuration::ZERO, |answered| {
            ended.duration_since(answered)
        });
        let seconds = match column("seconds") {
            "" => u32::try_from((talked.as_millis() + 999) / 1000)
                .map_err(|_| Fault::new("seconds", "is too long"))?,
            text => whole("seconds", text)?,
        };
        Ok(Self {
            started,
            answered,
            ended,
            seconds,
        })
    }
}

/// Reads units, rate and fee. Units and rate may be absent, as for a text message. If both are there, the fee must be their product.
fn price<'a>(column: &impl Fn(&'static str) -> &'a str) -> Result<(u32, Money, Money), Fault> {
    let amount = |name: &'static str| match column(name) {
        "" => Ok(None),
        text => {
            let amount: Money = parsed(name, text)?;
            if amount < Money::ZERO {
                return Err(Fault::new(name, "must not be negative"));
            }
            Ok(Some(amount))
        }
    };
    let units = match column("units") {
        "" => None,
        text => Some(whole("units", text)?),
    };
    let (rate, fee) = (amount("rate")?, amount("fee")?);
    let product = units.zip(rate).map(|(units, rate)| rate.times(units));
    match (fee, product) {
        (Some(fee), Some(product)) if units > Some(0) && fee != product => Err(Fault::new(
            "fee",
            format!("must be units times rate: {product}"),
        )),
        (None, None) => Err(Fault::new("fee", "is required without units and rate")),
        (fee, product) if fee.or(product) > Some(HIGHEST_FEE) => {
            Err(Fault::new("fee", format!("is more than {HIGHEST_FEE}")))
        }
        (fee, product) => Ok((
            units.unwrap_or(0),
            rate.unwrap_or_default(),
            fee.or(product).unwrap_or_default(),
        )),
    }
}

fn parsed<T: std::str::FromStr<Err: Into<String>>>(
    field: &'static str,
    text: &str,
) -> Result<T, Fault> {
    text.parse().map_err(|rule: T::Err| Fault::new(field, rule))
}

fn whole(field: &'static str, text: &str) -> Result<u32, Fault> {
    text.parse::<u32>()
        .ok()
        .filter(|number| i32::try_from(*number).is_ok())
        .ok_or_else(|| Fault::new(field, "must be a whole number"))
}

/// Reads a time: `2026-11-15 02:35:09` in the platform's zone, or with an offset by RFC 3339.
fn time(field: &'static str, text: &str, zone: &TimeZone) -> Result<Option<Timestamp>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(Some(moment));
    }
    let moment = text.parse::<DateTime>().ok().and_then(|wall| {
        zone.to_ambiguous_zoned(wall)
            .compatible()
            .ok()
            .map(|zoned| zoned.timestamp())
    });
    moment.map(Some).ok_or_else(|| {
        Fault::new(
            field,
            "must be a time such as 2026-11-15 02:35:09, or one with an offset",
        )
    })
}

fn short<'a>(field: &'static str, text: &'a str) -> Result<&'a str, Fault> {
    checked(field, text, LONGEST_TEXT)
}

fn checked<'a>(field: &'static str, text: &'a str, limit: usize) -> Result<&'a str, Fault> {
    if text.len() > limit {
        return Err(Fault::new(field, format!("is longer than {limit} bytes")));
    }
    let forbidden = |c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\n');
    if text.contains(forbidden) {
        return Err(Fault::new(field, "contains a control character"));
    }
    Ok(text)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const GOOD: [(&str, &str); 10] = [
        ("orderid", "sms-1"),
        ("type", "14"),
        ("appId", "aaaabbbbccccddddeeeeffff00001111"),
        ("caller", "4001"),
        ("called", "+8613800000000"),
        ("start", "2026-11-15 02:35:09"),
        ("answer", "2026-11-15 02:35:10"),
        ("end", "2026-11-15T02:36:11+08:00"),
        ("fee", "0.11"),
        ("outcome", "talked"),
    ];

    fn read_with(changes: &[(&'static str, &'static str)]) -> Result<Record, Fault> {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        read(&zone, |name| {
            let of = |list: &[(&'static str, &'static str)]| {
                list.iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, text)| *text)
            };
            of(changes).or_else(|| of(&GOOD)).unwrap_or_default()
        })
    }

    pub fn line() -> BillLine {
        read_with(&[]).unwrap().line
    }

    #[test]
    fn a_record_is_read_with_times_of_the_platform() {
        let record = read_with(&[]).unwrap();
        assert_eq!(
            record.line.started_at,
            "2026-11-14T18:35:09Z".parse().unwrap()
        );
        assert_eq!(
            (record.line.seconds, record.line.fee.to_string()),
            (61, "0.11".to_owned())
        );
    }

    #[test]
    fn each_broken_rule_names_its_field() {
        for (changes, field) in [
            (&[("orderid", "")][..], "orderid"),
            (&[("orderid", "a b")], "orderid"),
            (&[("type", "1")], "type"),
            (&[("type", "18")], "type"),
            (&[("appId", "x")], "appId"),
            (&[("called", "")], "called"),
            (&[("start", "")], "start"),
            (&[("start", "yesterday")], "start"),
            (&[("end", "2026-11-15 02:35:00")], "end"),
            (&[("answer", "2026-11-15 02:35:00")], "answer"),
            (&[("seconds", "-1")], "seconds"),
            (&[("units", "2"), ("rate", "0.05")], "fee"),
            (&[("fee", "1e3")], "fee"),
            (&[("fee", "-1")], "fee"),
            (&[("fee", "")], "fee"),
            (&[("fee", "1000000000.000001")], "fee"),
            (
                &[
                    ("units", "2147483647"),
                    ("rate", "9000000000000"),
                    ("fee", ""),
                ],
                "fee",
            ),
            (&[("userData", "\u{0}")], "userData"),
        ] {
            assert_eq!(read_with(changes).unwrap_err().field, field, "{changes:?}");
        }
        assert!(read_with(&[("units", "2"), ("rate", "0.055"), ("fee", "")]).is_ok());
    }
}
