//! Authenticates a request: all checks in their order, from the account in the URL to the account's state.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jiff::SignedDuration;
use jiff::civil::DateTime;
use md5::{Digest, Md5};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::Api;
use super::directory::Directory;
use crate::clock::Clock;
use crate::domain::account::{Account, AccountSid, AuthToken};
use crate::domain::status_code::{Refusal, StatusCode};

/// A timestamp may be up to a day early or late: some clients use a 12-hour clock, some use UTC, and some use one timestamp for hours. So
/// the same `sig` legitimately arrives many times, and remembering it cannot detect a replay.
const WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// A wrong sig and an unknown account, a wrong token and an unknown intake are answered after this time, whatever was looked up: the timer's steps are coarser than the difference.
pub const SAME_TIME: Duration = Duration::from_millis(2);

/// Replaces the token of an account that does not exist, so that both cases take the same work.
const NOBODY: &str = "00000000000000000000000000000000";

/// Base64 as clients write it, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the account that sent a request, or the first check that the request fails.
pub async fn authenticate(api: &Api, parts: &Parts, from: IpAddr) -> Result<Arc<Account>, Refusal> {
    let (version, sid) = version_and_account(parts.uri.path());
    let sid: AccountSid = sid.parse().map_err(|_| StatusCode::AccountMalformed)?;
    let authorization = parts.headers.get(AUTHORIZATION);
    let authorization = authorization.map_or(&[][..], |value| value.as_bytes());
    let stamp = stamp(authorization, &sid, &api.clock)?;
    let sig = super::query::value(parts, "sig").ok_or(StatusCode::SigEmpty)?;

    let began = Instant::now();
    let account = account_with_sig(&api.admission.directory, &sid, &stamp, &sig).await;
    if account.is_err() {
        tokio::time::sleep_until(began + SAME_TIME).await;
    }
    let account = account?;
    if !api
        .config
        .http
        .soft_versions
        .iter()
        .any(|offered| offered == version)
    {
        let offered = api.config.http.soft_versions.join(", ");
        return Err(Refusal::new(
            StatusCode::SoftVersionWrong,
            format!("the interface version in the URL is not offered; offered are: {offered}"),
        ));
    }
    account.check_address(from)?;
    account.check_state()?;
    Ok(account)
}

/// The path is `/{SoftVersion}/Accounts/{accountSid}/…`.
fn version_and_account(path: &str) -> (&str, &str) {
    let mut segments = path.split('/').skip(1);
    let version = segments.next().unwrap_or_default();
    (version, segments.nth(1).unwrap_or_default())
}

/// Checks everything about the Authorization header, and returns its timestamp as text: `sig` is made over that text.
pub fn stamp(header: &[u8], sid: &AccountSid, clock: &Clock) -> Result<String, Refusal> {
    let header = header.trim_ascii();
    if header.is_empty() {
        return Err(StatusCode::AuthorizationEmpty.into());
    }
    let decoded = BASE64
        .decode(header)
        .map_err(|_| StatusCode::AuthorizationNotBase64)?;
    let decoded = String::from_utf8(decoded).map_err(|_| StatusCode::AuthorizationMalformed)?;
    let (id, stamp) = decoded
        .split_once(':')
        .ok_or(StatusCode::AuthorizationMalformed)?;
    if id.is_empty() {
        return Err(StatusCode::AuthorizationIdEmpty.into());
    }
    if stamp.is_empty() {
        return Err(StatusCode::TimestampEmpty.into());
    }
    let time = parse_stamp(stamp).ok_or(StatusCode::TimestampMalformed)?;
    let sent = clock
        .zone()
        .to_ambiguous_timestamp(time)
        .compatible()
        .map_err(|_| StatusCode::TimestampMalformed)?;
    if sent.duration_since(clock.now()).abs() > WINDOW {
        return Err(StatusCode::TimestampExpired.into());
    }
    if id != sid.as_str() {
        return Err(StatusCode::AuthorizationIdDiffers.into());
    }
    Ok(stamp.to_owned())
}

