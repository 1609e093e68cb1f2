//! The webhook of Grafana's alerting: a group as Alertmanager writes it, with a title and a message.

use serde::Deserialize;

use super::super::alert::AlertNews;
use super::alertmanager::WireGroup;
use super::wire::{self, Text};
use crate::domain::intake::IntakeSettings;
use crate::domain::status_code::Refusal;

#[derive(Debug, Deserialize)]
struct WireMessage {
    #[serde(flatten)]
    group: WireGroup,
    #[serde(default)]
    title: Text,
    #[serde(default)]
    message: Text,
}

pub fn read(body: &[u8], settings: &IntakeSettings) -> Result<AlertNews, Refusal> {
    let message: WireMessage = wire::read(body)?;
    let mut news = message.group.news(settings)?;
    if let AlertNews::Firing(group) = &mut news {
        group.title = message.title.0;
        group.text = message.message.0;
    }
    Ok(news)
}
