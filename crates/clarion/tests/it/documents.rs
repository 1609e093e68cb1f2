//! The blocks of the documents, run. What a document says otherwise is judged by the tests in `tests/documents`, which need no server.

#[path = "../documents/blocks.rs"]
pub mod blocks;
mod shell;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
