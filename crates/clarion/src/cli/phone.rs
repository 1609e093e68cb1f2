//! `clarion phone`: a telephone that answers by a script, remembers what it heard, and prints one line per call. People use it to try
//! Clarion without a trunk.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use g711::Codec;
use phone::call::MediaConfig;
use phone::ending::Side;
use phone::signalling::{
    SignallingConfig, SipCredentials, TlsFiles, Trace, Transport, own_address,
};
use phone::test_phone::{HeardCall, NUMBERS, Script, TestPhone, TestPhoneConfig, Then};
use supervisor::Supervisor;

use crate::config::{parse_codec, parse_ports};

#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct PhoneOptions {
    /// Address and port to listen on
    #[arg(long, default_value = "127.0.0.1:5070", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Transport: udp, tcp or tls
    #[arg(long, default_value = "udp")]
    transport: Transport,
    /// Certificate for TLS, as PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Ports for RTP
    #[arg(long, default_value = "30000-39999", value_name = "FIRST-LAST", value_parser = parse_ports)]
    rtp_ports: RangeInclusive<u16>,
    /// Record what is heard into WAV files in this folder
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// User name that callers must have
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// Password that callers must have
    #[arg(long, requires = "user")]
    password: Option<String>,
    /// Codecs in the order of preference
    #[arg(long, default_value = "PCMA,PCMU", value_delimiter = ',', value_parser = parse_codec)]
    codecs: Vec<Codec>,
    /// Write every SIP message to this file, secrets masked
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Stop after this number of calls
    #[arg(long)]
    calls: Option<u64>,
    #[command(flatten)]
    behaviour: Behaviour,
}

/// Without any of these each number behaves as the table below says.
#[derive(Debug, Args)]
#[command(next_help_heading = "Behaviour for every call")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
struct Behaviour {
    /// Answer after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    answer_after: Option<Duration>,
    /// Ring and never answer
    #[arg(long)]
    never_answer: bool,
    /// Refuse as busy
    #[arg(long)]
    busy: bool,
    /// Decline
    #[arg(long)]
    decline: bool,
    /// Refuse with this SIP code
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(300..=699))]
    refuse: Option<u16>,
    /// Hang up after this time, counted from the answer
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    hang_up_after: Option<Duration>,
    /// Play a tone before the answer (183)
    #[arg(long)]
    early_media: bool,
    /// Press these keys after the answer
    #[arg(long)]
    keys: Option<String>,
    /// Send no response for this time at first
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    slow: Option<Duration>,
    /// Drop every Nth packet that arrives
    #[arg(long, value_name = "N")]
    drop_every: Option<u32>,
}

impl Behaviour {
    /// Returns the script, or `None` if no option was given.
    fn script(&self) -> Option<Script> {
        let refusal = self
            .refuse
            .or(self.busy.then_some(486))
            .or(self.decline.then_some(603));
        let answers = self.answer_after.is_some()
            || self.hang_up_after.is_some()
            || self.keys.is_some()
            || self.early_media
            || self.slow.is_some()
            || self.drop_every.is_some();
        let mut script = match refusal {
            Some(code) => Script::refuse(code),
            None if self.never_answer => Script::never_answer(),
            None if answers => Script::answer_after(self.answer_after.unwrap_or_default()),
            None => return None,
        };
        if let Then::Answer { hang_up, keys, .. } = &mut script.then {
            *hang_up = self.hang_up_after;
            *keys = self.keys.clone().unwrap_or_default();
        }
        script.early_media = self.early_media.then(Script::ringing_tone);
        script.slow = self.slow.unwrap_or_default();
        script.deaf_to_every = self.drop_every.unwrap_or_default();
        Some(script)
    }
}

fn after_help() -> String {
    let mut text = "The last digits of the called number choose what the telephone does. Every other number is answered:\n".to_owned();
    for (suffix, behaviour) in NUMBERS {
        text.push_str(&format!("  …{suffix}  {behaviour}\n"));
    }
    text
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "write a number of seconds, such as 2 or 0.5".to_owned())
}

