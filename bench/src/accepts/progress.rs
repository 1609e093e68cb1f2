//! How far a long filling has come: one line that is written over on a terminal, and now and then a line elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const ELSEWHERE: Duration = Duration::from_secs(15);
const ON_A_TERMINAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: u64,
    began: Instant,
    shown: Instant,
    terminal: bool,
}

impl Progress {
    pub fn of(what: &'static str, total: u64) -> Self {
        Self {
            what,
            total,
            began: Instant::now(),
            shown: Instant::now(),
            terminal: std::io::stdout().is_terminal(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "for reading")]
    pub fn show(&mut self, done: u64) {
        let pause = if self.terminal {
            ON_A_TERMINAL
        } else {
            ELSEWHERE
        };
        if self.shown.elapsed() < pause && done < self.total {
            return;
        }
        self.shown = Instant::now();
        let rate = done as f64 / self.began.elapsed().as_secs_f64();
        let left = (self.total - done) as f64 / rate;
        let percent = done as f64 * 100.0 / self.total as f64;
        let (before, after) = if self.terminal {
            ("\r", "\x1b[K")
        } else {
            ("", "\n")
        };
        print!(
            "{before}  filling in {}: {done} of {} ({percent:.0} %), {rate:.0}/s, {left:.0} s left{after}",
            self.what, self.total
        );
        if self.terminal && done == self.total {
            println!();
        }
        let _ = std::io::stdout().flush();
    }
}
