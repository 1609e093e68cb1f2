//! `clarion call trace`: the SIP messages of a call, a number or a trunk, as text or as a capture file.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args};
use jiff::Timestamp;
use supervisor::Supervisor;

use crate::config::Config;
use crate::domain::call::CallSid;
use crate::sip_trace::{self, KeptMessage, TraceFilter};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("wanted").required(true))]
pub struct CallTrace {
    /// The callSid
    #[arg(group = "wanted", value_name = "CALLSID")]
    call: Option<CallSid>,
    /// Messages from or to this number, in any form
    #[arg(long, group = "wanted")]
    number: Option<String>,
    /// Messages of this trunk, registrations and OPTIONS included
    #[arg(long, group = "wanted", value_name = "NAME")]
    trunk: Option<String>,
    /// Write a capture file (pcapng, for Wireshark) instead of text
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

impl CallTrace {
    pub async fn run(self, config: &Config) -> anyhow::Result<()> {
        ensure!(
            config.log.sip_trace_room > 0,
            "no SIP messages are kept: sip_trace_mb is 0 in [log]"
        );
        let path = sip_trace::path_in(&config.data_dir);
        let answer = sip_trace::ask(&path, &self.filter()?).await?;
        let Some(answer) = answer else {
            bail!(
                "no server answers at {}: it must run on this machine, with this data_dir, and with sip_trace_mb above 0 in [log]",
                path.display()
            );
        };
        if answer.messages.is_empty() {
            return Err(self.nothing_found(config, answer.since).await);
        }
        match &self.pcap {
            Some(file) => write_capture(file, &answer.messages),
            None => print(&answer.messages, config),
        }
    }

    fn filter(&self) -> anyhow::Result<TraceFilter> {
        Ok(match (&self.call, &self.number, &self.trunk) {
            (Some(sid), _, _) => TraceFilter::CallSid(sid.to_string()),
            (_, Some(number), _) => {
                let has_digit = number.contains(|letter: char| letter.is_ascii_digit());
                ensure!(has_digit, "{number} is not a number");
                TraceFilter::Number(number.clone())
            }
            (_, _, Some(trunk)) => TraceFilter::Trunk(trunk.clone()),
            (None, None, None) => bail!("name a callSid, --number or --trunk"),
        })
    }

    /// A callSid may be mistyped: the database knows. Without a database the trace is all there is.
    async fn nothing_found(&self, config: &Config, since: Option<Timestamp>) -> anyhow::Error {
        if let Some(sid) = &self.call
            && let Ok(store) = config.database.open_as_is(&Supervisor::new()).await
        {
            let known = store.call_record(sid).await;
            store.close().await;
            if let Ok(None) = known {
                return anyhow::anyhow!("there is no call {sid}");
            }
        }
        let reach = match since {
            Some(since) => {
                let since = since.to_zoned(config.time_zone());
                format!(
                    "it has messages since {}",
                    since.strftime("%Y-%m-%d %H:%M:%S")
                )
            }
            None => "it has no messages at all".to_owned(),
        };
        anyhow::anyhow!(
            "the server on this machine has no such messages; {reach}. They may be older, or another node may have them"
        )
    }
}

fn print(messages: &[KeptMessage], config: &Config) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = sip_trace::write_text(&mut out, messages, &config.time_zone());
    match written.and_then(|()| out.flush()) {
        // The reader has seen enough (`clarion call trace … | head`).
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Numbers are nobody else's business: the file is private.
fn write_capture(file: &Path, messages: &[KeptMessage]) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", file.display());
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut out = BufWriter::new(options.open(file).with_context(context)?);
    sip_trace::write_pcapng(&mut out, messages).with_context(context)?;
    out.flush().with_context(context)?;
    println!("{} messages are in {}", messages.len(), file.display());
    Ok(())
}
