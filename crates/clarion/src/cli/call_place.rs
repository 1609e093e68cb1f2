//! `clarion call place`: requests a call as an application does, signed and over HTTPS, so that the answer is what an application would get.
//!
//! The options are the fields of the API's own table: a field that the API gets, this command has. Whether a value is right, the server decides alone.
//! The token of the account is read from the database, by whoever may read that; it is neither an option nor printed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use rustls::RootCertStore;
use serde_json::{Map, Value};

use super::call_watch;
use crate::api::LANDING_CALL;
use crate::api::wire::Field;
use crate::check::names_of_certificate;
use crate::client::{ApiCredentials, Client};
use crate::clock::Clock;
use crate::config::{Config, HttpUrl};
use crate::domain::account::{AppId, Application};
use crate::domain::call::CallSid;
use crate::domain::status_code::StatusCode;
use crate::http::tls::Certificates;
use crate::management::{Management, NotedChange};
use crate::outgoing::{add_roots, trusted_roots};

/// The field that `--app` sets.
const APP_ID: &str = "appId";
/// An answer takes a second at most, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(60);
/// More choices than these are not listed.
const CHOICES: usize = 20;

#[derive(Debug, Args)]
pub struct PlaceCall {
    /// The application that requests the call [default: the only one there is]
    #[arg(long, value_name = "APPID", alias = APP_ID)]
    app: Option<AppId>,
    #[command(flatten)]
    fields: CallFields,
    /// Another server than the one of the settings, such as https://voice.example.com:8883
    #[arg(long, value_name = "URL", help_heading = "Server")]
    server: Option<HttpUrl>,
    /// A file with the CA of that server, where it is neither a public one nor ours
    #[arg(
        long,
        value_name = "FILE",
        requires = "server",
        help_heading = "Server"
    )]
    ca: Option<PathBuf>,
    /// Then watch the call, as `clarion call watch` does
    #[arg(long)]
    watch: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Names and values of the fields that were given.
