//! The settings of accounts and applications as options, from the tables of `management::settings`.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::given_text;
use crate::management::settings::{Setting, SettingKind, Settings};

/// A change that is made of options.
#[derive(Debug)]
pub struct SettingOptions<C>(pub Box<C>);

fn option<C>(setting: &'static Setting<C>) -> Arg {
    Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.value)
        .help(setting.help)
        .allow_hyphen_values(setting.kind == SettingKind::List)
}

impl<C: Settings> Args for SettingOptions<C> {
    fn augment_args(command: Command) -> Command {
        command.args(C::TABLE.iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: Settings> FromArgMatches for SettingOptions<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut change = C::default();
        for setting in C::TABLE {
            let Some(text) = matches.get_one::<String>(setting.name) else {
                continue;
            };
            read(setting, &mut change, text).map_err(|mistake| {
                clap::Error::raw(ErrorKind::ValueValidation, format!("{mistake}\n"))
            })?;
        }
        Ok(Self(Box::new(change)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn read<C>(setting: &Setting<C>, change: &mut C, text: &str) -> Result<(), String> {
    let name = format!("--{}", setting.name);
    let text = match setting.kind {
        SettingKind::Secret => given_text(text).map_err(|mistake| format!("{name}: {mistake}"))?,
        _ => text.to_owned(),
    };
    let added = setting.read(change, &text);
    added.map_err(|mistake| mistake.said_of(&name))
}
