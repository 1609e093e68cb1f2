//! English text to phonemes: espeak-ng writes them, and they are put into the letters that the model has learnt.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// What espeak-ng writes, and what the model reads; in this order.
const LETTERS: &[(&str, &str)] = &[
    ("ʔˌn\u{329}", "tn"),
    ("ʔn\u{329}", "tn"),
    ("a^ɪ", "I"),
    ("a^ʊ", "W"),
    ("d^ʒ", "ʤ"),
    ("e^ɪ", "A"),
    ("t^ʃ", "ʧ"),
    ("ɔ^ɪ", "Y"),
    ("o^ʊ", "O"),
    ("ə^l", "ᵊl"),
    ("n\u{329}", "ᵊn"),
    ("l\u{329}", "ᵊl"),
    ("m\u{329}", "ᵊm"),
    ("ʲo", "jo"),
    ("ʲə", "jə"),
    ("ʲ", ""),
    ("ɜːɹ", "ɜɹ"),
    ("ɜː", "ɜɹ"),
    ("ɚ", "əɹ"),
    ("ɪə", "iə"),
    ("r", "ɹ"),
    ("x", "k"),
    ("ç", "k"),
    ("ɐ", "ə"),
    ("ɬ", "l"),
    ("\u{303}", ""),
    ("e", "A"),
    ("o", "ɔ"),
    ("ɾ", "T"),
    ("ʔ", "t"),
    ("ː", ""),
    ("^", ""),
];

const MARKS: [char; 4] = [',', '.', '?', '!'];
/// Sounds that no word has, as a paragraph of their own: they stand between clauses, and before the first to show how they are written.
const JOINT: &str = "[[Z@Z@Z]]\n\n";

/// The phonemes of words with their marks, by one process however many clauses there are.
pub fn phonemes(program: &str, text: &str) -> anyhow::Result<String> {
    // Marks are kept apart: espeak-ng writes a line for each clause and leaves them out.
    let clauses: Vec<_> = text.split_inclusive(MARKS).map(with_mark).collect();
    let has_words = |words: &str| !words.trim().is_empty();
    if !clauses.iter().any(|(words, _)| has_words(words)) {
        return Ok(clauses.iter().map(|(_, mark)| *mark).collect());
    }
    let mut asked = String::from(JOINT);
    for (words, _) in &clauses {
        let plain = |character: char| match character {
            '[' | ']' | '\n' | '\r' => ' ',
            other => other,
        };
        asked.extend(words.chars().map(plain));
        asked.push_str("\n\n");
        asked.push_str(JOINT);
    }
    let lines = written(program, &asked)?;
    let mut lines = lines.lines().map(str::trim);
    let joint = lines.next().unwrap_or_default();
    let lines: Vec<_> = lines.collect();
    let mut parts: Vec<_> = lines.split(|line| *line == joint).collect();
    // After the last joint there is nothing.
    parts.pop();
    if parts.len() != clauses.len() {
        let words: Vec<_> = lines.into_iter().filter(|line| *line != joint).collect();
        return Ok(in_letters_of_the_model(&words.join(" ")));
    }
    let mut said = String::new();
    for (part, (words, mark)) in parts.into_iter().zip(clauses) {
        if has_words(words) {
            let blank = if said.is_empty() { "" } else { " " };
            said.push_str(blank);
            let words: Vec<_> = part
                .iter()
                .flat_map(|line| line.split_whitespace())
                .collect();
            said.push_str(&in_letters_of_the_model(&words.join(" ")));
        }
        said.push_str(mark);
    }
    Ok(said)
}

fn with_mark(clause: &str) -> (&str, &str) {
    let words = clause.trim_end_matches(MARKS);
    (words, &clause[words.len()..])
}

fn written(program: &str, text: &str) -> anyhow::Result<String> {
    let mut child = Command::new(program)
        .args(["-q", "--ipa", "--tie=^", "-v", "en-us", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{program} cannot be started"))?;
    let input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // It may write before it has read everything. Where it stops reading, its status says so.
        scope.spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
        child.wait_with_output()
    })?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn in_letters_of_the_model(written: &str) -> String {
    let mut said = written.to_owned();
    for (from, to) in LETTERS {
        said = said.replace(from, to);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_espeak_writes_is_put_into_the_letters_of_the_model() {
        for (written, said) in [
            ("həlˈo^ʊ", "həlˈO"),
            ("jʊɹ kˈo^ʊd", "jʊɹ kˈOd"),
            ("fˈa^ɪv", "fˈIv"),
            ("wˈɜːld", "wˈɜɹld"),
            ("sˈɜːvɚ", "sˈɜɹvəɹ"),
            ("t^ʃˈe^ɪnd^ʒ", "ʧˈAnʤ"),
            ("bˈʌɾn\u{329}", "bˈʌTᵊn"),
        ] {
            assert_eq!(in_letters_of_the_model(written), said);
        }
    }

    #[test]
    fn a_text_of_a_thousand_clauses_is_written_by_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let (program, starts) = (folder.path().join("espeak"), folder.path().join("starts"));
        let counting = format!(
            "#!/bin/sh\necho started >> {}\nexec espeak-ng \"$@\"\n",
            starts.display()
        );
        // Another program writes it: one that this process writes is busy as long as another test starts a child that has inherited it.
        let writing = ["-c", "printf '%s\\n' \"$1\" > \"$0\"; chmod 700 \"$0\""];
        let mut shell = Command::new("sh");
        shell.args(writing).arg(&program).arg(counting);
        assert!(shell.status().unwrap().success());
        let many = "a,b,".repeat(500);
        let said = phonemes(program.to_str().unwrap(), &many).unwrap();
        assert_eq!(said.matches(',').count(), 1000);
        assert!(said.starts_with("ˈA, bˈi,"), "{said}");
        assert_eq!(std::fs::read_to_string(&starts).unwrap(), "started\n");
    }

    #[test]
    fn clauses_sound_as_by_themselves_and_keep_their_marks() {
        let alone = |text: &str| phonemes("espeak-ng", text).unwrap();
        let (first, second) = (alone("Is it there"), alone("yes; of course"));
        for (text, wanted) in [
            (
                "Is it there? yes; of course.",
                format!("{first}? {second}."),
            ),
            (
                "Is it there...yes; of course",
                format!("{first}... {second}"),
            ),
            (" ,. ", ",.".to_owned()),
            ("", String::new()),
        ] {
            let said = alone(text);
            assert_eq!(said, wanted, "{text}");
        }
        let joint = alone("Is it there, [[Z@Z@Z]], yes");
        assert_eq!(joint.matches(',').count(), 2, "{joint}");
    }
}
