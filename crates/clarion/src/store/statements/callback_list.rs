//! A list of callbacks, the newest first. It walks along one index and looks at a bounded stretch of it, so that no question costs more because there is more.

use super::callbacks::{COLUMNS, OF_CALLS};
use crate::domain::callback::{Callback, CallbackKey, CallbackState, EVENTS_AT};
use crate::store::binding::Bind;
use crate::store::{CallbackFilter, CallbackPage};

/// So many callbacks are looked at where no index answers the question.
const STRETCH: u32 = 5_000;
const NEWEST_FIRST: &str = "ORDER BY call_sid DESC, seq DESC";

/// What a list walks along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallbackWalk {
    /// Every callback.
    All,
    /// Those of a state whose index has the order of the list.
    In(CallbackState),
    /// Those that wait and are wanted. No index has them in the order of the list, but there are few of them.
    FewWaiting,
}

/// A question with its values. Its text has them by number.
#[derive(Debug)]
pub struct Question<'a> {
    pub text: String,
    pub values: Vec<Bind<'a>>,
    /// Stands before the number of a value.
    mark: char,
}

impl<'a> Question<'a> {
    fn new(mark: char) -> Self {
        Self {
            text: String::new(),
            values: Vec::new(),
            mark,
        }
    }

    fn given(&mut self, value: impl Into<Bind<'a>>) -> String {
        self.values.push(value.into());
        format!("{}{}", self.mark, self.values.len())
    }

    fn of_customer(&mut self, filter: &'a CallbackFilter) -> String {
        let mut wanted = String::new();
        if let Some(app) = &filter.app {
            let app = self.given(app.as_str());
            wanted.push_str(&format!(" AND callbacks.app_id = {app}"));
        }
        if let Some(host) = &filter.host {
            let events = self.given(format!("{EVENTS_AT}{host}"));
            let host = self.given(host);
            wanted.push_str(&format!(" AND host IN ({host}, {events})"));
        }
        wanted
    }

    fn before(&mut self, filter: &'a CallbackFilter) -> String {
        let Some(before) = &filter.before else {
            return String::new();
        };
        let call = self.given(before.call.as_str());
        let seq = self.given(i64::from(before.seq));
        format!(" AND (call_sid, seq) < ({call}, {seq})")
    }
}

/// Counts those that wait and are wanted, as far as it matters. `None`: the list is not about them.
pub fn waiting(filter: &CallbackFilter, mark: char) -> Option<Question<'_>> {
    (filter.state == Some(CallbackState::Waiting)).then(|| {
        let mut question = Question::new(mark);
        let (waits, wanted) = (
            is_in(CallbackState::Waiting),
            question.of_customer(filter),
        );
        question.text = format!(
            "SELECT count(*) FROM (SELECT 1 FROM callbacks WHERE {waits}{wanted} LIMIT {}) AS waiting",
            STRETCH + 1
        );
        question
    })
}

#[derive(Debug)]
pub struct CallbackList<'a> {
    filter: &'a CallbackFilter,
    mark: char,
    walk: CallbackWalk,
}

impl<'a> CallbackList<'a> {
    /// `waiting` is what was counted, if it was asked for.
    pub fn new(filter: &'a CallbackFilter, waiting: Option<u32>, mark: char) -> Self {
        let walk = match filter.state {
            Some(state @ (CallbackState::Delivering | CallbackState::GivenUp)) => {
                CallbackWalk::In(state)
            }
            _ if waiting.is_some_and(|count| count <= STRETCH) => CallbackWalk::FewWaiting,
            _ => CallbackWalk::All,
        };
        Self { filter, mark, walk }
    }

    /// Whether each callback must be looked at, because the walk does not answer all of the question.
    fn searches(&self) -> bool {
        let of_customer = self.filter.app.is_some() || self.filter.host.is_some();
        match self.walk {
            CallbackWalk::All => of_customer || self.filter.state.is_some(),
            CallbackWalk::In(_) => of_customer,
            CallbackWalk::FewWaiting => false,
        }
    }

    /// Callbacks that are looked at.
    fn stretch(&self) -> u32 {
        if self.searches() {
            self.filter.limit.max(STRETCH)
        } else {
            self.filter.limit
        }
    }

    pub fn found(&self) -> Question<'a> {
        let mut question = Question::new(self.mark);
        let limit = question.given(self.filter.limit);
        let (stretch, wanted) = match self.walk {
            CallbackWalk::FewWaiting => {
                let (waits, of_customer) = (
                    is_in(CallbackState::Waiting),
                    question.of_customer(self.filter),
                );
                // The limit keeps the databases from looking through all callbacks for the order's sake.
                let few = format!("{waits}{of_customer} LIMIT {STRETCH}");
                (few, question.before(self.filter))
            }
            _ => (
                format!("{} LIMIT {}", self.walked(&mut question), self.stretch()),
                self.wanted(&mut question),
            ),
        };
        question.text = format!(
            "SELECT {COLUMNS} FROM (SELECT * FROM callbacks WHERE {stretch}) AS callbacks {OF_CALLS} \
             WHERE true{wanted} {NEWEST_FIRST} LIMIT {limit}"
        );
        question
    }

    /// Asks for the last callback that was looked at, if the search has found less than a page. What has come since begins it a little later: the
    /// next page then looks at some twice, and leaves none out.
    pub fn end(&self, found: usize) -> Option<Question<'a>> {
        if !self.searches() || is_full(found, self.filter) {
            return None;
        }
        let mut question = Question::new(self.mark);
        let walked = self.walked(&mut question);
        question.text = format!(
            "SELECT call_sid, seq FROM callbacks WHERE {walked} LIMIT 1 OFFSET {}",
            self.stretch().saturating_sub(1)
        );
        Some(question)
    }

    /// The walk from where the page begins.
    fn walked(&self, question: &mut Question<'a>) -> String {
        let state = match self.walk {
            CallbackWalk::In(state) => is_in(state),
            _ => "true".to_owned(),
        };
        let before = question.before(self.filter);
        format!("{state}{before} {NEWEST_FIRST}")
    }

    /// What is asked of each callback of the stretch.
    fn wanted(&self, question: &mut Question<'a>) -> String {
        let of_customer = question.of_customer(self.filter);
        match (self.walk, self.filter.state) {
            (CallbackWalk::All, Some(state)) => format!(" AND {}{of_customer}", is_in(state)),
            _ => of_customer,
        }
    }
}

/// The number stands in the text, not in a value: only then are the partial indices used.
fn is_in(state: CallbackState) -> String {
    format!("state = {}", state.number())
}

fn is_full(found: usize, filter: &CallbackFilter) -> bool {
    found >= usize::try_from(filter.limit).unwrap_or(usize::MAX)
}

pub fn page(
    callbacks: Vec<Callback>,
    end: Option<CallbackKey>,
    filter: &CallbackFilter,
) -> CallbackPage {
    let last = callbacks.last().map(|last| last.key.clone());
    let next = last.filter(|_| is_full(callbacks.len(), filter));
    CallbackPage {
        next: next.or_else(|| end.clone()),
        searched_until: end,
        callbacks,
    }
}
