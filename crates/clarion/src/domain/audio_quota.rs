//! How much of the disk customers' audio files may take.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::account::AppId;
use super::prompt::ContentId;
use super::status_code::{Refusal, StatusCode};
use super::wording::{Wording, wording};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AudioQuota {
    pub app_bytes: Option<u64>,
    pub account_bytes: Option<u64>,
    pub uploads_per_hour: Option<u32>,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioUse {
    pub app_bytes: u64,
    pub account_bytes: u64,
    pub hour: UploadHour,
}

impl AudioUse {
    #[must_use]
    pub fn with_upload(self, bytes: u64, now: Timestamp) -> Self {
        Self {
            app_bytes: self.app_bytes.saturating_add(bytes),
            account_bytes: self.account_bytes.saturating_add(bytes),
            hour: self.hour.one_more(now),
        }
    }
}

impl AudioQuota {
    /// Takes what is counted with the new upload.
    pub fn check(&self, used: &AudioUse) -> Result<(), Refusal> {
        let of_bytes = [
            (
                wording!("application", "应用"),
                self.app_bytes,
                used.app_bytes,
            ),
            (
                wording!("account", "账户"),
                self.account_bytes,
                used.account_bytes,
            ),
        ];
        for (whose, limit, bytes) in of_bytes {
            if let Some(limit) = limit.filter(|limit| bytes > *limit) {
                let (wanted, allowed) = (bytes.div_ceil(1 << 20), limit >> 20);
                return Err(over(&wording!(
                    "with this upload, the audio files of the {whose} would take {wanted} MB; {allowed} MB are allowed, and replaced or removed files count until they are swept",
                    "加上本次上传，该{whose}的语音文件将占用 {wanted} MB，上限为 {allowed} MB；被替换和删除的文件在清理之前仍计入"; whose
                )));
            }
        }
        let uploads = self.uploads_per_hour;
        if let Some(limit) = uploads.filter(|limit| used.hour.uploads > *limit) {
            return Err(over(&wording!(
                "an account may make {limit} uploads in an hour; several files can be uploaded as one zip file",
                "每个账户每小时最多上传 {limit} 次；多个文件可打成一个 zip 包上传"
            )));
        }
        Ok(())
    }
}

fn over(rule: &Wording) -> Refusal {
    Refusal::worded(StatusCode::AudioQuota, rule)
}

/// Uploads in the hour that began with the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadHour {
    pub since: Timestamp,
    pub uploads: u32,
}

impl UploadHour {
    fn one_more(self, now: Timestamp) -> Self {
        let age = now.duration_since(self.since);
        // A clock that was put back begins a new hour too: otherwise it might take days until the hour is over.
        if age >= HOUR || age.is_negative() {
            return Self {
                since: now,
                uploads: 1,
            };
        }
        Self {
            uploads: self.uploads.saturating_add(1),
            ..self
        }
    }
}

/// What an upload takes of the disk.
#[derive(Debug, Clone)]
pub struct AudioCharge {
    pub app: AppId,
    /// The bytes of each content. It is written once, though several names mean it.
    pub bytes: HashMap<ContentId, u64>,
    pub at: Timestamp,
}

/// Bytes for which their application has no name any more.
#[derive(Debug, Clone)]
pub struct DroppedCharge {
    pub app: AppId,
    pub content: ContentId,
    /// Somebody else has a name for them: they stay on the disk because of them.
    pub is_named_by_others: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(app_bytes: u64, account_bytes: u64, uploads: u32) -> AudioUse {
        let since = Timestamp::UNIX_EPOCH;
        AudioUse {
            app_bytes,
            account_bytes,
            hour: UploadHour { since, uploads },
        }
    }

    #[test]
    fn the_last_byte_and_the_last_upload_are_allowed_and_one_more_is_refused() {
        let quota = AudioQuota {
            app_bytes: Some(2 << 20),
            account_bytes: Some(3 << 20),
            uploads_per_hour: Some(5),
        };
        assert!(quota.check(&used(2 << 20, 3 << 20, 5)).is_ok());
        for (over, said) in [
            (
                used((2 << 20) + 1, 1, 1),
                "the application would take 3 MB; 2 MB are allowed",
            ),
            (
                used(1, (3 << 20) + 1, 1),
                "the account would take 4 MB; 3 MB are allowed",
            ),
            (used(1, 1, 6), "5 uploads in an hour"),
        ] {
            let refusal = quota.check(&over).unwrap_err();
            assert_eq!(refusal.code.code(), "190015");
            assert!(refusal.message.contains(said), "{}", refusal.message);
        }
        let without = AudioQuota::default();
        assert!(without.check(&used(u64::MAX, u64::MAX, u32::MAX)).is_ok());
    }

    #[test]
    fn an_hour_begins_with_its_first_upload_and_anew_when_it_is_over() {
        let at = |minutes| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let first = UploadHour {
            since: at(0),
            uploads: 1,
        };
        let second = first.one_more(at(59));
        assert_eq!((second.since, second.uploads), (at(0), 2));
        for later in [at(60), at(-1)] {
            let new = second.one_more(later);
            assert_eq!((new.since, new.uploads), (later, 1));
        }
    }
}
