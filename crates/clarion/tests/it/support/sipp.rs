//! SIPp as a trunk, with the scenarios of the engine's own tests (`crates/phone/tests/sipp`).

#[expect(
    dead_code,
    reason = "the tests of the engine use more of it than those of whole calls"
)]
#[path = "../../../../phone/tests/it/sipp/play.rs"]
mod play;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tempfile::TempDir;

use super::{PATIENCE, free_port};
pub use play::{Play, RINGING, Sipp, description};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    super::eventually(what, async || holds()).await;
}

impl Sipp {
    /// Returns the settings of a trunk that leads here, for these numbers. `more` comes last.
    pub fn trunk(&self, name: &str, prefix: &str, more: &str) -> String {
        format!(
            "[[trunk]]\nname = \"{name}\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\noptions_seconds = 0\nchannels = 5\ncalls_per_second = 50\n\
             prefixes = [\"{prefix}\"]\n{more}\n",
            self.address
        )
    }
}
