//! What the settings of the file mean, in Chinese. In English the comments of `config.default.toml` say it; a test holds both together.

use super::language::PageLanguage;
use crate::config::ShownSetting;

macro_rules! meanings {
    ($($path:literal: $chinese:literal;)+) => {
        const MEANINGS: &[(&str, &str)] = &[$(($path, $chinese)),+];
    };
}

/// What a setting means, in the language of the page. Those of a trunk or a voice are explained in the documents.
pub fn meaning(setting: &ShownSetting, language: PageLanguage) -> &str {
    let chinese = match language {
        PageLanguage::English => None,
        PageLanguage::Chinese => chinese(&setting.path()),
    };
    chinese.unwrap_or(&setting.meaning)
}

fn chinese(path: &str) -> Option<&'static str> {
    let found = MEANINGS.iter().find(|(known, _)| *known == path);
    found.map(|(_, meaning)| *meaning)
}

meanings! {
    "data_dir": "全部数据所在的目录：内嵌数据库、证书、语音文件、话单。";
    "min_free_mb": "数据库所在磁盘的剩余空间低于该值（单位 MB，1 MB 为 1048576 字节）时，服务变为未就绪（/readyz），不再受理呼叫（190014），剩余空间留给已受理的呼叫。语音文件所在磁盘的剩余空间低于该值的两倍时，不再接收语音文件，也不再缓存合成的语音。0 表示不检查。";
    "database": "数据库：\"sqlite:FILE\"；多节点使用 \"postgres://user:password@host/name\"（TLS 与多主机见 docs/operating.md）。留空则使用 data_dir 下的 SQLite 文件 clarion.db。";
    "time_zone": "平台时区，填 IANA 名称，例如 \"Asia/Shanghai\"。应答中的时间和话单日期以它为准。留空使用系统时区。";

    "http.listen": "监听地址。该接口的客户端一般配置 8883 端口。";
    "http.plain": "以明文 HTTP 代替 HTTPS。只应放在终结 TLS 的反向代理之后：该接口的客户端大多只支持 https。";
    "http.certificate": "自有证书链（PEM）。与 private_key 均留空时，首次启动会在 data_dir/tls 中生成私有 CA 和证书。";
    "http.private_key": "自有证书的私钥（PEM）。与 certificate 均留空时，首次启动会自动生成。";
    "http.host_names": "Clarion 自签证书中的域名和地址，填写客户端访问本服务所用的名称。";
    "http.trusted_proxies": "可信反向代理的地址或网段，只采信它们发来的 X-Forwarded-For；其他来源的该请求头一律忽略。";
    "http.soft_versions": "支持的接口版本，即请求路径的第一段。";
    "http.public_url": "客户端看到的服务地址，例如 \"https://voice.example.com:8883\"，话单下载地址以它开头。留空则取请求中的主机名。";
    "http.metrics_networks": "允许读取 /metrics 的网段。在 max_connections 之外，为这些网段另留 4 个连接。";
    "http.max_connections": "连接数上限。占满后，3 秒内没有发出过鉴权请求的最早连接让位给新连接；没有可让位的，新连接等待。";
    "http.max_connections_of_address": "单个地址的连接数上限（IPv6 按 /64 网段计，可信反向代理除外）。0 表示 max_connections 的一半。占满后没有可让位的连接时，该地址的新连接直接关闭。";
    "http.head_seconds": "客户端须在该秒数内发完请求头。连接空闲、或客户端不读取应答达到该时长，也会被关闭。";
    "http.body_seconds": "客户端须在该秒数内发完请求体；下载排队等待名额也以此为限。";
    "http.stop_seconds": "服务停止时，等待未完成请求的秒数。";
    "http.max_headers": "请求头的行数上限。";
    "http.max_header_bytes": "请求头的总字节数上限。";
    "http.max_body_bytes": "请求体的字节数上限。";
    "http.max_alert_bytes": "告警接入的请求体字节数上限：监控系统可能一次推送多条。超过 64 KiB 的告警最多同时接收八个，每个账户两个；推送速度的要求与上传相同（audio_files.upload_grace_seconds 和 min_upload_bytes_per_second）。";

    "console.listen": "控制台的监听地址，供操作员用浏览器访问。留空则不启用控制台。执行 `clarion operator add` 添加操作员之前，控制台不显示任何数据。证书、请求的时限和大小均沿用 [http]。";
    "console.plain": "以明文 HTTP 代替 HTTPS，只能用于环回地址：由本机反向代理终结 TLS，或用于试用。";
    "console.idle_minutes": "操作员无操作达到该分钟数后须重新登录。";
    "console.longest_minutes": "操作员自登录起达到该分钟数后须重新登录。";
    "console.failures_of_name": "同一地址对同一用户名输错密码达到该次数后拒绝登录；所有地址合计为其十倍。";
    "console.failures_of_address": "同一地址输错密码（不论用户名）达到该次数后拒绝登录。";
    "console.lock_seconds": "输错密码次数过多后，拒绝登录的秒数。";

    "limits.requests_per_second": "未单独设置限额的账户：每秒请求数（按节点计）。";
    "limits.requests_at_once": "未单独设置限额的账户：并发请求数（按节点计）。";

    "calls.max_files": "一个 mediaName 中语音文件的数量上限。";
    "calls.max_text_characters": "mediaTxt 的字符数上限。";
    "calls.max_user_data_bytes": "userData 的字节数上限。";
    "calls.max_talk_seconds": "最长通话秒数，无论请求的 maxCallTime 是多少。";
    "calls.expire_seconds": "呼叫在队列中等待的最长秒数；超过则按排队超时结束，并上报失败。";
    "calls.code_expire_seconds": "语音验证码（VoiceVerify）的呼叫在队列中等待的最长秒数：验证码过时即无意义。";
    "calls.code_introduction_zh": "语音验证码之前的中文开场白；请求指定了语音文件（welcomePrompt）时不用。留空则不播报。";
    "calls.code_introduction_en": "语音验证码之前的英文开场白；请求指定了语音文件（welcomePrompt）时不用。留空则不播报。";
    "calls.language": "按键提示语的语言。播报文本时与文本一致，没有文本时用该语言。";
    "calls.key_confirm_zh": "请求设置了确认键时，播放内容之后的中文提示语，{key} 处为按键。留空则不播报；各提示语全部留空时以提示音代替。";
    "calls.key_confirm_en": "请求设置了确认键时，播放内容之后的英文提示语，{key} 处为按键。留空则不播报；各提示语全部留空时以提示音代替。";
    "calls.key_replay_zh": "请求设置了重听键时的中文提示语，{key} 处为按键。留空则不播报。";
    "calls.key_replay_en": "请求设置了重听键时的英文提示语，{key} 处为按键。留空则不播报。";
    "calls.key_stop_zh": "请求设置了退订键时的中文提示语，{key} 处为按键。留空则不播报。";
    "calls.key_stop_en": "请求设置了退订键时的英文提示语，{key} 处为按键。留空则不播报。";
    "calls.key_thanks_zh": "被叫确认之后的中文答谢语。留空则不播报。";
    "calls.key_thanks_en": "被叫确认之后的英文答谢语。留空则不播报。";
    "calls.key_silence_zh": "告警呼叫中静默键的中文提示语（接入点设置了静默键时），{key} 处为按键，{minutes} 处为静默分钟数。不能留空。";
    "calls.key_silence_en": "告警呼叫中静默键的英文提示语（接入点设置了静默键时），{key} 处为按键，{minutes} 处为静默分钟数。不能留空。";
    "calls.retention_days": "已结束的呼叫及其呼叫腿、回调和发送记录的保留天数。0 表示永久保留。话单另有保留期（[bills]）。";

    "callbacks.concurrency": "同时发送的回调数上限，所有账户合计。各账户轮流发送。";
    "callbacks.per_account": "单个账户同时发送的回调数上限。";
    "callbacks.per_host": "单个账户同时发往同一接收方（主机名加端口）的回调数上限。接收方无应答时，恢复之前一次只发一个。";
    "callbacks.per_address": "单个账户同时发往同一解析地址的回调数上限。同一地址上所有无应答的接收方共用一个名额。";
    "callbacks.time_limit_seconds": "一次发送的时限（秒），从域名解析到读完应答为止。";
    "callbacks.retry_seconds": "发送失败后到下一次重试的间隔（秒），可用小数。最后一次重试仍失败则放弃该回调。";
    "callbacks.jitter": "每次等待随机延长，最多延长该比例，避免接收方恢复时一次收到全部回调。";
    "callbacks.max_retry_after_seconds": "接收方可用 Retry-After（状态码 429 或 503）要求的最长等待秒数。";
    "callbacks.allowed_networks": "允许接收回调的非公网网段，例如 \"10.1.2.0/24\"。未列出的私有、环回、链路本地等特殊地址一律拒绝。";
    "callbacks.ca_file": "PEM 文件：校验接收方证书时，在公共 CA 之外另行信任的 CA。";
    "callbacks.user_agent": "接收方看到的 User-Agent 请求头。";
    "callbacks.lease_seconds": "节点失联后，其他节点接管其回调的秒数（PostgreSQL）。至少比 time_limit_seconds 大 2。";
    "callbacks.poll_seconds": "查找外部回调的间隔秒数：来自其他节点的，或用命令行重发的。";
    "callbacks.stop_seconds": "服务停止时，等待发送中的回调完成的秒数。";

    "numbers.country_code": "平台所在国家的国家码。";
    "numbers.international_prefix": "当地拨打国际号码所加的前缀。";
    "numbers.trunk_prefix": "当地拨打长途号码所加的前缀。";
    "numbers.area_codes": "本国的区号；固话由区号加本地号码组成。X 为任意数字，Z 为 1 到 9，N 为 2 到 9，[3-9] 为其中之一。area_codes、local_numbers、national_numbers、service_numbers 均留空时，国家码 86 使用中国的规则，本项为 [\"10\", \"2X\", \"[3-9]XX\"]；其他国家接受所有 3 到 14 位的号码。";
    "numbers.local_numbers": "本地号码，写法见 area_codes。国家码 86 的默认规则为 [\"NXXXXXX\", \"NXXXXXXX\"]。";
    "numbers.national_numbers": "不加区号的完整号码，例如手机号，写法见 area_codes。国家码 86 的默认规则为 [\"1[3-9]XXXXXXXXX\", \"400XXXXXXX\", \"800XXXXXXX\"]。";
    "numbers.service_numbers": "服务号码，前面也可加区号，写法见 area_codes。国家码 86 的默认规则为 [\"1[0-2]X\", \"10XXX\", \"111XX\", \"12XXX\", \"11[4-8]XXX\", \"10XXXXX\", \"101XXXXX\", \"16XXXXXX\", \"9[56]XXX\", \"9[56]XXXX\", \"9[56]XXXXX\", \"9[56]XXXXXX\"]。";
    "numbers.default_caller": "请求未指定、或无权指定主叫显号时，被叫看到的号码。留空则使用中继的号码。";
    "numbers.emergency": "本国的紧急号码，加不加区号均拒绝呼叫。";
    "numbers.forbidden": "拒绝呼叫的号码，带国家码；末尾的星号表示前缀。默认为高额付费号码和卫星电话号码。";
    "numbers.permitted": "emergency 和 `forbidden` 的例外，写法与 `forbidden` 相同。";
    "numbers.switchboards": "背后有许多话机的总机号码，写法与 `forbidden` 相同。一般号码（不含分机）为一个被叫：同一时间只呼叫一路，并受 [dispatch] 的频次限制；总机按 switchboard_lines 的数目算作多个被叫，同一分机始终算作同一个。";
    "numbers.switchboard_lines": "一个总机号码（switchboards）算作多少个被叫。";

    "audio_files.folder": "上传的语音文件所在的目录。留空则为 data_dir 下的 voices。";
    "audio_files.max_upload_bytes": "单次上传的字节数上限（一个 WAV 文件，或 WAV 的 zip 包）；zip 中每个解压后的文件同样受此限制。";
    "audio_files.upload_seconds": "客户端须在该秒数内完成上传。";
    "audio_files.uploads_at_once": "同时上传的数量上限，所有账户合计；超出的上传排队等待。";
    "audio_files.uploads_per_account": "单个账户同时上传的数量上限；超出的上传排队等待。";
    "audio_files.upload_grace_seconds": "上传开始该秒数之后，才检查最低速度（min_upload_bytes_per_second）。";
    "audio_files.min_upload_bytes_per_second": "上传的最低平均速度（字节/秒），低于它的上传被拒绝。0 表示只受 upload_seconds 限制。";
    "audio_files.max_seconds": "单个语音文件的最长秒数。";
    "audio_files.max_files": "单个应用、以及平台的语音文件数量上限。";
    "audio_files.max_app_mb": "单个应用的语音文件可占用的磁盘空间（MB）。被替换和删除的文件在一到两小时后清理，此前仍计入。0 表示不限。操作员添加的文件计入用量，但不会被拒绝。";
    "audio_files.max_account_mb": "单个账户的语音文件可占用的磁盘空间（MB），计法与 max_app_mb 相同。0 表示不限。";
    "audio_files.uploads_per_hour": "单个账户每小时的上传次数。0 表示不限。";

    "speech.program": "内置发音人的程序 espeak-ng。";
    "speech.chinese_voice": "内置发音人的中文音色。";
    "speech.english_voice": "内置发音人的英文音色。";
    "speech.command": "外部发音人的程序及其参数：从标准输入读取文本，向标准输出写 WAV 文件。失败时改用内置发音人。`command` 与 `url` 只配置一个外部发音人，需要多个时用 [[voice]]。";
    "speech.url": "外部发音人的 http 或 https 地址：接收 JSON，应答 WAV 文件。失败时改用内置发音人。";
    "speech.ca_file": "PEM 文件：校验该 https 地址的证书时，在公共 CA 之外另行信任的 CA。";
    "speech.version": "命令或地址背后的发音人有变化时修改此值，语音会重新合成。";
    "speech.tries": "外部发音人合成一段文本的尝试次数。";
    "speech.seconds": "任一发音人合成一段文本的时限（秒）。";
    "speech.text_seconds": "合成一段文本的总时限（秒）：包括外部发音人的所有尝试；最后四分之一的时间始终留给内置发音人。";
    "speech.natural_folder": "自然发音人所在的目录，由 `clarion voice install natural` 安装。留空为 data_dir 下的 natural。";
    "speech.natural_workers": "自然发音人的进程数上限。每个进程合成时占用一个核，最多占用 600 MB 内存。";

    "prompts.workers": "同时合成的语音数。0 表示每核一个；安装了自然发音人时，其每个进程再加一个。各账户轮流合成。等待外部程序或服务器时，可多合成相应的数量。";
    "prompts.max_waiting": "等待合成的不同语音数上限。达到上限时，排队最多的账户让出其最新的一个。";
    "prompts.memory_mb": "语音缓存在内存中的大小（MiB）。";
    "prompts.disk_mb": "语音缓存在磁盘上的大小（MiB）。disk_mb = 0 表示不在磁盘上缓存。";
    "prompts.gap_ms": "重复播放之间的静音时长（毫秒）。";
    "prompts.failure_seconds": "合成失败的结果、以及因外部发音人失败而由内置发音人代替的语音，在缓存中保留的秒数。";

    "rates.default": "没有单独费率的账户所用的费率（clarion rate）：被叫号码前缀（\"+86138\"，\"*\" 为所有号码）、计费单元秒数、每单元价格（不足一个按一个计）、未接通呼叫的价格。金额写成字符串以保持精确。";
    "rates.reserve_seconds": "对有余额或消费上限的账户：播放内容时长未知时，为呼叫预留的通话秒数；这样的通话不会超过该时长。";

    "bills.folder": "话单文件所在的目录。留空则为 data_dir 下的 bills。";
    "bills.grace_seconds": "零点之后到当天结账的秒数。";
    "bills.retention_days": "话单及其文件的保留天数。";
    "bills.token_hours": "下载令牌的有效小时数。";
    "bills.bill_json_key": "JSON 应答中下载地址的字段名：文档所写的 \"downurl\"，或原厂 Java 客户端某个分支所需的 \"downUrl\"。";
    "bills.max_filtered_files": "一个应用的一份话单，按不同 keywords 生成的文件数上限。";
    "bills.max_filtered_mb": "一个账户一天按 keywords 生成的文件可占用的磁盘空间（MB），超过则不再生成。0 表示不限。";

    "dispatch.max_calls": "本节点进行中的呼叫数上限。0 表示以中继的并发为限。";
    "dispatch.late_percent": "迟发 20 毫秒以上的语音包超过该百分比时，本节点暂不领取新呼叫。0 表示始终领取。";
    "dispatch.calls_at_once": "未单独设置限额的账户：进行中的呼叫数。";
    "dispatch.calls_per_second": "未单独设置限额的账户：每秒发起的呼叫数。";
    "dispatch.callee_caps": "单个账户对同一被叫（不含分机的号码）的呼叫次数上限：\"none\" 为不限，\"considerate\" 为每分钟 1 次、每小时 5 次、每天 20 次。";
    "dispatch.callee_per_minute": "单个账户每分钟对同一被叫的呼叫次数上限。不为 0 时取代 `callee_caps` 中的值。";
    "dispatch.callee_per_hour": "单个账户每小时对同一被叫的呼叫次数上限。不为 0 时取代 `callee_caps` 中的值。";
    "dispatch.callee_per_day": "单个账户每天对同一被叫的呼叫次数上限。不为 0 时取代 `callee_caps` 中的值。";
    "dispatch.ring_seconds": "最长振铃秒数。";
    "dispatch.lead_in_ms": "接听之后到开始播放的静音毫秒数。";
    "dispatch.extension_wait_ms": "拨分机号的 DTMF 按键前后的静音毫秒数。";
    "dispatch.retry_seconds": "没有中继可用的呼叫，在该秒数后重试；每次等待加倍，以 longest_retry_seconds 为限。";
    "dispatch.longest_retry_seconds": "没有中继可用的呼叫，每次重试前等待的最长秒数。";
    "dispatch.redial_after_crash": "崩溃恢复后，对不确定是否振铃过的呼叫重新拨打。被叫可能接到两次。";
    "dispatch.stop_seconds": "服务停止时，等待振铃和播放中的呼叫结束的秒数，之后挂断。";
    "dispatch.lease_seconds": "节点失去心跳该秒数后，其他节点接管其呼叫。";

    "media.bind": "RTP 的本地地址。留空则使用中继的地址。";
    "media.advertised": "与本地地址不同时（位于 NAT 之后），对端发送 RTP 应使用的地址。留空则使用中继的地址。";
    "media.ports": "RTP 和 RTCP 的端口范围，每路呼叫用一对。";
    "media.dscp": "RTP 包的 DSCP 值，供优先转发语音的路由器识别，通常为 46。0 表示不设置。";

    "store.statement_seconds": "PostgreSQL：单条语句的应答时限（秒）。超时则关闭该连接，下一条语句使用新连接。";
    "store.long_statement_seconds": "PostgreSQL：涉及大量记录的语句的应答时限（秒）：导入话单，以及按天结账、核对和删除。";

    "log.filter": "日志级别：error、warn、info、debug 或 trace；可为某个部分单独设置（\"info,clarion::api=debug\"）。";
    "log.format": "\"text\" 便于阅读，\"json\" 便于程序处理。";
    "log.sip_trace_mb": "本节点在内存中保留最近 SIP 信令的大小（MiB），可用 `clarion call trace` 查看。0 表示不保留。";
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::config::Config;

    /// Figures, what stands in backticks, and names of settings and fields: what a meaning must not lose.
    fn marks(text: &str) -> BTreeSet<&str> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let words = text.split(|letter| !is_part(letter));
        let tells = |word: &&str| {
            let is_figure = word.bytes().all(|c| c.is_ascii_digit());
            !word.is_empty() && (is_figure || word.contains('_'))
        };
        let quoted = text.split('`').skip(1).step_by(2);
        words.filter(tells).chain(quoted).collect()
    }

    #[test]
    fn every_setting_is_explained_in_chinese_and_nothing_else_is() {
        let config = Config::from_parts("", &[]).unwrap();
        let settings: BTreeSet<_> = config.shown.iter().map(ShownSetting::path).collect();
        let explained: BTreeSet<_> = MEANINGS.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(settings, explained);
        assert_eq!(explained.len(), MEANINGS.len(), "none is explained twice");
    }

    /// Settings that share a comment share out in Chinese what it says.
    #[test]
    fn figures_and_names_of_the_english_stand_in_the_chinese() {
        let config = Config::from_parts("", &[]).unwrap();
        let mut comments: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for setting in &config.shown {
            let chinese = meaning(setting, PageLanguage::Chinese);
            let said = comments.entry(&setting.meaning).or_default();
            said.extend(marks(chinese));
            assert_eq!(meaning(setting, PageLanguage::English), setting.meaning);
        }
        for (comment, said) in comments {
            let wanted = marks(comment);
            let lost: Vec<_> = wanted.difference(&said).collect();
            assert!(lost.is_empty(), "{comment}: {lost:?}");
        }
    }
}
