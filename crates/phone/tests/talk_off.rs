//! Speech must never be heard as a key: hours of it, spoken by espeak-ng in many voices, go through G.711 to the detector of tones.
//!
//! `TALK_OFF_HOURS=40 cargo test --package phone --test talk_off -- --nocapture` (`make talk-off`) is the long form.

mod corpus;

use std::io::Write;
use std::process::{Command, Stdio};

use g711::{Codec, EncodedAudio};
use phone::media::dtmf::{self, KeyTiming};
use phone::media::tone_detector::ToneDetector;
use sound::wav::{Wav, WavLimits};
use sound::{RATE, background, level};

use crate::corpus::Random;

/// The quick run's ten minutes.
const SHORT_HOURS: f64 = 1.0 / 6.0;

const ENGLISH_VOICES: [&str; 7] = [
    "en-us",
    "en-gb",
    "en-029",
    "en-gb-scotland",
    "en-gb-x-rp",
    "en-gb-x-gbclan",
    "en-us-nyc",
];
const CHINESE_VOICES: [&str; 4] = ["cmn", "cmn-latn-pinyin", "yue", "hak"];
/// Speakers of every voice: men, women, old people, other ways to make the sound.
const SPEAKERS: [&str; 30] = [
    "", "+m1", "+m2", "+m3", "+m4", "+m5", "+m6", "+m7", "+m8", "+f1", "+f2", "+f3", "+f4", "+f5",
    "+klatt", "+klatt2", "+klatt3", "+klatt4", "+klatt5", "+klatt6", "+croak", "+Annie", "+linda",
    "+steph", "+grandma", "+aunty", "+belinda", "+Alicia", "+Andrea", "+whisper",
];
/// As if the speaker were larger or smaller: 22,050 samples a second are espeak-ng's own.
const RATES: [u32; 6] = [18_000, 20_000, 22_050, 22_050, 24_000, 27_000];

const ENGLISH: &str = "hello this is an announcement your order has been shipped and will arrive today the code is \
    valid for five minutes please do not tell it to anybody we are calling about your appointment with the doctor \
    on thursday afternoon at quarter past three if you cannot come please let us know in time thank you for your \
    patience the water supply of your street will be interrupted tomorrow between eight and noon because of urgent \
    repair work all trains to the north are delayed by about forty minutes who is there I cannot hear you could you \
    say that again yes no maybe of course what do you want just a moment somebody is at the door mother look father \
    comes home good morning good night alarm temperature of the server room is above thirty degrees pump number two \
    has stopped pressure low check the valve now over and over again I know we were away all year long oh really \
    how are you doing far away a warm car park or more heart start hour power flower our own old gold boat note \
    money many any men man pan fan van thin think this these those chair share measure pleasure joy boy noise voice";
const CHINESE: &str = "您好这里是通知中心的订单已经发货预计今天送达请注意查收验证码五分钟内有效不要告诉任何人我们打电话提醒明天\
    下午三点一刻有医生预约如果能来请提前联系谢谢您的耐心等待小区用水将于上午八点到中午停止供应因为紧急维修开往北京上海\
    列车晚点约四十分钟谁在那儿我听不见你说什么再一遍可以好的没问题马上就来早上好晚安报警机房温度超过三十度二号水泵压力低\
    检查阀门妈妈爸爸回家吃饭花园大楼银行余额学校老师学生孩子朋友高兴春夏秋冬东南西北红黄蓝绿零六七九百千万元月日星期年";

fn english(random: &mut Random) -> String {
    let words: Vec<&str> = ENGLISH.split_whitespace().collect();
    let mut text = String::new();
    for _ in 0..150 {
        match random.below(16) {
            0 => text += &random.below(1_000_000).to_string(),
            1 => text += ".",
            _ => text += random.of(&words),
        }
        text += " ";
    }
    text
}

fn chinese(random: &mut Random) -> String {
    let characters: Vec<char> = CHINESE.chars().filter(|sign| *sign != ' ').collect();
    let sign = |random: &mut Random| match random.below(24) {
        0 => '。',
        1 | 2 => '，',
        _ => random.of(&characters),
    };
    (0..200).map(|_| sign(random)).collect()
}

