//! Lexicons: words that an application wants to be said otherwise than they are written.

use super::change::NotedChange;
use super::{Management, ManagementError};
use crate::domain::account::{AppId, ApplicationChange};
use crate::domain::lexicon::{Lexicon, LexiconChange, Reading};

impl Management {
    pub async fn lexicon(&self, app: &AppId) -> Result<Lexicon, ManagementError> {
        Ok(self.application(app).await?.lexicon)
    }

    /// A word that is there gets its new reading.
    pub async fn add_reading(
        &self,
        app: &AppId,
        written: &str,
        said: &str,
    ) -> Result<Reading, ManagementError> {
        let change = NotedChange::new("lexicon add").with("app", app);
        let add = async {
            let reading = Reading::parse(written, said).map_err(ManagementError::rule)?;
            let lexicon = self.lexicon(app).await?;
            let room = lexicon.check_room(&reading);
            room.map_err(ManagementError::rule)?;
            self.change_lexicon(app, LexiconChange::Add(reading.clone()))
                .await?;
            Ok::<_, ManagementError>(reading)
        };
        self.noted(change.on(written).on(said), add).await
    }

    pub async fn remove_reading(&self, app: &AppId, written: &str) -> Result<(), ManagementError> {
        let change = NotedChange::new("lexicon remove").with("app", app);
        let remove = async {
            if self.lexicon(app).await?.find(written).is_none() {
                let word = format!("word {written:?} in the lexicon of application {app}");
                return Err(ManagementError::missing(word));
            }
            let change = LexiconChange::Remove(written.to_owned());
            self.change_lexicon(app, change).await
        };
        self.noted(change.on(written), remove).await
    }

    async fn change_lexicon(
        &self,
        app: &AppId,
        lexicon: LexiconChange,
    ) -> Result<(), ManagementError> {
        let change = ApplicationChange {
            lexicon,
            ..ApplicationChange::default()
        };
        self.store.change_application(app, change).await?;
        Ok(())
    }
}
