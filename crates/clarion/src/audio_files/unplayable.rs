//! Why a file is not taken, for operators: what the crate `sound` says of it, in Chinese too.

use sound::archive::ArchiveError;
use sound::wav::AudioError;

use crate::domain::wording::Wording;

/// A WAV file of this name cannot be played.
pub fn of_file(name: &str, error: &AudioError) -> Wording {
    let chinese = match error {
        AudioError::Empty => "文件为空".to_owned(),
        AudioError::TooLarge { bytes, limit } => {
            format!("文件有 {bytes} 个字节，上限为 {limit}")
        }
        AudioError::NotWav { .. } => "不是 WAV 文件".to_owned(),
        AudioError::NoFormat => "WAV 文件的数据之前没有完整的 fmt 块".to_owned(),
        AudioError::Encoding { tag, .. } => {
            format!("不支持的编码（{tag:#06x}），应为 PCM、浮点、A 律或 µ 律")
        }
        AudioError::Bits { bits } => {
            format!(
                "不支持 {bits} 位采样：PCM 为 8 到 32 位，浮点为 32 或 64 位，A 律和 µ 律为 8 位"
            )
        }
        AudioError::Channels { channels, limit } => {
            format!("有 {channels} 个声道，应为 1 到 {limit} 个")
        }
        AudioError::Rate { rate, least, limit } => {
            format!("采样率为 {rate} Hz，应为 {least} 到 {limit} Hz")
        }
        AudioError::NoData => "WAV 文件没有 data 块".to_owned(),
        AudioError::NoSamples => "data 块中没有完整的采样".to_owned(),
        AudioError::TooLong { seconds, limit } => {
            format!("时长 {seconds} 秒，上限为 {limit} 秒")
        }
    };
    Wording::new(format!("{name}: {error}"), format!("{name}：{chinese}"))
}

/// A zip file cannot be unpacked.
pub fn of_archive(error: &ArchiveError) -> Wording {
    let chinese = match error {
        ArchiveError::Broken(_) => "zip 文件已损坏，无法读取".to_owned(),
        ArchiveError::Empty => "zip 文件为空".to_owned(),
        ArchiveError::TooMany { files, limit } => {
            format!("zip 文件含 {files} 个文件，上限为 {limit} 个")
        }
        ArchiveError::Path { name } => format!("zip 中的 {name:?} 带有路径，只能是文件名"),
        ArchiveError::NotWav { name } => format!("zip 中的 {name:?} 不是 WAV 文件（.wav）"),
        ArchiveError::Twice { name } => format!("zip 中有重名的 {name:?}"),
        ArchiveError::Encrypted { name } => format!("zip 中的 {name:?} 已加密"),
        ArchiveError::TooLarge { name, limit } => {
            format!("zip 中的 {name:?} 解压后超过 {limit} 个字节")
        }
        ArchiveError::TooLargeTogether { limit } => {
            format!("zip 文件解压后超过 {limit} 个字节")
        }
    };
    Wording::new(error.to_string(), chinese)
}
