//! Standard Webhooks, version 1: HMAC-SHA256 over id, time and body, so that a receiver can check the sender and the time.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

use super::super::account::CallbackSecret;

/// Returns the value of `webhook-signature`.
pub fn sign(secret: &CallbackSecret, webhook_id: &str, at: Timestamp, body: &str) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(&secret.key()).expect("a key of any length will do");
    mac.update(format!("{webhook_id}.{}.{body}", at.as_second()).as_bytes());
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_signed_as_there() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let signature = sign(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at,
            "{\"test\": 2432232314}",
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
