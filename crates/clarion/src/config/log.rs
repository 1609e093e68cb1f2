//! `[log]`: what is logged, and in which form.

use tracing_subscriber::EnvFilter;

use super::section::{Mistake, Section};

/// The SIP library logs whole messages, including telephone numbers and password digests, so it is quiet unless the filter names it.
const QUIET: &str = "rsipstack=error";

#[derive(Debug, Clone)]
pub struct LogConfig {
    pub filter: EnvFilter,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl LogConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        Ok(Self {
            filter: section.parsed_by("filter", |text| {
                EnvFilter::try_new(format!("{QUIET},{text}"))
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
