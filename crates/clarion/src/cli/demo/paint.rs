//! Output of the demonstration: colours on a terminal, plain text elsewhere.

use std::io::IsTerminal;

/// Prints the title of a new scene.
pub fn step(title: &str) {
    println!("\n{}", painted("1;36", &format!("■ {title}")));
}

/// Prints something that was checked and found to be true.
pub fn shown(what: &str) {
    println!("  {} {what}", painted("1;32", "✓"));
}

/// Prints where to read more.
pub fn more(place: &str) {
    println!("{}", painted("2", &format!("  more: {place}")));
}

pub fn bold(text: &str) -> String {
    painted("1", text)
}

fn painted(code: &str, text: &str) -> String {
    if std::io::stdout().is_terminal() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
