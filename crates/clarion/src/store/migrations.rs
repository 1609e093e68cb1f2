//! The schema, step by step, and which programs may work with which schema.
//!
//! Migrations only expand: they add tables, columns and indices. So a program can go on working with a schema that is newer than itself,
//! unless a migration says otherwise (`oldest_program`), and nodes can be upgraded one after the other.

use anyhow::bail;

use super::statements::Dialect;

/// One step. Its number is its place in the list, from 1 on.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    sqlite: &'static str,
    postgres: &'static str,
    /// Programs that know at least this many steps can work with the schema that it makes.
    oldest_program: usize,
}

macro_rules! migration {
    ($name:literal, $oldest_program:literal) => {
        Migration {
            sqlite: include_str!(concat!("../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
            oldest_program: $oldest_program,
        }
    };
}

pub const MIGRATIONS: &[Migration] = &[
    migration!("0001_first", 1),
    migration!("0002_audio_files_and_probe", 2),
    migration!("0003_clock_and_lanes", 3),
    migration!("0004_limits", 4),
    migration!("0005_schema_info", 5),
    migration!("0006_request_keys", 6),
    migration!("0007_attempts_and_legs", 6),
    migration!("0008_outbox", 8),
    migration!("0009_grant_questions", 8),
    migration!("0010_stories_of_legs", 8),
    // An earlier program frees a callee by another key than it was accepted with.
    migration!("0011_changes_of_barred_numbers", 11),
    migration!("0012_audit_trail", 11),
    migration!("0013_callbacks_by_account", 11),
    migration!("0014_audio_quotas", 11),
    migration!("0015_verification", 11),
    migration!("0016_notices", 11),
    migration!("0017_lists", 11),
    migration!("0018_console", 11),
    migration!("0019_operators", 11),
    migration!("0020_intakes", 11),
    migration!("0021_hearing", 11),
    migration!("0022_voices", 11),
    migration!("0023_hang_up_reasons", 11),
    migration!("0024_caps_of_accounts", 11),
    migration!("0025_late_events", 11),
    migration!("0026_turns", 11),
    migration!("0027_concerns_of_nodes", 11),
];

/// The version from which on programs know calls that say a code. An earlier one would dial them and say nothing.
pub const VERIFICATION: usize = 15;

/// The version from which on programs know notices. An earlier one would end them with their first attempt.
pub const NOTICES: usize = 16;

/// The version from which on programs know the lists of notices. An earlier one would call nobody of them.
pub const LISTS: usize = 17;

/// The version from which on programs know intakes. An earlier one would take the end of an incident for a cancellation, and a silence for nothing that it knows.
pub const INTAKES: usize = 20;
/// The version from which on programs listen for who answers. An earlier one would speak to machines.
pub const HEARING: usize = 21;

/// The version that this program wants.
pub const WANTED: usize = MIGRATIONS.len();

impl Migration {
    pub const fn text(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

/// Programs that know fewer steps than this cannot work with our schema.
pub const fn oldest_program() -> usize {
    MIGRATIONS[WANTED - 1].oldest_program
}

/// A schema as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundSchema {
    /// 0 where nothing has been made yet.
    pub version: usize,
    pub oldest_program: usize,
}

impl FoundSchema {
    pub const NONE: Self = Self {
        version: 0,
        oldest_program: 0,
    };

    /// Whether this program can work with it, or bring it up to date.
    pub fn is_usable(self) -> bool {
        self.version <= WANTED || self.oldest_program <= WANTED
    }
}

/// What whoever opens a database may do to its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaRight {
    /// `serve` and `migrate` bring it up to date.
    Migrate,
    /// Other commands take it as it is. In an empty database there is nothing that they could spoil: there they make it.
    TakeAsIs,
}

/// The steps that are to be taken, or why the database is not for this program.
pub fn steps(found: FoundSchema, right: SchemaRight) -> anyhow::Result<&'static [Migration]> {
    let version = found.version;
    if !found.is_usable() {
        bail!(
            "its schema has version {version}, and this program knows only {WANTED}: use the newer program that wrote it"
        );
    }
    if version > 0 && version < WANTED && right == SchemaRight::TakeAsIs {
        bail!(
            "its schema has version {version}, and this program wants {WANTED}: back it up and run `clarion migrate`, or start the server, which does it"
        );
    }
    Ok(MIGRATIONS.get(version..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(version: usize, oldest_program: usize) -> FoundSchema {
        FoundSchema {
            version,
            oldest_program,
        }
    }

    #[test]
    fn a_newer_schema_is_for_us_unless_it_says_otherwise() {
        for right in [SchemaRight::Migrate, SchemaRight::TakeAsIs] {
            assert!(steps(found(WANTED, WANTED), right).unwrap().is_empty());
            assert!(steps(found(WANTED + 3, WANTED), right).unwrap().is_empty());
            let refused = steps(found(WANTED + 1, WANTED + 1), right).unwrap_err();
            assert!(refused.to_string().contains("use the newer program"));
            assert_eq!(steps(FoundSchema::NONE, right).unwrap().len(), WANTED);
        }
    }

    #[test]
    fn what_programs_know_begins_with_its_migration() {
        for (version, column) in [
            (NOTICES, "calls ADD COLUMN notice"),
            (LISTS, "CREATE TABLE call_lists"),
            (HEARING, "calls ADD COLUMN answered_by"),
        ] {
            let text = MIGRATIONS[version - 1].text(Dialect::Sqlite);
            assert!(text.contains(column), "{version}: {text}");
        }
    }

    #[test]
    fn an_older_schema_is_changed_only_by_those_who_may() {
        assert_eq!(
            steps(found(2, 2), SchemaRight::Migrate).unwrap().len(),
            WANTED - 2
        );
        let refused = steps(found(2, 2), SchemaRight::TakeAsIs).unwrap_err();
        assert!(refused.to_string().contains("`clarion migrate`"));
    }
}
