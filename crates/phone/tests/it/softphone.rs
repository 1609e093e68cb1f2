//! Calls to a softphone that nobody here wrote (baresip), with and without encryption: what it hears, and what it reports.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use g711::{Codec, EncodedAudio};
use phone::call::{CallRequest, MediaConfig, MediaOptions, Phone};
use phone::ending::Side;
use phone::media::engine::Encryption;
use phone::media::stream::PlaybackItem;
use phone::signalling::{Resolver, Signalling, SignallingConfig, Transport};
use phone::trunk::{SipTrunkConfig, Trunk};
use supervisor::Supervisor;

use crate::lab::{self, Story};

/// Answers at once, speaks a steady tone, and records what it hears.
struct Softphone {
    process: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Softphone {
    fn start(encryption: &str) -> Self {
        let address = own_address();
        let port = free_port(address);
        let folder = std::env::temp_dir().join(format!("softphone-{}-{port}", std::process::id()));
        fs::create_dir_all(folder.join("heard")).unwrap();
        let here = folder.display();
        let config = format!(
            "sip_listen {address}:{port}\naudio_player aubridge,nil\naudio_alert aubridge,nil\naudio_source aufile,{here}/tone.wav\n\
             ausrc_srate 8000\nauplay_srate 8000\nausrc_channels 1\nauplay_channels 1\nrtp_ports 26000-27999\n\
             snd_path {here}/heard\nmodule_path /usr/lib/baresip/modules\nmodule g711.so\nmodule aufile.so\nmodule aubridge.so\n\
             module sndfile.so\nmodule srtp.so\nmodule_app account.so\nmodule_app menu.so\n"
        );
        let account = format!(
            "<sip:callee@{address}>;regint=0;answermode=auto{encryption};audio_codecs=PCMA/8000/1\n"
        );
        fs::write(folder.join("config"), config).unwrap();
        fs::write(folder.join("tone.wav"), tone()).unwrap();
        fs::write(folder.join("accounts"), account).unwrap();
        fs::write(folder.join("contacts"), "").unwrap();
        let mut process = Command::new("baresip")
            .arg("-f")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("baresip is installed (scripts/setup)");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.any(|line| line.is_ok_and(|line| line.contains("is ready")));
        assert!(ready, "the softphone does not start");
        // It must not stop because nobody reads what it says.
        std::thread::spawn(move || lines.count());
        Self {
            process,
            folder,
            address: (address, port).into(),
        }
    }

    /// Samples of its recording of us.
    fn heard(&self) -> Vec<i16> {
        let files = fs::read_dir(self.folder.join("heard")).unwrap();
        let received = |path: &Path| path.to_string_lossy().ends_with("dec.wav");
        let mut files =
            files.filter_map(|file| Some(file.ok()?.path()).filter(|path| received(path)));
        let bytes = fs::read(files.next().expect("a recording")).unwrap();
        let samples = bytes[44..].chunks_exact(2);
        samples
            .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
            .collect()
    }
}

impl Drop for Softphone {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Twenty seconds at 8 kHz, as a WAV file of 16 bits.
fn tone() -> Vec<u8> {
    const BYTES: u32 = 20 * 8000 * 2;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + BYTES).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend([8000_u32, 16_000].map(u32::to_le_bytes).concat());
    file.extend(b"\x02\0\x10\0data");
    file.extend(BYTES.to_le_bytes());
    let sample = |index: u32| if index % 16 < 8 { 3000_i16 } else { -3000 };
    file.extend((0..BYTES / 2).flat_map(|index| sample(index).to_le_bytes()));
    file
}

fn free_port(here: IpAddr) -> u16 {
    let socket = UdpSocket::bind((here, 0)).unwrap();
    socket.local_addr().unwrap().port()
}

/// The softphone uses no loopback address for sound, so we are where it is. Nothing is sent to find that out.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let routed = socket
        .connect("192.0.2.1:9")
        .and_then(|()| socket.local_addr());
    routed.map_or(Ipv4Addr::LOCALHOST.into(), |address| address.ip())
}

