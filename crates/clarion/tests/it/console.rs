//! The console through its front door: who may ask for what, what a stranger gets, and what pages make of hostile texts. `browser` drives a real browser.

mod accounts;
mod browser;
mod chinese;
mod desk;
mod intakes;
mod listening;
mod routes;
mod screens;
mod signing_in;
mod texts;
mod verbs;
mod visitor;

use clarion::clock::Clock;
use clarion::domain::bill::{BillFile, BillOf, Totals};
use clarion::domain::intake::IntakeFormat;
use clarion::domain::intake::change::IntakeChange;
use clarion::domain::intake::incident::IncidentKey;
use clarion::domain::operator::{Operator, OperatorPassword, OperatorRole};
use clarion::management::NewIntake;
use clarion::management::settings::Settings;
use clarion::passwords;
use clarion::store::{SeenIncident, Store};

use crate::support::{APP, SID, TestServer};

/// The password of every operator in these tests.
pub const PASSWORD: &str = "correct horse battery";

/// Adds an operator of this role, whose name is that of the role.
pub async fn add_operator(store: &dyn Store, clock: &Clock, role: OperatorRole) {
    let password: OperatorPassword = PASSWORD.parse().unwrap();
    let name = role.as_str().parse().unwrap();
    let operator = Operator::new(name, role, passwords::hash(&password), clock.now());
    store.add_operator(operator).await.unwrap();
}

/// Adds one of each role.
pub async fn add_operators(store: &dyn Store, clock: &Clock) {
    for role in OperatorRole::ALL {
        add_operator(store, clock, role).await;
    }
}

/// A bill file of a day, of what these keywords select.
pub fn billed(day: &str, keywords: &str) -> BillFile {
    let made_at = format!("{day}T18:00:00Z").parse().unwrap();
    BillFile {
        id: "0".repeat(32),
        of: BillOf {
            account: SID.parse().unwrap(),
            app: APP.parse().unwrap(),
            day: day.parse().unwrap(),
        },
        keywords: keywords.to_owned(),
        object: "object".to_owned(),
        bytes: 123_456,
        totals: Totals::default(),
        sha256: "0123456789abcdef".repeat(4),
        made_at,
        expires_at: None,
    }
}

/// Where alerts come in, with one that is open.
pub async fn add_intake(server: &TestServer, key: &str) {
    let settings = [("to", "@night,13800000001"), ("language", "zh")];
    let new = NewIntake {
        name: "prod".parse().unwrap(),
        app: APP.parse().unwrap(),
        format: IntakeFormat::Alertmanager,
        settings: IntakeChange::from_texts(settings).unwrap(),
    };
    let (intake, _) = server.management().add_intake(new).await.unwrap();
    let now = server.clock.now();
    let seen = SeenIncident {
        intake: intake.name,
        key: IncidentKey::new(key),
        id: "0".repeat(32),
        now,
        closed_before: now,
    };
    server.store.open_incident(seen).await.unwrap();
}
