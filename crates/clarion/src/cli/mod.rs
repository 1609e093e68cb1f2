//! The command line: one file per subcommand.

mod account;
mod app;
mod audio;
mod audio_file;
mod audio_import;
mod audit;
mod bill;
mod call;
mod call_list;
mod call_place;
mod call_steps;
mod call_story;
mod call_trace;
mod call_watch;
mod callback;
mod check;
mod demo;
mod do_not_call;
mod generate;
mod intake;
mod lexicon;
mod list;
mod migrate;
mod operator;
mod phone;
mod rate;
mod serve;
mod setting_options;
mod speak_naturally;
mod trunk;
mod voice;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};

use crate::audio_files::voices;
use crate::config::{self, Config};
use crate::management::Management;
use crate::private_files;
use crate::telemetry;

/// Threads that work at something when all is done may go on for so long.
const LAST_WORK: Duration = Duration::from_secs(5);

/// Voice-notification server: one HTTPS request, one telephone call, one report, one bill line
///
/// An application sends one HTTPS request. Clarion dials over a SIP trunk, plays an audio file or speaks a text, reports what became of the call to a callback, and writes a line of the daily bill.
#[derive(Debug, Parser)]
#[command(name = "clarion", version, propagate_version = true)]
struct Cli {
    /// Settings file [default: clarion.toml in the current folder, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::Serve),
    /// Check settings, database, disk, certificate, trunks and speech, and say what to mend
    Check(check::Check),
    /// Bring the schema of the database up to date, as the server does when it starts
    Migrate,
    #[command(flatten)]
    OnStore(StoreCommand),
    /// Print every setting with its default value
    Config,
    /// Print the API as an OpenAPI document
    Openapi,
    /// Run a telephone that answers by a script, to try Clarion without a trunk
    Phone(Box<phone::PhoneOptions>),
    /// Demonstrate everything on this machine: server, account, request, crash, restart, bill
    Demo(demo::Demo),
    /// Speak texts with the natural voice, as the server asks on standard input
    #[command(name = voices::SPEAK_COMMAND, hide = true)]
    SpeakNaturally(speak_naturally::SpeakNaturally),
    /// Write manual pages or shell completions into a folder
    #[command(subcommand, hide = true)]
    Generate(generate::GenerateCommand),
}

/// What works on the database itself, beside a running server or without one.
#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Manage accounts: who may request calls
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Manage the applications of an account
    #[command(subcommand)]
    App(app::AppCommand),
    /// Manage rates: what the calls of an account cost
    #[command(subcommand)]
    Rate(rate::RateCommand),
    /// Manage bills: close days, export and verify them, import records of other services
    #[command(subcommand)]
    Bill(bill::BillCommand),
    /// Manage audio files of one application or of all
    #[command(subcommand)]
    Audio(audio::AudioCommand),
    /// Show who speaks texts, and hear how that sounds
    #[command(subcommand)]
    Voice(voice::VoiceCommand),
    /// Manage the words that an application wants to be said otherwise than they are written
    #[command(subcommand)]
    Lexicon(lexicon::LexiconCommand),
    /// Place calls, watch and show them, cancel one, stop dialling, bar numbers
    #[command(subcommand)]
    Call(call::CallCommand),
    /// Manage lists of numbers that an account keeps, whom notices call by @name
    #[command(subcommand)]
    List(list::ListCommand),
    /// Manage the numbers that an account must not call
    #[command(subcommand)]
    DoNotCall(do_not_call::DoNotCallCommand),
    /// Manage intakes: where monitoring tools bring alerts
    #[command(subcommand)]
    Intake(intake::IntakeCommand),
    /// Manage operators: who may use the console
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// Show trunks, drain one, open it again, test one with a call
    #[command(subcommand)]
    Trunk(trunk::TrunkCommand),
    /// Show callbacks and their attempts, and send one again
    #[command(subcommand)]
    Callback(callback::CallbackCommand),
    /// Show who changed what and when
    Audit(audit::Audit),
}

pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("clarion: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    // Pages and completions are for everybody.
    if !matches!(cli.command, Command::Generate(_)) {
        private_files::keep_others_out();
    }
    let load = || Config::load(cli.config.as_deref());
    match cli.command {
        Command::Config => {
            print!("{}", config::DEFAULTS);
        }
        Command::Openapi => {
            println!("{:#}", crate::api::openapi::describe());
        }
        Command::Serve(serve) => serve::run(&serve, load()?)?,
        Command::Migrate => migrate::run(load()?)?,
        Command::Check(check) => block_on(check.run(cli.config.as_deref()))?,
        Command::Phone(phone) => block_on(phone.run())?,
        Command::Demo(demo) => block_on(demo.run())?,
        Command::SpeakNaturally(speak) => speak.run()?,
        Command::Generate(command) => generate::run(&command, Cli::command())?,
        Command::OnStore(StoreCommand::Call(call::CallCommand::Trace(trace))) => {
            block_on(trace.run(&load()?))?;
        }
        Command::OnStore(command) => return with_store(load()?, command),
    }
    Ok(ExitCode::SUCCESS)
}

impl StoreCommand {
    async fn run(self, management: &Management) -> anyhow::Result<ExitCode> {
        match self {
            Self::Account(command) => account::run(command, management).await?,
            Self::App(command) => app::run(command, management).await?,
            Self::Rate(command) => rate::run(command, management).await?,
            Self::Bill(command) => bill::run(command, management).await?,
            Self::Callback(command) => callback::run(command, management).await?,
            Self::Call(command) => return call::run(command, management).await,
            Self::List(command) => list::run(command, management).await?,
            Self::DoNotCall(command) => do_not_call::run(command, management).await?,
            Self::Intake(command) => intake::run(command, management).await?,
            Self::Operator(command) => operator::run(command, management).await?,
            Self::Trunk(command) => trunk::run(command, management).await?,
            Self::Audio(command) => audio::run(command, management).await?,
            Self::Voice(command) => voice::run(command, management).await?,
            Self::Lexicon(command) => lexicon::run(command, management).await?,
            Self::Audit(audit) => audit::run(audit, management).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Runtime::new()?;
    let result = runtime.block_on(work);
    match &result {
        Ok(_) => runtime.shutdown_timeout(LAST_WORK),
        // Why it failed is said at once. A disk that hangs would keep a thread for ever, and the process with it.
        Err(_) => runtime.shutdown_background(),
    }
    result
}

fn with_store(config: Config, command: StoreCommand) -> anyhow::Result<ExitCode> {
    telemetry::start_logging(&config.log)?;
    block_on(async {
        private_files::data_folder(&config.data_dir).context("data_dir")?;
        let management = Management::open(Arc::new(config), audit::this_user()).await?;
        let management = management.written(&audit::command_line());
        let result = command.run(&management).await;
        management.close().await;
        result
    })
}

/// A secret: written out, read from a file (`@FILE`), or read from standard input (`-`), where no list of processes shows it.
#[derive(Debug, Clone)]
struct Given<T>(T);

impl<T: FromStr<Err: ToString>> FromStr for Given<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = given_text(text)?.parse();
        parsed.map(Self).map_err(|error: T::Err| error.to_string())
    }
}

fn given_text(text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        Some(path) => config::secret_in(Path::new(path)),
        None if text == "-" => config::read_secret(std::io::stdin()),
        None => Ok(text.to_owned()),
    }
}

/// Prints JSON for scripts or lines for people.
fn print(json: bool, value: &serde_json::Value) {
    if json {
        println!("{value:#}");
        return;
    }
    match value {
        serde_json::Value::Array(items) if items.is_empty() => println!("none"),
        serde_json::Value::Array(items) => items.iter().for_each(|item| println!("{}", row(item))),
        _ => lines(value, ""),
    }
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::Bool(true) => "on".to_owned(),
        serde_json::Value::Bool(false) => "off".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) if items.is_empty() => "-".to_owned(),
        serde_json::Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn lines(value: &serde_json::Value, indent: &str) {
    for (name, value) in value.as_object().into_iter().flatten() {
        if value.is_object() {
            println!("{indent}{name}");
            lines(value, &format!("{indent}  "));
        } else {
            println!("{indent}{name:<22} {}", plain(value));
        }
    }
}

/// Writes one row of a list. A list shows the first few values of each item; `show` shows all of them.
fn row(value: &serde_json::Value) -> String {
    let values = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_object() && !value.is_array());
    values
        .take(4)
        .map(|(_, value)| format!("{:<16}", plain(value)))
        .collect::<Vec<_>>()
        .join("  ")
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests;