async fn call(softphone: &Softphone, options: MediaOptions, plan: Vec<PlaybackItem>) -> Story {
    let here = softphone.address.ip();
    let config = SignallingConfig::new(Transport::Udp, (here, 0).into());
    let signalling = Arc::new(
        Signalling::start(&Supervisor::new(), &config, None)
            .await
            .unwrap(),
    );
    let trunk = SipTrunkConfig {
        media: options,
        ..SipTrunkConfig::new("softphone", softphone.address.into())
    };
    let trunk = Trunk::start(&Supervisor::new(), trunk, signalling, Resolver::default());
    let phone = Phone::start(&Supervisor::new(), &MediaConfig::new(here, 28_000..=29_999)).unwrap();
    let request = CallRequest {
        number: "callee".to_owned(),
        ..lab::call_request(plan)
    };
    lab::call(&phone, &trunk, request).await
}

/// Samples that are different everywhere, and that the codec keeps as they are.
fn samples(frames: i32) -> Vec<i16> {
    let sample = |index: i32| i16::try_from((index * 7919) % 30_000 - 15_000).unwrap();
    let encoded = |sample| Codec::Pcma.decode(Codec::Pcma.encode(sample));
    (0..frames * 160).map(sample).map(encoded).collect()
}

/// How many frames of what was played stand in the recording, each as it was. What comes late on a busy machine is not the softphone's to
/// keep, so that a few may be missing.
fn frames_found(heard: &[i16], played: &[i16]) -> usize {
    let frames = played.chunks_exact(160);
    let found = |frame: &&[i16]| heard.windows(160).any(|window| window == *frame);
    frames.filter(found).count()
}

async fn a_call_is_heard_and_reported(encryption: Encryption, account: &str) {
    let softphone = Softphone::start(account);
    let played = samples(100);
    let options = MediaOptions {
        encryption,
        quiet_after: Some(Duration::from_secs(1)),
        ..MediaOptions::default()
    };
    // Its first report comes after five seconds, and that is awaited.
    let plan = vec![
        PlaybackItem::Silence { frames: 25 },
        PlaybackItem::Sound(EncodedAudio::encode(&played)),
        PlaybackItem::Silence { frames: 250 },
    ];
    let story = call(&softphone, options, plan).await;
    let stats = story.stats.clone();
    assert_eq!(story.talked().1, Side::Us);
    assert_eq!(stats.encrypted, encryption == Encryption::Sdes);
    assert_eq!(
        (stats.packets_sent, stats.packets_lost),
        (375, 0),
        "{stats:?}"
    );
    assert!(stats.packets_received > 300, "{stats:?}");
    let reported = stats.reported.expect("it reports");
    assert_eq!((reported.lost, reported.fraction_lost), (0, 0));
    let round_trip = stats.round_trip.expect("its report answers ours");
    assert!(round_trip < Duration::from_secs(1), "{round_trip:?}");
    let found = frames_found(&softphone.heard(), &played);
    assert!(found >= 95, "{found} of 100 frames");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_softphone_hears_us_and_both_report() {
    a_call_is_heard_and_reported(Encryption::Off, "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_softphone_hears_us_and_both_report_where_all_is_encrypted() {
    a_call_is_heard_and_reported(Encryption::Sdes, ";mediaenc=srtp-mand").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_softphone_and_we_refuse_each_other_where_only_one_wants_encryption() {
    for (encryption, account) in [
        (Encryption::Sdes, ""),
        (Encryption::Off, ";mediaenc=srtp-mand"),
    ] {
        let softphone = Softphone::start(account);
        let options = MediaOptions {
            encryption,
            ..MediaOptions::default()
        };
        let story = call(
            &softphone,
            options,
            vec![PlaybackItem::Silence { frames: 10 }],
        )
        .await;
        story.failure();
    }
}
