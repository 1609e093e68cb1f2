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

/// The phonemes of words with their marks.
pub fn phonemes(program: &str, text: &str) -> anyhow::Result<String> {
    let mut said = String::new();
    // Marks are kept apart: espeak-ng writes a line for each clause and leaves them out.
    for clause in text.split_inclusive([',', '.', '?', '!']) {
        let words = clause.trim_end_matches([',', '.', '?', '!']);
        let mark = &clause[words.len()..];
        if !words.trim().is_empty() {
            let written = written(program, words)?;
            let blank = if said.is_empty() { "" } else { " " };
            said.push_str(blank);
            said.push_str(&written);
        }
        said.push_str(mark);
    }
    Ok(said)
}

fn written(program: &str, words: &str) -> anyhow::Result<String> {
    let mut child = Command::new(program)
        .args(["-q", "--ipa", "--tie=^", "-v", "en-us", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{program} cannot be started"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(words.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    let lines = String::from_utf8_lossy(&output.stdout);
    let words: Vec<_> = lines.split_whitespace().collect();
    Ok(in_letters_of_the_model(&words.join(" ")))
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
}
