use super::super::alert::AlertNews;
use super::super::formats::{AlertReader, sample};
use super::*;

fn settings(text: Option<&str>, language: Option<CodeLanguage>) -> IntakeSettings {
    IntakeSettings {
        text: text.map(str::to_owned),
        language,
        ..IntakeSettings::default()
    }
}

fn group(format: IntakeFormat, body: &str) -> AlertGroup {
    let reader = AlertReader {
        format,
        settings: &IntakeSettings::default(),
        zone: &TimeZone::UTC,
    };
    match reader.read(body.as_bytes()).unwrap().remove(0) {
        AlertNews::Firing(group) => *group,
        other => panic!("{other:?}"),
    }
}

fn spoken(format: IntakeFormat, settings: &IntakeSettings, group: &AlertGroup) -> SpokenAlert {
    let now: Zoned = "2026-11-18T12:00:00+08:00[Asia/Shanghai]".parse().unwrap();
    let speaker = AlertSpeaker {
        intake: &"night".parse().unwrap(),
        format,
        settings,
        now: &now,
        longest: 300,
    };
    speaker.say(group)
}

fn said(format: IntakeFormat, settings: &IntakeSettings) -> String {
    let spoken = spoken(format, settings, &group(format, sample(format)));
    assert_eq!(spoken.failure, None);
    spoken.text
}

#[test]
fn the_usual_templates_say_what_where_how_bad_and_since_when() {
    let english = settings(None, Some(CodeLanguage::English));
    let chinese = settings(None, Some(CodeLanguage::Chinese));
    for (format, in_english, in_chinese) in [
        (
            IntakeFormat::Alertmanager,
            "Critical alert. Host out of memory, on db-1.example.com, since 11:05. Host out of memory, on db-2.example.com, since 11:07.",
            "紧急告警。Host out of memory，位置：db-1.example.com，开始于11:05。Host out of memory，位置：db-2.example.com，开始于11:07。",
        ),
        (
            IntakeFormat::Grafana,
            "Critical alert. 1280 orders wait, on orders, since 11:05.",
            "紧急告警。1280 orders wait，位置：orders，开始于11:05。",
        ),
        (
            IntakeFormat::Zabbix,
            "Serious alert. High CPU utilization, Current utilization: 97.3 %, on web-3, since 11:05.",
            "严重告警。High CPU utilization, Current utilization: 97.3 %，位置：web-3，开始于11:05。",
        ),
        (
            IntakeFormat::UptimeKuma,
            "Alert. Web shop is down, timeout of 48000ms exceeded, on shop.example.com, since 11:05.",
            "告警。Web shop is down, timeout of 48000ms exceeded，位置：shop.example.com，开始于11:05。",
        ),
        (
            IntakeFormat::SmsEagle,
            "Web shop is down, timeout of 48000ms exceeded",
            "Web shop is down, timeout of 48000ms exceeded",
        ),
        (
            IntakeFormat::Json,
            "The cold store is too warm: 9.5 °C",
            "The cold store is too warm: 9.5 °C",
        ),
    ] {
        assert_eq!(said(format, &english), in_english);
        assert_eq!(said(format, &chinese), in_chinese);
    }
}

#[test]
fn of_many_alerts_the_first_are_said_and_the_others_counted() {
    let mut many = group(
        IntakeFormat::Alertmanager,
        sample(IntakeFormat::Alertmanager),
    );
    many.alerts = vec![many.alerts[0].clone(); 5];
    many.count = 15;
    let say = |language| {
        let settings = settings(None, Some(language));
        spoken(IntakeFormat::Alertmanager, &settings, &many).text
    };
    let english = say(CodeLanguage::English);
    assert_eq!(english.matches("Host out of memory").count(), 3);
    assert!(english.ends_with(" And 12 more."), "{english}");
    assert!(say(CodeLanguage::Chinese).ends_with("另有12条。"));
}

