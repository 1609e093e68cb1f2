//! The webhook of Grafana's alerting: a group as Alertmanager writes it, with a title and a message.

use super::super::alert::AlertNews;
use super::alertmanager::WireGroup;
use super::wire;
use crate::domain::intake::IntakeSettings;
use crate::domain::status_code::Refusal;

pub fn read(body: &[u8], settings: &IntakeSettings) -> Result<AlertNews, Refusal> {
    let mut message: WireGroup = wire::read(body)?;
    let title = std::mem::take(&mut message.title.0);
    let text = std::mem::take(&mut message.message.0);
    let mut news = message.news(settings)?;
    if let AlertNews::Firing(group) = &mut news {
        group.title = title;
        group.text = text;
    }
    Ok(news)
}
