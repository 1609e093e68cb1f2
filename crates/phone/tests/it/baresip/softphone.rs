//! A baresip with a folder of its own. It answers by itself, records what it hears, and is told by a line of JSON what to do.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};

use crate::lab::{Folder, PATIENCE, eventually};
use crate::sipp::free_address;

/// It dies with this.
pub struct Softphone {
    _child: Child,
    folder: Folder,
    control: OwnedWriteHalf,
    events: Arc<Mutex<Vec<Value>>>,
    /// For UDP and TCP.
    pub plain: SocketAddr,
    pub tls: SocketAddr,
}

impl Softphone {
    /// `certificate` holds a certificate and its key; `account` are further parameters of the account.
    pub async fn start(certificate: &[u8], account: &str) -> Self {
        let folder = Folder::new();
        let (plain, tls) = neighbours();
        let control = free_address();
        let path = folder.path();
        let write = |name: &str, bytes: &[u8]| std::fs::write(path.join(name), bytes).unwrap();
        let config = format!(
            "sip_listen {plain}\nsip_certificate {0}/certificate\nnet_interface 127.0.0.1\nrtp_ports 40000-49998\n\
             audio_source aufile,{0}/silence.wav\naudio_player aubridge,nowhere\nsnd_path {0}\n\
             module_path /usr/lib/baresip/modules\nmodule g711.so\nmodule sndfile.so\nmodule aufile.so\nmodule aubridge.so\n\
             module srtp.so\nmodule account.so\nmodule ctrl_tcp.so\nmodule_app menu.so\nctrl_tcp_listen {control}\n",
            path.display()
        );
        write("config", config.as_bytes());
        write("certificate", certificate);
        write("contacts", b"");
        write("silence.wav", &wav(&vec![0; 80_000]));
        let account = format!("<sip:13800000000@{plain}>;regint=0;answermode=auto{account}\n");
        write("accounts", account.as_bytes());
        let log = std::fs::File::create(path.join("log")).unwrap();
        let child = Command::new("baresip")
            .arg("-f")
            .arg(path)
            .current_dir(path)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("baresip must be installed: it is in the Debian package baresip-core");
        let (reading, writing) = connect(control, &folder).await.into_split();
        let events = Arc::default();
        tokio::spawn(remember(reading, Arc::clone(&events)));
        Self {
            _child: child,
            folder,
            control: writing,
            events,
            plain,
            tls,
        }
    }

    pub async fn command(&mut self, command: &str, params: &str) {
        let text = json!({"command": command, "params": params, "token": "test"}).to_string();
        let line = format!("{}:{text},", text.len());
        self.control.write_all(line.as_bytes()).await.unwrap();
    }

    /// What happened, in its words, with what was said about it.
    pub fn happened(&self, what: &str) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter(|event| event["type"] == what)
            .map(|event| event["param"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub async fn wait_for(&self, what: &str) {
        eventually(what, || !self.happened(what).is_empty()).await;
    }

    /// What it heard, once it has written that down.
    pub async fn heard(&self) -> Vec<i16> {
        self.wait_for("CALL_CLOSED").await;
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let recording = files
            .map(|file| file.unwrap().path())
            .find(|path| path.to_string_lossy().ends_with("-dec.wav"))
            .unwrap_or_else(|| panic!("no recording: {}", self.log()));
        samples(&std::fs::read(recording).unwrap())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// baresip speaks TLS on the port after the one that it is told.
fn neighbours() -> (SocketAddr, SocketAddr) {
    loop {
        let (first, second) = (free_address(), free_address());
        if first.port() + 1 == second.port() {
            return (first, second);
        }
    }
}

async fn connect(control: SocketAddr, folder: &Folder) -> TcpStream {
    let deadline = tokio::time::Instant::now() + PATIENCE / 3;
    loop {
        if let Ok(stream) = TcpStream::connect(control).await {
            return stream;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "baresip does not come up: {}",
            std::fs::read_to_string(folder.path().join("log")).unwrap_or_default()
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Events come as netstrings: length, colon, JSON, comma.
async fn remember(mut stream: OwnedReadHalf, events: Arc<Mutex<Vec<Value>>>) {
    let mut waiting = Vec::new();
    while stream
        .read_buf(&mut waiting)
        .await
        .is_ok_and(|read| read > 0)
    {
        while let Some(colon) = waiting.iter().position(|byte| *byte == b':') {
            let length: usize = std::str::from_utf8(&waiting[..colon])
                .unwrap()
                .parse()
                .unwrap();
            let end = colon + 1 + length;
            if waiting.len() <= end {
                break;
            }
            let event = serde_json::from_slice(&waiting[colon + 1..end]).unwrap();
            events.lock().unwrap().push(event);
            waiting.drain(..=end);
        }
    }
}

/// A WAV file of 8 kHz, 16 bit, one channel.
fn wav(samples: &[i16]) -> Vec<u8> {
    let bytes = u32::try_from(samples.len() * 2).unwrap();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(8000u32.to_le_bytes());
    file.extend(16_000u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(bytes.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

fn samples(wav: &[u8]) -> Vec<i16> {
    let data = wav.windows(4).position(|word| word == b"data").unwrap() + 8;
    wav[data..]
        .chunks_exact(2)
        .map(|bytes| i16::from_le_bytes([bytes[0], bytes[1]]))
        .collect()
}
