//! Checks that the voice speaks, with a Chinese and an English text, made as for a call.

use std::sync::Arc;
use std::time::Duration;

use natural::Installation;
use sound::speech::{Speaker, SpeechError, Spoken};
use sound::{RATE, Utterance, VoiceChoice, VoiceOptions};

use super::finding::{CheckSubject, Finding};
use crate::audio_files::voices;
use crate::config::Config;
use crate::domain::wording::{Wording, wording};

const SUBJECT: CheckSubject = CheckSubject::Speech;
const CHINESE: &str = "您好，这是一次测试。";
const ENGLISH: &str = "Hello, this is a test.";
/// No sentence is shorter than this.
const SHORTEST: Duration = Duration::from_millis(500);
const QUIETEST: f32 = 0.01;

/// Every voice by itself, and the embedded one: a fallback must not hide that a voice is mute.
pub async fn check(config: &Config) -> Vec<Finding> {
    let speaker = match voices::speaker(config) {
        Ok(speaker) => speaker,
        Err(error) => {
            return vec![Finding::problem(
                SUBJECT,
                wording!("cannot be set up", "无法初始化").because(format!("{error:#}")),
                wording!(
                    "see the settings of [speech] and of each [[voice]]",
                    "检查 [speech] 和各个 [[voice]] 的配置"
                ),
            )];
        }
    };
    let tried = tokio::task::spawn_blocking(move || {
        let mut tried = Vec::new();
        for name in speaker.names() {
            for text in [CHINESE, ENGLISH] {
                tried.extend(try_voice(&speaker, &name, text));
            }
        }
        tried
    });
    let Ok(tried) = tried.await else {
        return vec![Finding::problem(
            SUBJECT,
            wording!("speaking ended in a panic", "合成时程序异常（panic）"),
            wording!(
                "this is a mistake of ours: report it",
                "这是 Clarion 自身的缺陷，请反馈"
            ),
        )];
    };
    let program = &config.speech.program;
    let tried = tried.iter().map(|tried| tried.judge(program));
    natural(config).into_iter().chain(tried).collect()
}

/// Whether the natural voice is there, if somebody wants it or has installed it.
fn natural(config: &Config) -> Option<Finding> {
    let folder = &config.speech.natural_folder;
    match Installation::find(folder) {
        Ok(installation) => {
            let version = installation.version();
            let found = wording!(
                "the natural voice is installed: {version}",
                "已安装自然发音人：{version}"
            );
            Some(Finding::ok(SUBJECT, found))
        }
        Err(error) if config.voices.names_natural() => Some(Finding::warning(
            SUBJECT,
            wording!("the natural voice", "自然发音人未安装好").because(error),
            wording!(
                "other voices stand in until then",
                "在此之前由其他发音人代替"
            ),
        )),
        Err(_) => None,
    }
}

/// A voice that has spoken a language, or has not.
struct TriedVoice {
    name: Arc<str>,
    language: Wording,
    spoken: Result<Spoken, SpeechError>,
}

/// Nothing where the voice does not speak the language.
fn try_voice(speaker: &Speaker, name: &Arc<str>, text: &str) -> Option<TriedVoice> {
    let choice = VoiceChoice {
        name: Some(name.to_string()),
        is_private: false,
    };
    let speech = Utterance {
        text: text.to_owned(),
        options: VoiceOptions::default(),
    };
    (speaker.first_voice(text, &choice) == *name).then(|| TriedVoice {
        name: Arc::clone(name),
        language: if text == CHINESE {
            wording!("Chinese", "中文")
        } else {
            wording!("English", "英文")
        },
        spoken: speaker.speak(&speech, &choice),
    })
}

impl TriedVoice {
    fn judge(&self, program: &str) -> Finding {
        let (name, language) = (&self.name, &self.language);
        let spoken = match &self.spoken {
            Ok(spoken) => spoken,
            Err(mute) => {
                return Finding::problem(
                    SUBJECT,
                    wording!("no {language}", "无法合成{language}"; language).because(mute),
                    wording!(
                        "install it (apt-get install espeak-ng), or correct [speech]; `{program}` is what is started",
                        "请安装（apt-get install espeak-ng），或修正 [speech]；启动的程序是 `{program}`"
                    ),
                );
            }
        };
        if spoken.is_fallback {
            let instead = &spoken.voice;
            return Finding::warning(
                SUBJECT,
                wording!(
                    "the voice {name} does not speak {language}; {instead} stands in",
                    "发音人 {name} 未能合成{language}，由 {instead} 代替"; language
                ),
                wording!(
                    "the log says why; see the settings of that [[voice]]",
                    "原因见日志；请检查该 [[voice]] 的配置"
                ),
            );
        }
        let seconds = spoken.samples.len() as f64 / f64::from(RATE);
        let loudness = sound::level::active_rms(&spoken.samples);
        if seconds < SHORTEST.as_secs_f64() || loudness < QUIETEST {
            return Finding::problem(
                SUBJECT,
                wording!(
                    "the voice for {language} makes {seconds:.1} s of nearly nothing",
                    "{language}发音人合成了 {seconds:.1} 秒，但几乎没有声音"; language
                ),
                wording!(
                    "see that its voice is installed: `clarion voice preview …` lets you hear it",
                    "检查发音人是否已安装；可用 `clarion voice preview …` 试听"
                ),
            );
        }
        Finding::ok(
            SUBJECT,
            wording!(
                "{language} by {name}: {seconds:.1} s of speech",
                "{language}由 {name} 合成，时长 {seconds:.1} 秒"; language
            ),
        )
    }
}