impl PhoneOptions {
    pub async fn run(self) -> anyhow::Result<()> {
        if let Some(folder) = &self.record {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let script = self.behaviour.script();
        let (phone, mut heard) =
            TestPhone::start(&Supervisor::new(), &self.config()?, move |number| {
                script.clone().unwrap_or_else(|| Script::of_number(number))
            })
            .await?;
        say(&format!(
            "A telephone listens on {} ({}). Call sip:NUMBER@{}; Ctrl-C ends it.",
            phone.contact(),
            self.transport,
            phone.contact()
        ));
        let mut count = 0;
        while self.calls.is_none_or(|calls| count < calls) {
            let call = tokio::select! {
                call = heard.recv() => call,
                _ = tokio::signal::ctrl_c() => None,
            };
            let Some(call) = call else { break };
            count += 1;
            say(&describe(&call));
            if let Some(folder) = self.record.as_ref().filter(|_| !call.packets.is_empty()) {
                let file = folder.join(format!("{count:04}-{}.wav", file_name(&call.number)));
                record(&call, &file)?;
                say(&format!("  heard: {}", file.display()));
            }
        }
        Ok(())
    }

    fn config(&self) -> anyhow::Result<TestPhoneConfig> {
        let mut sip = SignallingConfig::new(self.transport, self.listen);
        sip.user_agent = format!("Clarion-phone/{}", env!("CARGO_PKG_VERSION"));
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            let read = |path: &Path| {
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))
            };
            sip.tls = TlsFiles {
                own: Some((read(certificate)?, read(key)?)),
                ..TlsFiles::default()
            };
        }
        anyhow::ensure!(
            self.transport != Transport::Tls || sip.tls.own.is_some(),
            "TLS needs --certificate and --key"
        );
        if let Some(path) = &self.trace {
            sip.trace = Some(trace_to(path)?);
        }
        Ok(TestPhoneConfig {
            sip,
            media: MediaConfig {
                advertised: self
                    .listen
                    .ip()
                    .is_unspecified()
                    .then(|| own_address(self.listen.ip())),
                ..MediaConfig::new(self.listen.ip(), self.rtp_ports.clone())
            },
            codecs: self.codecs.clone(),
            credentials: self
                .user
                .clone()
                .zip(self.password.clone())
                .map(|(user, password)| SipCredentials {
                    user,
                    auth_user: None,
                    password,
                }),
        })
    }
}

fn trace_to(path: &Path) -> anyhow::Result<Trace> {
    let file = File::create(path).with_context(|| format!("cannot write to {}", path.display()))?;
    let file = std::sync::Mutex::new(file);
    Ok(Trace::new(move |message| {
        let mut file = file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // The telephone keeps answering if the trace cannot be written any more.
        let _ = writeln!(
            file,
            "-- {} {}\n{}",
            message.direction,
            message
                .peer
                .map(|peer| peer.to_string())
                .unwrap_or_default(),
            message.text
        );
    }))
}

fn record(call: &HeardCall, path: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(context)?);
    call.write_wav(&mut file).with_context(context)?;
    file.flush().with_context(context)
}

/// Makes a file name from a number, which comes from outside.
fn file_name(number: &str) -> String {
    number
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '+')
        .take(40)
        .collect()
}

/// Describes a call on one line: who called, what became of the call, and how well it was heard.
fn describe(call: &HeardCall) -> String {
    let mut line = format!("{} calls {}: ", call.caller, call.number);
    if !call.answered {
        line.push_str("not answered");
        return line;
    }
    let timing = call.timing();
    line.push_str(&format!(
        "talked {:.1} s, {}; {} packets of {}, {} lost, {} late, longest gap {} ms, jitter {:.1} ms, drift {:+.0} ppm",
        call.talked.as_secs_f64(),
        match call.hung_up_by {
            Some(Side::Us) => "hung up here",
            Some(Side::Them) => "hung up by the caller",
            None => "cut off",
        },
        timing.packets,
        call.codec.map_or("nothing", Codec::name),
        timing.lost,
        timing.late,
        timing.longest_gap.as_millis(),
        timing.jitter.as_secs_f64() * 1000.0,
        timing.drift_ppm,
    ));
    if !call.keys.is_empty() {
        line.push_str(&format!(", keys {}", call.keys));
    }
    line
}

fn say(line: &str) {
    // The telephone goes on if the reader has gone away.
    let _ = writeln!(std::io::stdout(), "{line}");
}
