//! The rules of the platform, as pure code: no input or output, no async. Time and randomness are arguments.

pub mod account;
pub mod attempt;
pub mod audit;
pub mod bill;
pub mod call;
pub mod call_state;
pub mod call_window;
pub mod callback;
pub mod claim;
pub mod customer_limits;
pub mod digit_pattern;
pub mod leg;
pub mod money;
pub mod number_pattern;
pub mod numbering_plan;
pub mod outcome;
pub mod phone_number;
pub mod prefix;
pub mod prompt;
pub mod redirect;
pub mod request_key;
pub mod response_policy;
pub mod route;
pub mod status_code;
pub mod token_bucket;
pub mod trunk_grants;