/// `yyyyMMddHHmmss`, a real date and time.
fn parse_stamp(text: &str) -> Option<DateTime> {
    if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let two = |from: usize| text[from..from + 2].parse::<i8>().ok();
    let year = text[..4].parse().ok()?;
    DateTime::new(year, two(4)?, two(6)?, two(8)?, two(10)?, two(12)?, 0).ok()
}

/// Returns the account if its token made the sig. If the remembered account does not match, the stored one decides: a rotated token works
/// at once, and a wrong sig costs one read, like an account that does not exist.
async fn account_with_sig(
    directory: &Directory,
    sid: &AccountSid,
    stamp: &str,
    sig: &str,
) -> Result<Arc<Account>, Refusal> {
    let remembered = directory.remembered_account(sid).await;
    let fits = sig_fits(
        sig,
        sid,
        remembered.as_ref().map(|account| &account.auth_token),
        stamp,
    );
    if let Some(account) = remembered.filter(|_| fits) {
        return Ok(account);
    }
    let stored = directory.read_account(sid).await?;
    let fits = sig_fits(
        sig,
        sid,
        stored.as_ref().map(|account| &account.auth_token),
        stamp,
    );
    let account = stored.filter(|_| fits).ok_or(StatusCode::SigWrong)?;
    directory.remember_account(Arc::clone(&account)).await;
    Ok(account)
}

fn sig_fits(sig: &str, sid: &AccountSid, token: Option<&AuthToken>, stamp: &str) -> bool {
    let mut md5 = Md5::new();
    md5.update(sid.as_str());
    md5.update(token.map_or(NOBODY, AuthToken::reveal));
    md5.update(stamp);
    let right = hex::encode_upper(md5.finalize());
    bool::from(right.as_bytes().ct_eq(sig.to_ascii_uppercase().as_bytes())) & token.is_some()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stamp_is_fourteen_digits_that_are_a_time() {
        assert!(parse_stamp("20261115023509").is_some());
        for text in [
            "2026111502350",
            "202611150235090",
            "20261315023509",
            "20260229000000",
            "20261115240000",
            "2026111502350a",
            "２０２６１１１５０２３５０９",
        ] {
            assert_eq!(parse_stamp(text), None, "{text}");
        }
    }

    #[test]
    fn the_documented_sig_fits_in_either_case() {
        let sid = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let token: AuthToken = "fedcba9876543210fedcba9876543210".parse().unwrap();
        // Computed by another program: printf %s "$sid$token$stamp" | md5sum
        let right = "8597136af3dc4f1db67989dc0cf65bc6".to_owned();
        let wrong = "b3fb3c7b7b0f6c7a4d37d8f5e6a5d1f2";
        assert!(!sig_fits(wrong, &sid, Some(&token), "20261115023509"));
        assert!(sig_fits(&right, &sid, Some(&token), "20261115023509"));
        assert!(sig_fits(
            &right.to_uppercase(),
            &sid,
            Some(&token),
            "20261115023509"
        ));
        assert!(!sig_fits(&right, &sid, None, "20261115023509"));
    }

    proptest! {
        #[test]
        fn any_header_yields_its_own_stamp_or_a_refusal(
            bytes in any::<Vec<u8>>(),
            decoded in "([0-9a-f]{32})?:?[0-9]{0,15}\\PC{0,3}",
        ) {
            let sid = "0123456789abcdef0123456789abcdef".parse().unwrap();
            // A zone with a gap and an overlap every year for a long time.
            let clock = Clock::new(TimeZone::get("America/Sao_Paulo").unwrap());
            let _ = stamp(&bytes, &sid, &clock);
            let _ = stamp(BASE64.encode(&decoded).as_bytes(), &sid, &clock);
            let own = decoded.replace(|c: char| !c.is_ascii_digit(), "");
            let header = BASE64.encode(format!("{sid}:{own}"));
            if let Ok(stamp) = stamp(header.as_bytes(), &sid, &clock) {
                prop_assert_eq!(stamp, own);
            }
        }
    }
}
