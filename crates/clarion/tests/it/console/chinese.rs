//! On a Chinese page everything that is ours is Chinese: what the check finds, what the settings mean, and why a form is refused. What other programs say stays as it
//! came, and is marked as English.

use phone::test_phone::Script;

use super::visitor::Visitor;
use super::{add_intake, add_operators};
use crate::calls::stage::Stage;
use crate::support::telephone::Telephone;
use crate::support::{APP, SID, call_list, eventually};

/// As many as no command has that a page names.
const WORDS_OF_A_SENTENCE: usize = 5;

async fn staged(settings: &str) -> (Stage, Telephone) {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(&telephone.wide_trunk("provider", ""), settings).await;
    let server = &stage.server;
    add_operators(&*server.store, &server.clock).await;
    let list = call_list("night", &["13800000000"], server.clock.now());
    server.store.add_list(list).await.unwrap();
    add_intake(server, "x").await;
    (stage, telephone)
}

/// What is read on a page, but what is marked as English and what is written as in a file.
fn read_text(page: &str) -> String {
    let mut rest = page.split("<main").nth(1).unwrap().to_owned();
    for (begins, ends) in [
        ("<span lang=\"en\">", "</span>"),
        ("<code>", "</code>"),
        ("<", ">"),
    ] {
        let mut kept = String::new();
        while let Some((before, after)) = rest.split_once(begins) {
            kept.push_str(before);
            kept.push('\n');
            rest = after.split_once(ends).unwrap().1.to_owned();
        }
        rest = kept + &rest;
    }
    rest
}

/// Plain words with nothing but a blank between them.
fn english_sentence(text: &str) -> Option<String> {
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphabetic());
    let mut sentence: Vec<&str> = Vec::new();
    for line in text.lines() {
        sentence.clear();
        for word in line.split(' ') {
            match Some(word).filter(is_word) {
                Some(word) => sentence.push(word),
                None => sentence.clear(),
            }
            if sentence.len() >= WORDS_OF_A_SENTENCE {
                return Some(sentence.join(" "));
            }
        }
    }
    None
}

#[tokio::test]
async fn health_and_settings_are_in_chinese() {
    let settings = "[numbers]\nemergency = []\n[http]\nmetrics_networks = [\"0.0.0.0/0\"]\n";
    let (stage, _telephone) = staged(settings).await;
    let mut viewer = Visitor::signed_in(&stage.server, "viewer").await;
    viewer.language = "zh";
    eventually("the examination is over", async || {
        let health = viewer.get("/health").await.body;
        health.contains("检查于") && !health.contains("data-live")
    })
    .await;
    let health = viewer.get("/health").await.body;
    for wanted in [
        "本节点已就绪",
        "可以读取，且没有矛盾",
        "正在运行（进程 ",
        "的结构版本为 ",
        "没有配置紧急号码",
        "/metrics 对所有人开放",
        "中继 provider",
        "中文由 ",
    ] {
        assert!(health.contains(wanted), "{wanted}: {health}");
    }
    let settings = viewer.get("/settings").await.body;
    assert!(settings.contains("监听地址。该接口的客户端一般配置 8883 端口。"));
    for page in [&health, &settings] {
        assert_eq!(english_sentence(&read_text(page)), None);
    }
    // The test itself sees English.
    viewer.language = "en";
    for path in ["/health", "/settings"] {
        let page = viewer.get(path).await.body;
        assert!(english_sentence(&read_text(&page)).is_some(), "{path}");
    }
}

/// A form: its path, its fields, and a part of what is said of it.
type RefusedForm<'a> = (String, Vec<(&'a str, &'a str)>, &'a str);

async fn are_refused(forms: Vec<RefusedForm<'_>>) {
    let (stage, _telephone) = staged("").await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    admin.language = "zh";
    for (path, fields, said) in forms {
        let mut all = vec![("token", token.as_str())];
        all.extend(fields);
        let answer = admin.post(&path, &all).await;
        let problem = answer.body.split("class=\"problem\"").nth(1);
        let problem = problem.unwrap_or_else(|| panic!("{path}: {}", answer.body));
        let problem = problem.split("</p>").take(2).collect::<String>();
        assert!(problem.contains(said), "{said}: {problem}");
        assert!(!problem.contains("lang=\"en\""), "{path}: {problem}");
    }
    let page = admin.get("/calls?number=x").await.body;
    assert!(page.contains("号码有误：应为一个电话号码："), "{page}");
}

