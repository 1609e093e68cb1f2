//! `clarion generate`: manual pages and shell completions for packages, made from the command line itself. It is hidden, because only
//! packaging/install calls it.
//!
//! The text of a page is that of `--help`. Only text that belongs to no command is here (files, environment, exit status).

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Subcommand;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

#[derive(Debug, Subcommand)]
pub enum GenerateCommand {
    /// Write a manual page for each command
    Man {
        /// An existing folder
        folder: PathBuf,
    },
    /// Write completions for bash, zsh and fish
    Completions {
        /// An existing folder
        folder: PathBuf,
    },
}

/// Writes the files. `program` is the whole command line.
pub fn run(command: &GenerateCommand, program: clap::Command) -> anyhow::Result<()> {
    match command {
        GenerateCommand::Man { folder } => {
            // Otherwise every command would have a page about its `help`.
            let mut program = program.disable_help_subcommand(true);
            program.build();
            write_pages(&program, folder).with_context(|| cannot_write(folder))
        }
        GenerateCommand::Completions { folder } => {
            let mut program = visible(&program);
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                clap_complete::generate_to(shell, &mut program, "clarion", folder)
                    .with_context(|| cannot_write(folder))?;
            }
            Ok(())
        }
    }
}

fn cannot_write(folder: &Path) -> String {
    format!("cannot write to {}", folder.display())
}

/// Returns the command line without its hidden parts, which clap_complete would offer.
fn visible(command: &clap::Command) -> clap::Command {
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    clap::Command::new(command.get_name().to_owned())
        .version(command.get_version().unwrap_or_default().to_owned())
        .propagate_version(true)
        .about(command.get_about().cloned().unwrap_or_default())
        .args(arguments.cloned())
        .subcommands(subcommands.map(visible))
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    for subcommand in visible {
        write_pages(subcommand, folder)?;
    }
    let version = command.get_version().unwrap_or_default();
    let command = command
        .clone()
        .subcommand_value_name("COMMAND")
        .subcommand_help_heading("COMMANDS");
    // The same source must make the same page, so the page has no date. An empty date would let the next argument take its place.
    let page = Man::new(command.clone())
        .date(" ")
        .source(format!("Clarion {version}"))
        .manual("Clarion manual");
    let mut file = File::create(folder.join(page.get_filename()))?;
    page.render_title(&mut file)?;
    page.render_name_section(&mut file)?;
    page.render_synopsis_section(&mut file)?;
    page.render_description_section(&mut file)?;
    page.render_options_section(&mut file)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut file)?;
    }
    if let Some(notes) = command.get_after_help() {
        as_it_stands("NOTES", &notes.to_string()).to_writer(&mut file)?;
    }
    if page.get_filename() == "clarion.1" {
        surroundings().to_writer(&mut file)?;
    }
    file.flush()
}

/// Returns a section whose line ends are kept.
fn as_it_stands(title: &str, text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

/// Returns the sections that belong to the program as a whole, for its first page.
fn surroundings() -> Roff {
    let mut roff = Roff::new();
    let mut section = |title: &str, entries: &[(&str, &str)]| {
        roff.control("SH", [title]);
        for (name, meaning) in entries {
            roff.control("TP", []);
            roff.text([bold(*name)]);
            roff.text([roman(*meaning)]);
        }
    };
    section(
        "FILES",
        &[
            (
                "/etc/clarion/clarion.toml",
                "The settings of the installed service. `clarion config` prints every setting with its default value and its meaning.",
            ),
            (
                "/var/lib/clarion",
                "The data of the installed service: database, audio files, bills and certificates.",
            ),
            (
                "/usr/share/clarion",
                "Alert rules for Prometheus and a dashboard for Grafana.",
            ),
        ],
    );
    section(
        "ENVIRONMENT",
        &[
            (
                "CLARION_CONFIG",
                "The settings file, where --config does not name one.",
            ),
            (
                "CLARION_SECTION__SETTING",
                "Sets one setting and wins over the file: CLARION_HTTP__LISTEN sets `listen` in the section [http].",
            ),
        ],
    );
    section(
        "EXIT STATUS",
        &[
            ("0", "Success."),
            ("1", "The command failed. The reason is on standard error."),
            ("2", "The command line is wrong."),
            (
                "3",
                "Of clarion call watch and clarion call place --watch: nobody was reached.",
            ),
            ("4", "Of the same: the call failed."),
            (
                "74",
                "The disk failed, or the database file is damaged. Starting again does not help before the disk is mended or the file restored.",
            ),
        ],
    );
    roff
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::Cli;

    /// A missing text would be missing in `--help`, in the manual and in the completions.
    #[test]
    fn every_command_and_every_argument_says_what_it_is_for() {
        let mut program = Cli::command().disable_help_subcommand(true);
        program.build();
        let mut commands = vec![&program];
        let mut silent = Vec::new();
        while let Some(command) = commands.pop() {
            let name = command.get_bin_name().unwrap_or_default();
            if command.get_about().is_none() {
                silent.push(name.to_owned());
            }
            let arguments = command
                .get_arguments()
                .filter(|argument| argument.get_help().is_none());
            silent.extend(arguments.map(|argument| format!("{name} {argument}")));
            commands.extend(command.get_subcommands());
        }
        assert_eq!(silent, [""; 0]);
    }
}
