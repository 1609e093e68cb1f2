//! Tests through the front door: a real server, a real database, real clients. Each test has a server and a folder of its own.

#[macro_use]
mod support;

mod audio_files;
mod authentication;
mod backup;
mod bill_contract;
mod bill_crash;
mod bill_days;
mod bill_import;
mod bill_plans;
mod bill_tokens;
mod bills;
mod call_sids;
mod callbacks;
mod calls;
mod captures;
mod check;
mod clients;
mod command_line;
mod crash;
mod damage;
mod demo;
mod dependencies;
mod disk;
mod documents;
mod hostile;
mod https;
mod landing_call_fields;
mod limits;
mod lives;
mod operator;
mod outage;
mod overload;
mod packaging;
mod queue_contract;
mod quirks;
mod soak;
mod status_codes;
mod store_contract;
mod supervision;
mod watching;