#[tokio::test]
async fn forms_of_accounts_and_rates_are_refused_in_chinese() {
    let account = format!("/accounts/{SID}");
    are_refused(vec![
        (
            account.clone(),
            vec![("call-hours", "x"), ("was-call-hours", "")],
            "“允许呼叫的时段”填写有误：`x` 不是时段，写法如 0800-2000",
        ),
        (
            account.clone(),
            vec![("balance", "much")],
            "“余额”填写有误：`much` 不是金额，写法如 12.50，最多六位小数。",
        ),
        (
            account.clone(),
            vec![("allow-ips", "nowhere")],
            "“IP 白名单”填写有误：`nowhere` 不是 IP 地址",
        ),
        (
            account.clone(),
            vec![("display-numbers", "0400")],
            "“可用主叫号码”填写有误：`0400` 写法有误",
        ),
        (
            "/accounts".to_owned(),
            vec![("name", "x"), ("sid", "short")],
            "“账户 sid”填写有误：账户 sid 应为 32 位字母或数字，现有 5 个字符",
        ),
        (
            "/accounts".to_owned(),
            vec![("name", "x"), ("sid", SID)],
            "已存在",
        ),
        (
            format!("{account}/rates"),
            vec![("prefix", "x")],
            "“号码前缀”填写有误：`x` 不是号码前缀",
        ),
        (
            format!("{account}/rates"),
            vec![("prefix", "*"), ("price", "1"), ("unit", "x")],
            "“计费单元（秒）”应为 1 到 86400 之间的整数。",
        ),
        (
            format!("{account}/rates"),
            vec![
                ("prefix", "*"),
                ("price", "1"),
                ("unit", "0"),
                ("unanswered", "0"),
            ],
            "无法完成：计费单元为 1 到 86400 秒。",
        ),
    ])
    .await;
}

#[tokio::test]
async fn forms_with_numbers_are_refused_in_chinese() {
    let account = format!("/accounts/{SID}");
    let numbers = "13800000001\nnobody";
    are_refused(vec![
        (
            format!("{account}/lists"),
            vec![("name", "a b")],
            "“列表名”填写有误：列表名为 1 到 32 位字母、数字、- 或 _。",
        ),
        (
            format!("{account}/lists"),
            vec![("name", "day"), ("numbers", "110")],
            "无法完成：号码 &#34;110&#34;：不允许呼叫紧急号码。",
        ),
        (
            format!("{account}/lists"),
            vec![("name", "day"), ("numbers", "")],
            "列表应有 1 到 20 个号码，现有 0 个",
        ),
        (
            format!("{account}/do-not-call"),
            vec![("number", "138")],
            "号码 &#34;138&#34;：应为国家码 86 的完整号码",
        ),
        (
            format!("{account}/do-not-call/import"),
            vec![("numbers", numbers)],
            "第 2 行：应为一个电话号码：",
        ),
    ])
    .await;
}

#[tokio::test]
async fn forms_of_applications_trunks_and_intakes_are_refused_in_chinese() {
    let trunk = ("trunk", "provider");
    are_refused(vec![
        (
            format!("/apps/{APP}"),
            vec![("voice", "a b"), ("was-voice", "")],
            "“发音人”填写有误：发音人名称为 1 到 32 位",
        ),
        (
            format!("/apps/{APP}"),
            vec![("voice", "nobody"), ("was-voice", "")],
            "没有发音人 &#34;nobody&#34;，可用的有：",
        ),
        (
            "/trunks/test".to_owned(),
            vec![trunk, ("app", APP), ("number", "nobody")],
            "应为一个电话号码：",
        ),
        (
            "/trunks/nowhere/drain".to_owned(),
            vec![],
            "现在无法执行：没有中继 nowhere，配置中有：provider",
        ),
        (
            "/dialling/bar".to_owned(),
            vec![("number", "+0")],
            "国家码不能以 0 开头",
        ),
        (
            "/intakes/prod".to_owned(),
            vec![("silence-url", "ftp://h"), ("was-silence-url", "")],
            "必须以 http:// 或 https:// 开头",
        ),
        (
            "/intakes".to_owned(),
            vec![("app", APP), ("name", "n"), ("format", "json"), ("to", ",")],
            "“呼叫对象”的逗号之间没有内容",
        ),
        (
            "/intakes".to_owned(),
            vec![("app", APP), ("name", "n"), ("format", "x")],
            "“格式”填写有误：应为以下之一：alertmanager",
        ),
    ])
    .await;
}

#[tokio::test]
async fn what_others_say_is_marked_as_english() {
    let (stage, _telephone) = staged("").await;
    let mut admin = Visitor::signed_in(&stage.server, "admin").await;
    let token = admin.token().await;
    let template = [
        ("token", token.as_str()),
        ("text", "{{"),
        ("was-text", ""),
        ("do", "save"),
    ];
    let tried = [
        ("token", token.as_str()),
        ("appId", APP),
        ("to", "nobody"),
        ("mediaTxt", "x"),
    ];
    for (path, fields, in_chinese) in [
        ("/intakes/prod", template, "模板有误：<span lang=\"en\">"),
        ("/try", tried, "role=\"alert\" lang=\"en\">"),
    ] {
        admin.language = "zh";
        let page = admin.post(path, &fields).await.body;
        assert!(page.contains(in_chinese), "{page}");
        admin.language = "en";
        let page = admin.post(path, &fields).await.body;
        assert!(!page.contains("<span lang"), "{page}");
    }
}
