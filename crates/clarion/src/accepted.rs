//! How a door tells the dispatcher that it has accepted a call: the dispatcher wakes, and the prompt is rendered while the call waits.
//!
//! Nothing depends on it. A call whose announcement is lost is found in the queue a second later. Accounts take turns: the many texts of one do not
//! keep those of another from being rendered ahead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::account::AccountSid;
use crate::domain::prompt::Prompt;

/// Prompts that wait for being rendered ahead of their calls.
const MAX_AHEAD: usize = 1024;

/// A prompt, and whose call it belongs to.
pub type AcceptedPrompt = (AccountSid, Prompt);

/// The door's end. Cloning it makes another one.
#[derive(Debug, Clone)]
pub struct Announcer {
    queued: Arc<Notify>,
    prompts: AcceptedPrompts,
}

impl Announcer {
    /// Wakes `queued` for every call; who takes the prompts gets the other end.
    pub fn new(queued: Arc<Notify>) -> (Self, AcceptedPrompts) {
        let prompts = AcceptedPrompts::default();
        let accepted = prompts.clone();
        (Self { queued, prompts }, accepted)
    }

    /// A call is durable and waits in the queue.
    pub fn call_accepted(&self, account: AccountSid, prompt: Prompt) {
        self.queued.notify_one();
        self.prompts.add(account, prompt);
    }
}

/// The prompts that are to be rendered ahead, in turns.
#[derive(Debug, Clone, Default)]
pub struct AcceptedPrompts(Arc<SharedLines>);

#[derive(Debug, Default)]
struct SharedLines {
    lines: Mutex<Lines>,
    added: Notify,
}

/// One line for each account that has prompts; the first one's turn is next.
#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<(AccountSid, VecDeque<Prompt>)>,
    count: usize,
}

impl AcceptedPrompts {
    fn add(&self, account: AccountSid, prompt: Prompt) {
        let mut lines = self.lock();
        if lines.add(account, prompt) {
            self.0.added.notify_one();
        }
        show(lines.count);
    }

    /// Waits for the next one.
    pub async fn next(&self) -> AcceptedPrompt {
        loop {
            if let Some(prompt) = self.take() {
                return prompt;
            }
            self.0.added.notified().await;
        }
    }

    fn take(&self) -> Option<AcceptedPrompt> {
        let mut lines = self.lock();
        let taken = lines.take();
        show(lines.count);
        taken
    }

    /// A panic elsewhere leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn show(waiting: usize) {
    metrics::gauge!("clarion_prompts_prerender_waiting").set(waiting as f64);
}

impl Lines {
    /// Whether one more waits now. Where too many do, the newest of the longest line gives way, or this one: it is rendered when its call's turn comes.
    fn add(&mut self, account: AccountSid, prompt: Prompt) -> bool {
        let own = self.lines.iter().find(|(sid, _)| *sid == account);
        let own = own.map_or(0, |(_, line)| line.len());
        if self.count >= MAX_AHEAD {
            metrics::counter!("clarion_prompts_prerendered_total", "result" => "given up")
                .increment(1);
            let longest = self.lines.iter_mut().max_by_key(|(_, line)| line.len());
            match longest {
                Some((_, line)) if line.len() > own + 1 => line.pop_back(),
                _ => return false,
            };
            self.count -= 1;
        }
        self.count += 1;
        match self.lines.iter_mut().find(|(sid, _)| *sid == account) {
            Some((_, line)) => line.push_back(prompt),
            None => self.lines.push_back((account, [prompt].into())),
        }
        true
    }

    fn take(&mut self) -> Option<AcceptedPrompt> {
        let (account, mut line) = self.lines.pop_front()?;
        let prompt = line.pop_front()?;
        self.count -= 1;
        if !line.is_empty() {
            self.lines.push_back((account.clone(), line));
        }
        Some((account, prompt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::prompt::Speech;

    fn account(digit: char) -> AccountSid {
        digit.to_string().repeat(32).parse().unwrap()
    }

    fn prompt(text: &str) -> Prompt {
        Prompt::spoken(Speech::plain(text))
    }

    fn texts(lines: &mut Lines) -> Vec<String> {
        let taken = std::iter::from_fn(|| lines.take());
        taken
            .map(|(_, prompt)| prompt.speech.unwrap().text)
            .collect()
    }

    #[test]
    fn accounts_take_turns() {
        let mut lines = Lines::default();
        for text in ["a1", "a2", "a3"] {
            lines.add(account('a'), prompt(text));
        }
        lines.add(account('b'), prompt("b1"));
        lines.add(account('c'), prompt("c1"));
        lines.add(account('b'), prompt("b2"));
        assert_eq!(texts(&mut lines), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert_eq!(lines.count, 0);
    }

    #[test]
    fn who_has_the_most_gives_way_where_too_many_wait() {
        let mut lines = Lines::default();
        for number in 0..MAX_AHEAD {
            assert!(lines.add(account('a'), prompt(&format!("a{number}"))));
        }
        assert!(!lines.add(account('a'), prompt("one more")));
        assert!(lines.add(account('b'), prompt("b")));
        assert_eq!(lines.count, MAX_AHEAD);
        let texts = texts(&mut lines);
        assert_eq!(texts[..2], ["a0", "b"]);
        assert_eq!(texts.len(), MAX_AHEAD);
    }
}
