//! Who is called, and who counts what is heard. SIPp answers, so that the other side is nobody's of ours.

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, ensure};

const ANSWER: &str = include_str!("../../sipp/answer.xml");
const CALL: &str = include_str!("../../sipp/call.xml");

/// How long SIPp may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A free port: SIPp wants to be told one.
fn free_port() -> anyhow::Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn scenario(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    std::fs::File::create(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}

fn sipp(folder: &Path, scenario: &Path, port: u16) -> Command {
    let mut command = Command::new("sipp");
    command
        .current_dir(folder)
        .arg("-sf")
        .arg(scenario)
        .args(["-i", "127.0.0.1", "-nostdin", "-nd", "-p"])
        .arg(port.to_string())
        .args(["-buff_size", "4194304"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// SIPp, answering until it is dropped.
#[derive(Debug)]
pub struct Callee {
    child: Child,
    pub address: SocketAddr,
}

impl Callee {
    pub fn start(folder: &Path, sink: SocketAddr) -> anyhow::Result<Self> {
        let path = scenario(folder, "answer.xml", ANSWER)?;
        let port = free_port()?;
        let child = sipp(folder, &path, port)
            .args(["-key", "sink_port"])
            .arg(sink.port().to_string())
            .spawn()
            .context("cannot start sipp: the Debian package sip-tester has it")?;
        let mut callee = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        callee.wait_until_it_listens()?;
        Ok(callee)
    }

    /// On a busy machine that takes a while, and a call that comes earlier is refused by the kernel.
    fn wait_until_it_listens(&mut self) -> anyhow::Result<()> {
        let local = format!(" 0100007F:{:04X} ", self.address.port());
        let began = std::time::Instant::now();
        while !std::fs::read_to_string("/proc/net/udp")?.contains(&local) {
            ensure!(self.child.try_wait()?.is_none(), "sipp has ended");
            ensure!(began.elapsed() < PATIENCE, "sipp does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Callee {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// SIPp as the caller: true if it placed all calls at this rate and none failed.
pub fn call_by_sipp(
    folder: &Path,
    callee: SocketAddr,
    rate: u32,
    seconds: u32,
) -> anyhow::Result<bool> {
    let path = scenario(folder, "call.xml", CALL)?;
    let began = std::time::Instant::now();
    let status = sipp(folder, &path, free_port()?)
        .arg(callee.to_string())
        .args(["-r", &rate.to_string(), "-m", &(rate * seconds).to_string()])
        .args(["-l", "100000", "-timeout", &(seconds * 2 + 10).to_string()])
        .status()
        .context("cannot start sipp")?;
    // It falls behind silently: a rate that took longer than it should was not held.
    let in_time = began.elapsed() < Duration::from_secs(u64::from(seconds) + 3);
    Ok(status.success() && in_time)
}

/// Counts packets of sound, on a thread of its own.
#[derive(Debug)]
pub struct Sink {
    pub address: SocketAddr,
    packets: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    pub fn start() -> anyhow::Result<Self> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
        // Nobody may lose packets here: then the count would say nothing about the sender.
        socket.set_recv_buffer_size(32 << 20)?;
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
        let socket: UdpSocket = socket.into();
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let address = socket.local_addr()?;
        let (packets, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (count, over) = (Arc::clone(&packets), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !over.load(Ordering::Relaxed) {
                if socket.recv(&mut buffer).is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Self {
            address,
            packets,
            stop,
            thread: Some(thread),
        })
    }

    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Packets a second that one thread can send here, one call each: the most that one core could play, at fifty a call and second.
    pub fn raw_rate(&self, time: Duration) -> anyhow::Result<f64> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(self.address)?;
        let packet = [0u8; 172];
        let (began, mut sent) = (std::time::Instant::now(), 0u64);
        while began.elapsed() < time {
            for _ in 0..64 {
                sent += u64::from(socket.send(&packet).is_ok());
            }
        }
        ensure!(sent > 0, "nothing could be sent over loopback");
        #[expect(clippy::cast_precision_loss, reason = "a few million")]
        let rate = sent as f64 / began.elapsed().as_secs_f64();
        Ok(rate)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
