//! `[log]`: what is logged, and in which form.

use tracing_subscriber::EnvFilter;

use super::section::{Mistake, Section};

/// The SIP library logs whole messages, including telephone numbers and password digests, so it is quiet unless the filter names it.
const QUIET: &str = "rsipstack=error";
/// The client of PostgreSQL logs the values of every statement: tokens, numbers, codes. No filter makes it do so.
const SILENT: &str = "tokio_postgres=off,postgres_protocol=off";

/// A larger one would stop the signalling for too long while it is copied.
const LARGEST_TRACE_MIB: usize = 1024;

#[derive(Debug, Clone)]
pub struct LogConfig {
    pub filter: EnvFilter,
    pub format: LogFormat,
    /// Memory for the last SIP messages, in bytes; 0 keeps none.
    pub sip_trace_room: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl LogConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let room: usize = section.number("sip_trace_mb", 0..=LARGEST_TRACE_MIB)?;
        Ok(Self {
            sip_trace_room: room << 20,
            filter: section.parsed_by("filter", |text| {
                EnvFilter::try_new(format!("{QUIET},{text},{SILENT}"))
                    .map_err(|_| format!("`{text}` is not a filter"))
            })?,
            format: section.parsed_by("format", |text| match text {
                "text" => Ok(LogFormat::Text),
                "json" => Ok(LogFormat::Json),
                _ => Err(format!("`{text}` is neither text nor json")),
            })?,
        })
    }
}
