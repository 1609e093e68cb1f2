//! Panics on this thread: those that a fault has asked for are part of a history, any other is wrong.

use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::Once;

thread_local! {
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on panics are remembered, and those that were asked for are not printed.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_asked_for(panic) {
                SEEN.with_borrow_mut(|seen| seen.push(panic.to_string()));
                usual(panic);
            }
        }));
    });
    seen();
}

/// The panics since the last time.
pub fn seen() -> Vec<String> {
    SEEN.take()
}

fn is_asked_for(panic: &PanicHookInfo<'_>) -> bool {
    supervisor::panic_message(panic.payload()).ends_with("was asked to panic")
}
