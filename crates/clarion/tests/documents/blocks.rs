//! Fenced blocks of the documents, and what the comments before them say about running them.

use std::path::Path;

use super::root;

#[derive(Debug, Clone)]
pub struct Block {
    pub document: String,
    /// Where its fence begins.
    pub line: usize,
    pub language: String,
    pub text: String,
    /// The comments right before it, without their arrows.
    pub markers: Vec<String>,
}

impl Block {
    /// Why it is not run, where it says so.
    pub fn reason_not_to_run(&self) -> Option<&str> {
        self.markers.iter().find_map(|marker| {
            let unmarked = marker.strip_prefix("not run: ");
            unmarked.or((marker == "needs a real trunk").then_some(marker))
        })
    }

    /// The test that runs it instead, where it says so.
    pub fn run_by(&self) -> Option<&str> {
        self.marked("run by: ")
    }

    /// The file that it is the content of.
    pub fn file(&self) -> Option<&str> {
        self.marked("file: ")
    }

    fn marked(&self, what: &str) -> Option<&str> {
        let mut markers = self.markers.iter();
        markers.find_map(|marker| marker.strip_prefix(what))
    }

    /// Nobody shall run what its author has said something about that is not understood here.
    pub fn is_run(&self) -> bool {
        if self.reason_not_to_run().is_some() || self.run_by().is_some() {
            return false;
        }
        if self.is_program() && !self.stays_running() && self.file().is_none() {
            let unknown = self.markers.first();
            assert_eq!(unknown, None, "{}: nobody knows this comment", self.place());
        }
        true
    }

    pub fn is_program(&self) -> bool {
        matches!(self.language.as_str(), "sh" | "python")
    }

    /// A program that goes on while the following blocks are run.
    pub fn stays_running(&self) -> bool {
        self.markers.iter().any(|marker| marker == "stays running")
    }

    pub fn place(&self) -> String {
        format!("{}:{}", self.document, self.line)
    }
}

/// README, its translation, and every page in `docs`, with their names.
pub fn documents() -> Vec<(String, String)> {
    let pages = std::fs::read_dir(root().join("docs")).unwrap();
    let pages = pages.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let markdown = |name: &String| Path::new(name).extension().is_some_and(|kind| kind == "md");
    let mut names: Vec<_> = pages
        .filter(markdown)
        .map(|name| format!("docs/{name}"))
        .collect();
    names.sort();
    names.insert(0, "README.zh-CN.md".to_owned());
    names.insert(0, "README.md".to_owned());
    let read = |name: String| {
        let text = std::fs::read_to_string(root().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

pub fn blocks(document: &str, text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    let mut markers = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if inside {
            match line {
                "```" => inside = false,
                _ => found.last_mut().unwrap().text += &format!("{line}\n"),
            }
        } else if let Some(language) = line.strip_prefix("```") {
            inside = true;
            found.push(Block {
                document: document.to_owned(),
                line: number + 1,
                language: language.to_owned(),
                text: String::new(),
                markers: std::mem::take(&mut markers),
            });
        } else if let Some(comment) = line.strip_prefix("<!-- ") {
            markers.push(comment.trim_end_matches(" -->").to_owned());
        } else {
            markers.clear();
        }
    }
    assert!(!inside, "{document}: a block has no end");
    found
}
