//! Failures after which nothing can be promised any more. The process stops with status 74, and systemd does not start it again.
//!
//! After a failed sync nobody knows what is on the disk, and trying again may report success for data that is gone. Only a fresh start, which
//! reads the file as it is, tells the truth. Damage that SQLite has found is worse: whatever is read or written beside it may be wrong too,
//! and no fresh start makes the file whole.

use std::error::Error;
use std::io::{self, ErrorKind};

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

/// `EX_IOERR`.
const STATUS: i32 = 74;

/// Nothing was written, and nothing is lost. The index of the log could not grow, or a file. To be asked right after the error.
pub fn is_disk_full(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|found| found.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || code == Some(SQLITE_IOERR_SHMSIZE)
        || code == Some(SQLITE_IOERR_WRITE) && is_quota_used_up()
}

/// SQLite takes a quota that is used up for a failed write. What the system said is the last error of this thread: after a commit,
/// `sqlite3_system_errno` does not know it.
fn is_quota_used_up() -> bool {
    io::Error::last_os_error().kind() == ErrorKind::QuotaExceeded
}

/// For errors of whoever writes or syncs: the writer's transactions, and both who copy the log.
pub fn stop_if_lost(error: &rusqlite::Error) {
    if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) && !is_disk_full(error) {
        stop_the_disk_failed(error);
    }
    stop_if_damaged(error);
}

/// For errors of any statement, whoever ran it. A page that cannot be read is the answer to one request, but damage concerns all.
pub fn stop_if_damaged(error: &rusqlite::Error) {
    use ErrorCode::{DatabaseCorrupt, NotADatabase};
    if let Some(DatabaseCorrupt | NotADatabase) = error.sqlite_error_code() {
        stop_the_file_is_damaged(error);
    }
}

/// For what was tried while the database was being opened.
pub fn stop_if_it_comes_from_damage(error: &anyhow::Error) {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.for_each(stop_if_damaged);
}

pub fn stop_the_disk_failed(error: &dyn Error) -> ! {
    tracing::error!(%error, "the disk failed; stopping, because nothing can be promised any more");
    std::process::exit(STATUS);
}

fn stop_the_file_is_damaged(error: &dyn Error) -> ! {
    tracing::error!(
        %error,
        "the database file is damaged; stopping, because nothing can be promised any more. \
         Do not start on this file again: follow \"A damaged database\" in docs/operating.md"
    );
    std::process::exit(STATUS);
}