#[test]
fn filters_suit_speech() {
    for (template, wanted) in [
        ("{{ 'HostOutOfMemory' | words }}", "Host Out Of Memory"),
        (
            "{{ 'KubeAPIErrorBudgetBurn' | words }}",
            "Kube API Error Budget Burn",
        ),
        ("{{ 'node_disk.full' | words }}", "node disk full"),
        ("{{ 'A1 b' | spell }}", "A 1 b"),
        ("{{ ['a', 'b', 'c'] | list_and }}", "a, b and c"),
        ("{{ ['a'] | list_and }}", "a"),
        (
            "{{ 'db-1:9100' | host }} {{ '[::1]:9100' | host }} {{ 'x:y' | host }}",
            "db-1 ::1 x:y",
        ),
        (
            "{{ '2026-11-17T03:05:00Z' | short_time }}",
            "November 17 11:05",
        ),
        ("{{ '2026-11-18T03:05:00Z' | short_time }}", "11:05"),
        ("{{ nobody.knows.this or 'nothing' }}", "nothing"),
        ("{{ alerts[0].labels.job | upper }} {{ count }}", "NODE 2"),
        (
            "{{ group.alertname }} {{ intake }}",
            "HostOutOfMemory night",
        ),
    ] {
        let own = settings(Some(template), Some(CodeLanguage::English));
        assert_eq!(said(IntakeFormat::Alertmanager, &own), wanted, "{template}");
    }
    let chinese = settings(
        Some("{{ ['甲', '乙', '丙'] | list_and }}，{{ '2026-11-17T03:05:00Z' | short_time }}"),
        Some(CodeLanguage::Chinese),
    );
    assert_eq!(
        said(IntakeFormat::Json, &chinese),
        "甲、乙和丙，11月17日11:05"
    );
}

#[test]
fn a_template_that_fails_is_replaced_by_a_plain_sentence() {
    let alerts = group(
        IntakeFormat::Alertmanager,
        sample(IntakeFormat::Alertmanager),
    );
    let endless = "{% for a in text %}{% for b in text %}{% for c in text %}{% endfor %}{% endfor %}{% endfor %}";
    for template in [
        "{{ unclosed",
        "{% for alert in alerts %}",
        "{{ what | no_such_filter }}",
        "{% set a = 'x' %}{{ a }}",
        "{% include 'x' %}",
        "{{ 'x' * 100000000 }}",
        "{{ '' }}",
        endless,
    ] {
        let own = settings(Some(template), None);
        let mut alerts = alerts.clone();
        alerts.text = "x".repeat(1000);
        let spoken = spoken(IntakeFormat::Alertmanager, &own, &alerts);
        assert!(spoken.failure.is_some(), "{template}");
        assert_eq!(
            spoken.text, "2 alerts of night. The first is: Host out of memory.",
            "{template}"
        );
    }
}

#[test]
fn a_text_that_is_too_long_ends_in_words_that_say_so() {
    let mut long = group(IntakeFormat::Json, sample(IntakeFormat::Json));
    long.text = "very ".repeat(1000);
    let spoken = spoken(IntakeFormat::Json, &IntakeSettings::default(), &long);
    assert_eq!(spoken.text.chars().count(), 300);
    assert!(spoken.text.ends_with("the rest is too long to be read."));
    let flood = settings(
        Some("{% for a in alerts %}{% for b in text %}{{ text }}{% endfor %}{% endfor %}"),
        None,
    );
    let flooded = tests::spoken(IntakeFormat::Json, &flood, &long);
    assert_eq!(flooded.text.chars().count(), 300, "{flooded:?}");
}

#[test]
fn the_language_is_that_of_the_alert_unless_the_intake_says_so() {
    let chinese = r#"{"text":"冷库温度过高","where":"三号厅"}"#;
    let chinese = group(IntakeFormat::Json, chinese);
    let template = settings(Some("{{ how_bad or text }}"), None);
    let spoken = spoken(IntakeFormat::Json, &template, &chinese);
    assert_eq!(spoken.language, CodeLanguage::Chinese);
}
