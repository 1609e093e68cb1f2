//! What a check finds, with a remedy, in both languages.

use serde_json::{Value, json};

use crate::domain::wording::{Wording, wording};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    Ok,
    /// It works, but the operator should know.
    Warning,
    /// It will not work.
    Problem,
}

impl FindingLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            FindingLevel::Ok => "ok",
            FindingLevel::Warning => "warning",
            FindingLevel::Problem => "problem",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            FindingLevel::Ok => "\x1b[32m",
            FindingLevel::Warning => "\x1b[33m",
            FindingLevel::Problem => "\x1b[31m",
        }
    }
}

/// What a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckSubject {
    Accounts,
    AudioFiles,
    Bills,
    Callbacks,
    Callees,
    Certificate,
    Clock,
    Configuration,
    Database,
    Dialling,
    Disk,
    Emergency,
    Http,
    Metrics,
    OpenFiles,
    Privacy,
    Server,
    SoundAddress,
    SoundPorts,
    Speech,
    TimeZone,
    /// The one of this name.
    Trunk(String),
}

impl CheckSubject {
    pub fn wording(&self) -> Wording {
        match self {
            Self::Accounts => wording!("accounts", "账户"),
            Self::AudioFiles => wording!("audio files", "语音文件"),
            Self::Bills => wording!("bills", "话单"),
            Self::Callbacks => wording!("callbacks", "回调"),
            Self::Callees => wording!("callees", "被叫频次"),
            Self::Certificate => wording!("certificate", "证书"),
            Self::Clock => wording!("clock", "系统时间"),
            Self::Configuration => wording!("configuration", "配置"),
            Self::Database => wording!("database", "数据库"),
            Self::Dialling => wording!("dialling", "外呼"),
            Self::Disk => wording!("disk", "磁盘"),
            Self::Emergency => wording!("emergency", "紧急号码"),
            Self::Http => wording!("http", "HTTP 服务"),
            Self::Metrics => wording!("metrics", "监控指标"),
            Self::OpenFiles => wording!("open files", "文件描述符"),
            Self::Privacy => wording!("privacy", "文件权限"),
            Self::Server => wording!("server", "服务进程"),
            Self::SoundAddress => wording!("sound address", "媒体地址"),
            Self::SoundPorts => wording!("sound ports", "媒体端口"),
            Self::Speech => wording!("speech", "语音合成"),
            Self::TimeZone => wording!("time zone", "时区"),
            Self::Trunk(name) => wording!("trunk {name}", "中继 {name}"),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Finding {
    pub subject: CheckSubject,
    pub level: FindingLevel,
    pub found: Wording,
    /// How to mend it.
    pub remedy: Option<Wording>,
}

impl Finding {
    pub fn ok(subject: CheckSubject, found: Wording) -> Self {
        Self {
            subject,
            level: FindingLevel::Ok,
            found,
            remedy: None,
        }
    }

    pub fn warning(subject: CheckSubject, found: Wording, remedy: Wording) -> Self {
        Self {
            level: FindingLevel::Warning,
            remedy: Some(remedy),
            ..Self::ok(subject, found)
        }
    }

    pub fn problem(subject: CheckSubject, found: Wording, remedy: Wording) -> Self {
        Self {
            level: FindingLevel::Problem,
            ..Self::warning(subject, found, remedy)
        }
    }

    /// Writes a finding on one line, in English, even if a library's message has several.
    pub fn line(&self, colours: bool) -> String {
        let (on, off) = if colours {
            (self.level.colour(), "\x1b[0m")
        } else {
            ("", "")
        };
        let remedy = self.remedy.as_ref();
        let remedy = remedy.map_or(String::new(), |remedy| format!(" → {remedy}"));
        let text = format!("{}{remedy}", self.found);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(
            "{on}{:<8}{off} {:<14} {text}",
            self.level.as_str(),
            self.subject.wording().english()
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "check": self.subject.wording().english(),
            "level": self.level.as_str(),
            "found": self.found.to_string(),
            "remedy": self.remedy.as_ref().map(ToString::to_string),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_its_remedy() {
        let finding = Finding::problem(
            CheckSubject::Disk,
            wording!("slow", "写入慢").because("\n 40 ms"),
            wording!("buy another", "更换磁盘"),
        );
        assert_eq!(
            finding.line(false),
            "problem  disk           slow: 40 ms → buy another"
        );
        assert_eq!(
            Finding::ok(CheckSubject::Disk, wording!("quick", "写入快")).line(true),
            "\x1b[32mok      \x1b[0m disk           quick"
        );
    }
}