#[derive(Debug)]
struct CallFields(Vec<(&'static str, String)>);

/// Every field that has an option of its own name.
fn fields() -> impl Iterator<Item = &'static Field> {
    let fields = LANDING_CALL.fields.iter();
    fields.filter(|field| field.name != APP_ID)
}

/// `redialTimes` is `--redial-times`; as the API spells it, it is understood too.
fn option(field: &'static Field) -> Arg {
    let name = field.option_name();
    let default = match field.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let mut option = Arg::new(field.name)
        .value_name("VALUE")
        .required(field.required)
        .allow_negative_numbers(true)
        // What a newer name has replaced need not be offered.
        .hide(field.rule.starts_with("Older name"))
        .help(format!("{}{default}", field.rule.trim_end_matches('.')))
        .help_heading("Fields of the request");
    if name != field.name {
        option = option.alias(field.name);
    }
    option.long(name)
}

impl Args for CallFields {
    fn augment_args(command: Command) -> Command {
        command.args(fields().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CallFields {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |field: &'static Field| {
            let value = matches.get_one::<String>(field.name)?;
            Some((field.name, value.clone()))
        };
        Ok(Self(fields().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl CallFields {
    fn body(&self, app: &AppId) -> String {
        let mut body = Map::new();
        body.insert(APP_ID.to_owned(), app.as_str().into());
        for (name, value) in &self.0 {
            body.insert((*name).to_owned(), value.as_str().into());
        }
        Value::Object(body).to_string()
    }
}

impl PlaceCall {
    /// The request is noted as the change that it is, although the server makes it.
    pub async fn run(self, management: &Management) -> anyhow::Result<ExitCode> {
        let change = NotedChange::new("call place");
        let call = management.noted(change, self.place(management)).await?;
        if !self.watch {
            return Ok(ExitCode::SUCCESS);
        }
        call_watch::watch(&call, self.json, management).await
    }

    async fn place(&self, management: &Management) -> anyhow::Result<CallSid> {
        let (config, clock) = (management.config(), management.clock());
        let application = chosen_app(management, self.app.clone()).await?;
        let account = management.account(&application.account).await?;
        let credentials = ApiCredentials {
            sid: account.sid,
            token: account.auth_token,
        };
        let client = match &self.server {
            Some(url) => self.other_server(url, config).await?,
            None => own_listener(config)?,
        };
        let body = self.fields.body(&application.id);
        let answer = tokio::time::timeout(PATIENCE, send(&client, &credentials, body, clock));
        let answer = answer.await.context("the server does not answer")??;
        self.show(&answer)
    }

    async fn other_server(&self, url: &HttpUrl, config: &Config) -> anyhow::Result<Client> {
        ensure!(
            url.is_https() && url.is_bare(),
            "--server must be https:// with a host and a port, such as https://voice.example.com:8883"
        );
        let (name, port) = (url.host(), url.port());
        let unknown = || format!("{name} cannot be found");
        let mut found = tokio::net::lookup_host((name, port))
            .await
            .with_context(unknown)?;
        let address = found.next().with_context(unknown)?;
        let mut roots = trusted_roots(self.ca.as_deref())?;
        // Nodes of one installation often share the CA that the first one has made.
        let own = Certificates::expected(&config.http, &config.data_dir.join("tls")).ca;
        if let Some(own) = own.filter(|own| own.exists()) {
            add_roots(&mut roots, &own)?;
        }
        Client::named(name, address, Some(roots))
    }

    /// Shows the answer. Returns the callSid, or what the server has refused.
    fn show(&self, answer: &str) -> anyhow::Result<CallSid> {
        let not_ours = || format!("this is not an answer of Clarion: {answer}");
        let value: Value = serde_json::from_str(answer).with_context(not_ours)?;
        if self.json && self.watch {
            println!("{value}");
        } else if self.json {
            println!("{value:#}");
        }
        let code = value["statusCode"].as_str().with_context(not_ours)?;
        if code != StatusCode::Success.code() {
            let sentence = value["statusMsg"].as_str().unwrap_or_default();
            bail!("{code} {sentence}");
        }
        let call = value[LANDING_CALL.root]["callSid"].as_str();
        let call = call.with_context(not_ours)?;
        if !self.json {
            println!("{call}");
        }
        call.parse().map_err(anyhow::Error::msg)
    }
}

/// The server of these settings, at the first address that it listens on.
fn own_listener(config: &Config) -> anyhow::Result<Client> {
    let http = &config.http;
    let listen = http
        .listen
        .first()
        .context("http.listen names no address")?;
    ensure!(
        listen.port() != 0,
        "http.listen leaves the port to the system, so name the server with --server"
    );
    let host = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        host => host,
    };
    let address = SocketAddr::new(host, listen.port());
    let client = if http.plain {
        Client::named(&host.to_string(), address, None)?
    } else {
        let (name, roots) = own_certificate(config)?;
        Client::named(&name, address, Some(roots))?
    };
    let version = http.soft_versions.first();
    Ok(match version {
        Some(version) => client.with_version(version),
        None => client,
    })
}

/// A name of the certificate that the server of these settings shows, and who may have signed it.
fn own_certificate(config: &Config) -> anyhow::Result<(String, RootCertStore)> {
    let files = Certificates::expected(&config.http, &config.data_dir.join("tls"));
    let roots = match &files.ca {
        Some(ca) => {
            ensure!(
                ca.exists(),
                "{} does not exist: the server has not been started with these settings yet",
                ca.display()
            );
            let mut roots = RootCertStore::empty();
            add_roots(&mut roots, ca)?;
            roots
        }
        None => trusted_roots(Some(&files.certificate))?,
    };
    let names = names_of_certificate(&files.certificate).map_err(anyhow::Error::msg)?;
    let name = names.first();
    let name = name.with_context(|| format!("{} has no name", files.certificate.display()))?;
    // A star stands for any one label.
    Ok((name.replacen('*', "clarion", 1), roots))
}

async fn send(
    client: &Client,
    credentials: &ApiCredentials,
    body: String,
    clock: &Clock,
) -> anyhow::Result<String> {
    let connection = client.connect().await;
    let mut connection = connection
        .with_context(|| format!("no connection to the server at {}", client.address()))?;
    let signature = credentials.sign(&clock.wall());
    let operation = "Calls/LandingCalls/";
    let answer = connection.operation(
        credentials,
        &signature,
        operation,
        "application/json",
        Some(body),
    );
    answer.await.context(
        "the request was sent, but whether it was accepted is not known: `clarion call list` shows it",
    )
}

/// The application that was named, or the only one there is.
pub async fn chosen_app(
    management: &Management,
    named: Option<AppId>,
) -> anyhow::Result<Application> {
    if let Some(id) = named {
        return Ok(management.application(&id).await?);
    }
    let mut usable = management.usable_applications().await?;
    match usable.len() {
        0 => bail!(
            "there is no application that may call: `clarion account add`, then `clarion app add`"
        ),
        1 => Ok(usable.remove(0)),
        count => {
            let choice = |app: &Application| {
                format!(
                    "\n  --app {}  {} (account {})",
                    app.id, app.name, app.account
                )
            };
            let choices: String = usable.iter().take(CHOICES).map(choice).collect();
            let more = if count > CHOICES { "\n  …" } else { "" };
            bail!("there are {count} applications, so name one of them:{choices}{more}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct OnlyPlace {
        #[command(flatten)]
        place: PlaceCall,
    }

    #[test]
    fn every_field_of_the_request_has_an_option_and_is_sent_as_it_was_given() {
        use clap::Parser;
        let app = "a".repeat(32);
        let fields = LANDING_CALL.fields.iter().map(|field| field.name);
        let fields: Vec<_> = fields.filter(|name| *name != APP_ID).collect();
        assert!(fields.len() > 20, "{fields:?}");
        let kebab = |name: &str| {
            let words = name.chars().flat_map(|letter| {
                let dash = letter.is_ascii_uppercase().then_some('-');
                dash.into_iter().chain([letter.to_ascii_lowercase()])
            });
            format!("--{}", words.collect::<String>())
        };
        for spelling in [kebab, |name: &str| format!("--{name}")] {
            let mut line = vec!["place".to_owned(), "--app".to_owned(), app.clone()];
            for name in &fields {
                line.extend([spelling(name), format!("value of {name}")]);
            }
            let place = OnlyPlace::try_parse_from(line).unwrap().place;
            let body = place.fields.body(&app.parse().unwrap());
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body[APP_ID], app);
            for name in &fields {
                assert_eq!(body[*name], format!("value of {name}"));
            }
        }
    }

    #[test]
    fn a_number_below_zero_is_a_value() {
        use clap::Parser;
        let line = ["place", "--to", "1", "--txt-speed", "-100"];
        let place = OnlyPlace::try_parse_from(line).unwrap().place;
        let given = [("to", "1".to_owned()), ("txtSpeed", "-100".to_owned())];
        assert_eq!(place.fields.0, given);
    }

    #[test]
    fn the_called_number_must_be_given() {
        use clap::Parser;
        assert!(OnlyPlace::try_parse_from(["place", "--media-txt", "x"]).is_err());
    }
}
