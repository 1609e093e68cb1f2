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
const BEGIN: &str = sqlite!(
    "INSERT INTO queue_clock (one, queue_time, wall_time, boot, boot_time) VALUES (1, $1, $2, $3, $4) \
     ON CONFLICT (one) DO NOTHING"
);
const WRITE: &str = sqlite!(
    "INSERT INTO queue_clock (one, queue_time, wall_time, boot, boot_time) VALUES (1, $1, $2, $3, $4) \
     ON CONFLICT (one) DO UPDATE SET queue_time = $1, wall_time = $2, boot = $3, boot_time = $4 WHERE queue_time < $1"
);

/// Milliseconds, as in every column: whoever reads what this one has written down tells the same time as it, to the millisecond.
#[derive(Debug, Clone)]
pub struct QueueClock {
    boot: String,
    /// The queue's time when the process began.
    began: i64,
    began_after_boot: i64,
}

/// What was written down, and when.
struct Mark {
    queue_time: i64,
    wall_time: i64,
    boot: String,
    boot_time: i64,
}

impl QueueClock {
    /// A new file's time begins here, once: all that open it in the same moment go by the first.
    pub fn read(db: &Connection) -> rusqlite::Result<Self> {
        let boot = clock::boot_id();
        if mark(db)?.is_none() {
            let wall = clock::wall_millis();
            db.execute(BEGIN, params![wall, wall, boot, since_boot()])?;
        }
        let mark = mark(db)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let since_boot = since_boot();
        let began = began(&mark, &boot, since_boot, clock::wall_millis());
        Ok(Self {
            boot,
            began,
            began_after_boot: since_boot,
        })
    }

    pub fn now(&self) -> i64 {
        self.at(since_boot())
    }

    pub fn after(&self, time: SignedDuration) -> i64 {
        self.now().saturating_add(binding::millis(time))
    }

    /// Writes the time down, so that the next life goes on from here.
    pub fn write(&self, db: &Connection) -> Result<(), StoreError> {
        let since_boot = since_boot();
        let values = params![
            self.at(since_boot),
            clock::wall_millis(),
            self.boot,
            since_boot
        ];
        db.prepare_cached(WRITE)?.execute(values)?;
        Ok(())
    }

    fn at(&self, since_boot: i64) -> i64 {
        self.began + (since_boot - self.began_after_boot).max(0)
    }
}

fn mark(db: &Connection) -> rusqlite::Result<Option<Mark>> {
    let read = db.query_row(READ, [], |row| {
        Ok(Mark {
            queue_time: row.get(0)?,
            wall_time: row.get(1)?,
            boot: row.get(2)?,
            boot_time: row.get(3)?,
        })
    });
    read.optional()
}

fn began(mark: &Mark, boot: &str, since_boot: i64, wall: i64) -> i64 {
    let passed = if mark.boot == boot && !boot.is_empty() {
        since_boot - mark.boot_time
    } else {
        wall - mark.wall_time
    };
    mark.queue_time + passed.max(0)
}

fn since_boot() -> i64 {
    millis(clock::since_boot())
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
        let same_boot = |wall| began(&mark, "one", 3_000, wall);
        assert_eq!(same_boot(5_001_000), 1_001_000);
        assert_eq!(same_boot(99_000_000), 1_001_000, "set forward");
        assert_eq!(same_boot(1), 1_001_000, "set back");
        let other_boot = |wall| began(&mark, "two", 500, wall);
        assert_eq!(other_boot(5_060_000), 1_060_000, "a minute of downtime");
        assert_eq!(other_boot(4_000_000), 1_000_000, "never backwards");
    }

    #[test]
    fn all_that_open_a_new_file_tell_the_same_time() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE queue_clock (one INTEGER PRIMARY KEY, queue_time, wall_time, boot, boot_time)",
        )
        .unwrap();
        let first = QueueClock::read(&db).unwrap();
        let second = QueueClock::read(&db).unwrap();
        first.write(&db).unwrap();
        let third = QueueClock::read(&db).unwrap();
        for later in [0, 1, 7_919, 86_400_000] {
            let moment = third.began_after_boot + later;
            let told = [&first, &second, &third].map(|clock| clock.at(moment));
            assert_eq!(told, [told[0]; 3], "{later} ms later");
        }
    }
}
