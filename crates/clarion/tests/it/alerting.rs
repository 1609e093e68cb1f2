//! Alerts through the front door: they come in as each tool sends them, people are called until somebody confirms, and not any more when it is over.

mod formats;
mod hostile;
mod incidents;
mod prometheus;
mod silences;

use clarion::domain::call::{CallSid, NewCall};
use clarion::domain::intake::IntakeFormat;
use clarion::domain::intake::change::IntakeChange;
use clarion::management::NewIntake;
use clarion::management::settings::Settings;
use serde_json::Value;

use crate::support::TestServer;

/// What a request to an intake got.
#[derive(Debug)]
pub struct Told {
    status: u16,
    body: Value,
}

impl Told {
    fn code(&self) -> &str {
        self.body["statusCode"].as_str().unwrap()
    }

    fn message(&self) -> &str {
        self.body["statusMsg"].as_str().unwrap()
    }

    /// What became of its one incident.
    fn result(&self) -> &str {
        assert_eq!(self.status, 200, "{self:?}");
        self.body["incidents"][0]["result"].as_str().unwrap()
    }

    pub fn call(&self) -> CallSid {
        let call = &self.body["incidents"][0]["callSid"];
        call.as_str().unwrap().parse().unwrap()
    }
}

/// An intake, and what it takes to bring alerts to it.
pub struct Intake<'a> {
    server: &'a TestServer,
    path: String,
    token: String,
}

impl<'a> Intake<'a> {
    pub async fn add(
        server: &'a TestServer,
        name: &str,
        format: IntakeFormat,
        settings: &[(&str, &str)],
    ) -> Self {
        let new = NewIntake {
            name: name.parse().unwrap(),
            app: crate::support::app_id(),
            format,
            settings: IntakeChange::from_texts(settings.iter().copied()).unwrap(),
        };
        let path = format.path(&new.name);
        let (_, token) = server.management().add_intake(new).await.unwrap();
        Self {
            server,
            path,
            token: token.reveal().to_owned(),
        }
    }

    async fn json(server: &'a TestServer, settings: &[(&str, &str)]) -> Self {
        Self::add(server, "shop", IntakeFormat::Json, settings).await
    }

    pub async fn send(&self, body: &str) -> Told {
        let authorization = format!("authorization: Bearer {}\r\n", self.token);
        post(self.server, &self.path, &authorization, body).await
    }

    async fn fire(&self, key: &str) -> Told {
        self.send(&format!(r#"{{"key":"{key}","text":"It burns."}}"#))
            .await
    }

    async fn resolve(&self, key: &str) -> Told {
        self.send(&format!(r#"{{"resolve":"{key}"}}"#)).await
    }
}

async fn post(server: &TestServer, path: &str, headers: &str, body: &str) -> Told {
    let request = posting(path, headers, body);
    answered(&server.send_raw(request.as_bytes()).await)
}

fn posting(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn answered(answer: &str) -> Told {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    Told { status, body }
}

/// The call as it was accepted.
async fn accepted(server: &TestServer, call: &CallSid) -> NewCall {
    server.store.accepted_call(call).await.unwrap().unwrap()
}

/// What it says.
async fn said(server: &TestServer, call: &CallSid) -> String {
    accepted(server, call).await.prompt.speech.unwrap().text
}

/// A counter of this process, with these labels.
pub async fn counted(server: &TestServer, series: &str) -> f64 {
    let mut connection = server.client().connect().await.unwrap();
    let (_, metrics) = connection.get("/metrics").await.unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0.0, |value| value.trim().parse().unwrap())
}
