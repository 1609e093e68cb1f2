//! `clarion lexicon …`: words that an application wants to be said otherwise than they are written.

use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use crate::domain::account::AppId;
use crate::domain::lexicon::Reading;
use crate::management::Management;

#[derive(Debug, Subcommand)]
pub enum LexiconCommand {
    /// Add a word, or change how it is said; calls that are accepted from now on follow
    Add {
        /// The application
        #[arg(long)]
        app: AppId,
        /// The word as it is written in texts; words of letters and digits in small or capital letters
        #[arg(value_name = "WORD")]
        written: String,
        /// What is said for it, as one would write it
        #[arg(value_name = "SAID")]
        said: String,
    },
    /// List the words of an application
    List {
        /// The application
        #[arg(long)]
        app: AppId,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a word
    Remove {
        /// The application
        #[arg(long)]
        app: AppId,
        /// The word as it is listed
        #[arg(value_name = "WORD")]
        written: String,
    },
}

pub async fn run(command: LexiconCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        LexiconCommand::Add { app, written, said } => {
            let Reading { written, said } = management.add_reading(&app, &written, &said).await?;
            println!("{written} is said: {said}");
        }
        LexiconCommand::List { app, json } => {
            let lexicon = management.lexicon(&app).await?;
            print(json, &lexicon.readings().iter().map(describe).collect());
        }
        LexiconCommand::Remove { app, written } => {
            management.remove_reading(&app, &written).await?;
            println!("{written} is said as it is written");
        }
    }
    Ok(())
}

fn describe(reading: &Reading) -> Value {
    json!({ "word": reading.written, "said": reading.said })
}
