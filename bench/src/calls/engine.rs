//! The engine under load, in a process of its own so that its processor time and memory are its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use g711::EncodedAudio;
use phone::call::{CallEvent, CallRequest, Phone};
use phone::ending::Ending;
use phone::media::stream::PlaybackItem;
use phone::signalling::{Leave, Resolver, Signalling, SignallingConfig, Transport};
use phone::trunk::{SipTrunkConfig, Trunk};
use serde::{Deserialize, Serialize};
use supervisor::Supervisor;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::usage::Usage;

#[derive(Debug, Args)]
pub struct CallingEngine {
    /// Whom to call, in turn
    #[arg(long, required = true)]
    callee: Vec<SocketAddr>,
    #[command(flatten)]
    load: EngineLoad,
}

/// What the engine is to do. `clarion-bench compare` gives it to engines of other commits too: these options stay as they are.
#[derive(Debug, Clone, Copy, Args)]
pub struct EngineLoad {
    /// Calls a second
    #[arg(long)]
    pub rate: u32,
    /// For how long calls are placed
    #[arg(long)]
    pub seconds: u32,
    /// Packets of sound in a call
    #[arg(long)]
    pub frames: u32,
}

/// What the engine reports when it is done. Engines of other commits report it too: fields are added, not renamed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineReport {
    pub placed: u64,
    pub talked: u64,
    pub failed: Vec<String>,
    pub packets: u64,
    pub late: u64,
    /// Of each call the packet that left last after its moment, in microseconds, sorted.
    pub worst_micros: Vec<u32>,
    pub cpu_seconds: f64,
    pub idle_bytes: u64,
    pub peak_bytes: u64,
    pub peak_calls: u64,
    /// How long the placing took: longer than asked for if the engine could not keep up.
    pub placing_seconds: f64,
}

impl CallingEngine {
    pub async fn run(self) -> anyhow::Result<()> {
        raise_file_limit();
        let report = self.measure().await?;
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    }

    async fn measure(&self) -> anyhow::Result<EngineReport> {
        let supervisor = Supervisor::new();
        let phone = Arc::new(Phone::start(&supervisor, &super::media())?);
        let mut trunks = Vec::new();
        for callee in &self.callee {
            let config = SignallingConfig::new(Transport::Udp, "127.0.0.1:0".parse()?);
            let signalling = Arc::new(Signalling::start(&supervisor, &config, None).await?);
            let trunk = SipTrunkConfig::new("bench", (*callee).into());
            trunks.push(Trunk::start(
                &supervisor,
                trunk,
                signalling,
                Resolver::default(),
            ));
        }
        let samples: Vec<i16> = (0..self.load.frames * 160)
            .map(|index| i16::try_from(index % 20_000).unwrap_or(0))
            .collect();
        let plan = vec![PlaybackItem::Sound(EncodedAudio::encode(&samples))];
        let mut report = EngineReport {
            idle_bytes: Usage::of_this_process()?.bytes,
            ..EngineReport::default()
        };
        let (playing, limit) = (
            Arc::new(AtomicU64::new(0)),
            self.load.rate * self.load.seconds,
        );
        let (ended, mut endings) = unbounded_channel();
        let cpu = cpu_seconds();
        let began = Instant::now();
        for index in 0..limit {
            let due = began + Duration::from_secs_f64(f64::from(index) / f64::from(self.load.rate));
            tokio::time::sleep_until(due.into()).await;
            let (phone, under_way, ended) =
                (Arc::clone(&phone), Arc::clone(&playing), ended.clone());
            let trunk = Arc::clone(&trunks[index as usize % trunks.len()]);
            let order = order(index, plan.clone());
            tokio::spawn(async move {
                under_way.fetch_add(1, Ordering::Relaxed);
                let (events, happened) = unbounded_channel();
                let never = CancellationToken::new();
                let calling = async {
                    let placed = phone.call(&trunk, &order, &events, &never).await;
                    drop(events);
                    placed
                };
                let (placed, ()) = tokio::join!(calling, allow(happened));
                under_way.fetch_sub(1, Ordering::Relaxed);
                let _ = ended.send(placed);
            });
            if index % 200 == 0 {
                note_peak(&mut report, &playing)?;
            }
        }
        report.placing_seconds = began.elapsed().as_secs_f64();
        drop(ended);
        report.placed = u64::from(limit);
        while let Some(placed) = endings.recv().await {
            let facts = placed.media();
            if endings.len() % 200 == 0 {
                note_peak(&mut report, &playing)?;
            }
            match placed.ending {
                Ending::Talked { .. } => report.talked += 1,
                Ending::Failed(failure) if report.failed.len() < 5 => {
                    report.failed.push(failure.to_string());
                }
                Ending::Failed(_) => {}
            }
            report.packets += u64::from(facts.packets_sent);
            report.late += u64::from(facts.packets_late);
            report
                .worst_micros
                .push(u32::try_from(facts.worst_lateness.as_micros()).unwrap_or(u32::MAX));
        }
        report.cpu_seconds = cpu_seconds() - cpu;
        report.worst_micros.sort_unstable();
        Ok(report)
    }
}

/// Nothing is recorded here: every INVITE may leave.
async fn allow(mut happened: UnboundedReceiver<CallEvent>) {
    while let Some(event) = happened.recv().await {
        if let CallEvent::Ready(_, leave) = event {
            leave.grant(Leave::always());
        }
    }
}

fn order(index: u32, plan: Vec<PlaybackItem>) -> CallRequest {
    CallRequest {
        menu: None,
        redirect_guard: None,
        machine: None,
        number: "100".to_owned(),
        caller: "200".to_owned(),
        call_id: format!("bench-{index}-{:08x}", std::process::id()),
        opening: Vec::new(),
        plan,
        ring_time: Duration::from_secs(30),
        talk_time: Duration::from_secs(120),
    }
}

/// Memory when the most calls are under way.
fn note_peak(report: &mut EngineReport, under_way: &AtomicU64) -> anyhow::Result<()> {
    let calls = under_way.load(Ordering::Relaxed);
    if calls > report.peak_calls {
        report.peak_calls = calls;
        report.peak_bytes = Usage::of_this_process()?.bytes;
    }
    Ok(())
}

fn cpu_seconds() -> f64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds of a run")]
    let seconds = clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9;
    seconds
}

/// Every call has sockets of its own.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}
