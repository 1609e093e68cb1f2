//! Tests through the front door: a real server, a real database, real clients. Each test has a server and a folder of its own.

mod support;

mod authentication;
mod hostile;
mod store_contract;