/// Somebody says something: samples for the line, full scale being 1.
fn speech(random: &mut Random) -> Vec<f32> {
    let (voice, text) = if random.below(2) == 0 {
        (random.of(&ENGLISH_VOICES), english(random))
    } else {
        (random.of(&CHINESE_VOICES), chinese(random))
    };
    let voice = format!("{voice}{}", random.of(&SPEAKERS));
    let speed = (110 + random.below(180)).to_string();
    let pitch = random.below(100).to_string();
    let mut program = Command::new("espeak-ng")
        .args(["-v", &voice, "-s", &speed, "-p", &pitch])
        .args(["-b", "1", "--stdin", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("espeak-ng is installed: scripts/setup");
    let mut input = program.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let mut wav = program.wait_with_output().unwrap().stdout;
    wav[24..28].copy_from_slice(&random.of(&RATES).to_le_bytes());
    let limits = WavLimits {
        bytes: usize::MAX,
        seconds: 3600,
    };
    let mut samples = Wav::read(&wav, &limits).unwrap().for_the_line();
    let loudness = level::active_rms(&samples);
    level::scale(&mut samples, 1.0 / loudness.max(1e-3));
    samples
}

/// What a callee's line carries: a voice, now and then with music behind it or with an echo of itself, as an announcement comes back from
/// a line; loud or soft.
fn sound_of_a_line(random: &mut Random) -> Vec<i16> {
    let mut samples = speech(random);
    if random.below(4) == 0 {
        let number = u8::try_from(1 + random.below(background::NAMES.len())).unwrap();
        let music = background::sound(number).unwrap().iter().cycle();
        for (sample, music) in samples.iter_mut().zip(music) {
            *sample += music * 0.3;
        }
    }
    if random.below(4) == 0 {
        let delay = 100 + random.below(3000);
        for place in (delay..samples.len()).rev() {
            samples[place] += samples[place - delay] * 0.4;
        }
    }
    let decibels = -38.0 + random.below(26) as f32;
    level::scale(&mut samples, level::from_db(decibels));
    on_the_line(&samples)
}

#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn on_the_line(samples: &[f32]) -> Vec<i16> {
    let samples: Vec<i16> = (samples.iter())
        .map(|sample| (sample * 32_768.0) as i16)
        .collect();
    EncodedAudio::encode(&samples).decode()
}

fn heard(samples: &[i16]) -> String {
    let mut detector = ToneDetector::default();
    let heard = samples.iter();
    heard.filter_map(|sample| detector.hear(*sample)).collect()
}

/// `TALK_OFF_HOURS` asks for more speech.
#[test]
fn no_speech_is_heard_as_a_key() {
    let hours = std::env::var("TALK_OFF_HOURS").ok();
    let hours = hours.and_then(|hours| hours.parse().ok());
    let hours: f64 = hours.unwrap_or(SHORT_HOURS);
    let mut random = Random(4733);
    let (mut seconds, mut keys) = (0.0, String::new());
    while seconds < hours * 3600.0 {
        let samples = sound_of_a_line(&mut random);
        seconds += samples.len() as f64 / f64::from(RATE);
        let heard = heard(&samples);
        if !heard.is_empty() {
            println!("{heard} after {seconds:.0} s");
        }
        keys += &heard;
    }
    println!(
        "{:.2} hours of speech, {} keys",
        seconds / 3600.0,
        keys.len()
    );
    assert_eq!(keys, "");
}

/// The echo of an announcement is 25 dB below the tones of a telephone, or less.
#[test]
fn keys_are_heard_while_an_announcement_echoes() {
    let mut random = Random(2833);
    for _ in 0..8 {
        let mut samples = speech(&mut random);
        level::scale(&mut samples, level::from_db(-41.0));
        let mut pressed = String::new();
        for place in (800..samples.len().saturating_sub(2000)).step_by(3000) {
            let event = u8::try_from(random.below(16)).unwrap();
            pressed.push(dtmf::key_of(event).unwrap());
            let tone = dtmf::tone(event, Codec::Pcma, KeyTiming::default());
            for (sample, byte) in samples[place..].iter_mut().zip(tone) {
                *sample += f32::from(Codec::Pcma.decode(byte)) / 32_768.0;
            }
        }
        assert!(pressed.len() > 20, "{pressed}");
        assert_eq!(heard(&on_the_line(&samples)), pressed);
    }
}
