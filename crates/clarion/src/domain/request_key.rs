//! What an application calls a request of its own, so that it can be repeated safely: the same name again is the same call.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::call::{CallSid, NewCall, Queueing};
use super::callback::OwedEvent;
use super::status_code::Refusal;

const LONGEST: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Reads it from the field or from the header; both may be there if they say the same.
    pub fn read(field: Option<&str>, header: Option<&str>) -> Result<Option<Self>, Refusal> {
        let given = match (field, header) {
            (Some(field), Some(header)) if field != header => {
                return Err(Refusal::field(
                    "requestId and the header Idempotency-Key must be equal where both are given",
                ));
            }
            (given, other) => given.or(other),
        };
        given.map(Self::parse).transpose()
    }

    fn parse(text: &str) -> Result<Self, Refusal> {
        let is_good = text.chars().count() <= LONGEST && !text.chars().any(char::is_control);
        if !is_good {
            return Err(Refusal::field(
                "requestId must have at most 64 characters and no control characters",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The notice of this number of an incident, which has an id of its own.
    pub fn of_incident(id: &str, notice: u32) -> Self {
        Self(format!("incident {id} {notice}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A call with everything that is made durable when it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedCall {
    pub call: NewCall,
    pub queueing: Queueing,
    /// Where the application has named its request.
    pub request: Option<RequestKey>,
    /// That it waits is told to those who watch it.
    pub event: Option<OwedEvent>,
}

/// Hex digits of a digest.
const DIGEST_LENGTH: usize = 64;

/// A request's name, and a digest of its fields: another request must not have the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    pub id: RequestId,
    pub digest: String,
}

impl RequestKey {
    /// `secret` is told apart as long as it is known: its digest is kept beside that of the fields, and forgotten with it. Whoever finds the digest
    /// of four digits has found the digits.
    pub fn new(id: RequestId, fields: &str, secret: Option<&str>) -> Self {
        let digest = |text: &str| hex::encode(Sha256::digest(text));
        let mut digests = digest(fields);
        if let Some(secret) = secret {
            digests.push_str(&digest(&format!("{}\n{secret}", id.0)));
        }
        Self {
            id,
            digest: digests,
        }
    }

    /// Whether it was the same request that became that call. A secret that was forgotten is not compared any more.
    pub fn is_that_of(&self, known: &KnownRequest) -> bool {
        let forgotten = known.digest.len() == DIGEST_LENGTH;
        self.digest == known.digest || forgotten && self.digest.starts_with(&known.digest)
    }
}

/// The call that a request of this name became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRequest {
    pub call: CallSid,
    pub accepted_at: Timestamp,
    pub digest: String,
}

/// What became of a call that was to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is durable.
    New,
    /// A request of its name was accepted before, and nothing was changed.
    Before(KnownRequest),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_tells_requests_apart_until_it_is_forgotten() {
        let key = |fields, secret| RequestKey::new(RequestId("a".into()), fields, secret);
        let known = |digest: &str| KnownRequest {
            call: "26111502350900001000000000000000".parse().unwrap(),
            accepted_at: Timestamp::UNIX_EPOCH,
            digest: digest.to_owned(),
        };
        let first = key("fields", Some("1234"));
        let remembered = known(&first.digest);
        assert!(first.is_that_of(&remembered));
        assert!(!key("fields", Some("1235")).is_that_of(&remembered));
        assert!(!key("others", Some("1234")).is_that_of(&remembered));
        assert!(!key("fields", None).is_that_of(&remembered));
        let forgotten = known(&first.digest[..DIGEST_LENGTH]);
        assert!(key("fields", Some("1235")).is_that_of(&forgotten));
        assert!(!key("others", Some("1234")).is_that_of(&forgotten));
        assert!(key("fields", None).is_that_of(&known(&key("fields", None).digest)));
    }

    #[test]
    fn a_request_is_named_by_its_field_or_by_the_header() {
        fn read(field: Option<&str>, header: Option<&str>) -> Result<Option<String>, Refusal> {
            Ok(RequestId::read(field, header)?.map(|id| id.0))
        }
        assert_eq!(read(None, None).unwrap(), None);
        assert_eq!(read(Some("a"), None).unwrap().as_deref(), Some("a"));
        assert_eq!(read(None, Some("b")).unwrap().as_deref(), Some("b"));
        assert_eq!(read(Some("c"), Some("c")).unwrap().as_deref(), Some("c"));
        assert!(
            read(Some("c"), Some("d"))
                .unwrap_err()
                .message
                .contains("Idempotency-Key")
        );
        assert!(read(Some(&"字".repeat(64)), None).is_ok());
        for bad in ["字".repeat(65), "a\nb".to_owned()] {
            assert!(read(Some(&bad), None).unwrap_err().message.contains("64"));
        }
    }
}
