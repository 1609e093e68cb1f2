//! The time of the queue in SQLite: due, expiry and leases are by it. It began as the machine's clock showed, and goes on evenly from
//! there: whoever sets that clock neither expires what is queued nor holds it back.
//!
//! Between two lives of the process it goes on by the time since the machine was booted, or, after another boot, by the machine's clock,
//! as far as that has gone forward. A row says how both stood when the queue's time was last written down.

use std::time::Duration;

use jiff::SignedDuration;
use rusqlite::{Connection, OptionalExtension, params};

use crate::clock;
use crate::store::statements::sqlite;
use crate::store::{StoreError, binding};

const READ: &str = sqlite!("SELECT queue_time, wall_time, boot, boot_time FROM queue_clock");
const WRITE: &str = sqlite!(
    "INSERT INTO queue_clock (one, queue_time, wall_time, boot, boot_time) VALUES (1, $1, $2, $3, $4) \
     ON CONFLICT (one) DO UPDATE SET queue_time = $1, wall_time = $2, boot = $3, boot_time = $4 WHERE queue_time < $1"
);

/// Milliseconds, as in every column.
#[derive(Debug, Clone)]
pub struct QueueClock {
    boot: String,
    /// The queue's time when the process began.
    began: i64,
    began_after_boot: Duration,
}

/// What was written down, and when.
struct Mark {
    queue_time: i64,
    wall_time: i64,
    boot: String,
    boot_time: i64,
}

impl QueueClock {
    pub fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mark = db
            .query_row(READ, [], |row| {
                Ok(Mark {
                    queue_time: row.get(0)?,
                    wall_time: row.get(1)?,
                    boot: row.get(2)?,
                    boot_time: row.get(3)?,
                })
            })
            .optional()?;
        let (boot, since_boot) = (clock::boot_id(), clock::since_boot());
        let began = began(
            mark.as_ref(),
            &boot,
            millis(since_boot),
            clock::wall_millis(),
        );
        Ok(Self {
            boot,
            began,
            began_after_boot: since_boot,
        })
    }

    pub fn now(&self) -> i64 {
        self.began + millis(clock::since_boot().saturating_sub(self.began_after_boot))
    }

    pub fn after(&self, time: SignedDuration) -> i64 {
        self.now().saturating_add(binding::millis(time))
    }

    /// Writes the time down, so that the next life goes on from here.
    pub fn write(&self, db: &Connection) -> Result<(), StoreError> {
        let since_boot = millis(clock::since_boot());
        let values = params![self.now(), clock::wall_millis(), self.boot, since_boot];
        db.prepare_cached(WRITE)?.execute(values)?;
        Ok(())
    }
}

fn began(mark: Option<&Mark>, boot: &str, since_boot: i64, wall: i64) -> i64 {
    let Some(mark) = mark else { return wall };
    let passed = if mark.boot == boot && !boot.is_empty() {
        since_boot - mark.boot_time
    } else {
        wall - mark.wall_time
    };
    mark.queue_time + passed.max(0)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_time_goes_on_whatever_the_machines_clock_says() {
        let mark = Mark {
            queue_time: 1_000_000,
            wall_time: 5_000_000,
            boot: "one".to_owned(),
            boot_time: 2_000,
        };
        assert_eq!(
            began(None, "one", 3_000, 7_000_000),
            7_000_000,
            "a new file"
        );
        let same_boot = |wall| began(Some(&mark), "one", 3_000, wall);
        assert_eq!(same_boot(5_001_000), 1_001_000);
        assert_eq!(same_boot(99_000_000), 1_001_000, "set forward");
        assert_eq!(same_boot(1), 1_001_000, "set back");
        let other_boot = |wall| began(Some(&mark), "two", 500, wall);
        assert_eq!(other_boot(5_060_000), 1_060_000, "a minute of downtime");
        assert_eq!(other_boot(4_000_000), 1_000_000, "never backwards");
    }
}
