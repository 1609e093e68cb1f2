//! What an application calls a request of its own, so that it can be repeated safely: the same name again is the same call.

use jiff::Timestamp;

use super::call::{CallSid, NewCall, Queueing};
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

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A call with everything that is made durable when it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrder {
    pub call: NewCall,
    pub queueing: Queueing,
    /// Where the application has named its request.
    pub request: Option<RequestKey>,
}

/// A request's name, and a digest of its fields: another request must not have the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    pub id: RequestId,
    pub digest: String,
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
