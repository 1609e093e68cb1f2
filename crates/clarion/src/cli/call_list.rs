//! `clarion call list`: which calls there are, the newest first.

use clap::Args;
use jiff::Timestamp;

use super::{call_story, print};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call::CallSid;
use crate::domain::call_record::{CallFilter, CallLife, CallSearch};
use crate::domain::call_state::CallState;
use crate::domain::outcome::Outcome;
use crate::management::{Management, ManagementError};

#[derive(Debug, Args)]
pub struct ListCalls {
    /// Only calls of this account
    #[arg(long)]
    account: Option<AccountSid>,
    /// Only calls of this application
    #[arg(long)]
    app: Option<AppId>,
    /// Only calls to this number, as the first that their request names
    #[arg(long)]
    number: Option<String>,
    /// Only calls accepted since this moment, such as 2026-11-15T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Only calls accepted before this moment
    #[arg(long, value_name = "TIME", conflicts_with = "before")]
    to: Option<Timestamp>,
    /// Only calls that have not ended
    #[arg(long)]
    alive: bool,
    #[command(flatten)]
    search: SearchOptions,
    /// Only calls before this one, for the next page
    #[arg(long, value_name = "CALLSID")]
    before: Option<CallSid>,
    /// Number of calls at most
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What searches a stretch of calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options that search some thousands of calls at a time")]
struct SearchOptions {
    /// Only calls with this outcome, such as busy
    #[arg(long)]
    outcome: Option<Outcome>,
    /// Only calls in this state: queued, claimed, dialling, ringing, answered or ended
    #[arg(long)]
    state: Option<CallState>,
    /// Only calls over this trunk
    #[arg(long, value_name = "NAME")]
    trunk: Option<String>,
    /// Only calls that show this number
    #[arg(long, value_name = "NUMBER")]
    caller: Option<String>,
    /// Only calls whose userData contains this
    #[arg(long, value_name = "TEXT")]
    user_data: Option<String>,
}

impl ListCalls {
    pub async fn run(self, management: &Management) -> anyhow::Result<()> {
        let json = self.json;
        let page = management.calls(self.filter(management)?).await?;
        let clock = management.clock();
        let rows = page.calls.iter();
        print(
            json,
            &rows.map(|call| call_story::outline(call, clock)).collect(),
        );
        if let Some(until) = page.searched_until {
            eprintln!("searched back to {until}; add --before {until} to search further");
        }
        Ok(())
    }

    fn filter(self, management: &Management) -> Result<CallFilter, ManagementError> {
        let digits = |number: Option<String>| number.map(|number| management.digits(&number));
        let to = self.to.map(|to| management.sid_at(to));
        Ok(CallFilter {
            account: self.account,
            app: self.app,
            number: digits(self.number).transpose()?,
            life: if self.alive {
                CallLife::Alive
            } else {
                CallLife::Any
            },
            from: self.from.map(|from| management.sid_at(from)),
            before: self.before.or(to),
            search: CallSearch {
                outcome: self.search.outcome,
                state: self.search.state,
                trunk: self.search.trunk,
                caller: digits(self.search.caller).transpose()?,
                user_data: self.search.user_data,
            },
            limit: self.limit,
        })
    }
}
