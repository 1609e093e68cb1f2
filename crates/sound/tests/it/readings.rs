//! Two hundred sentences of notifications and alerts, and how they are read: `tests/readings`. In each file a sentence has two lines: as it is
//! written, and as it is read, with what the English voice says in brackets. A third line names sounds that must be heard in it.

use sound::text::mandarin::by_sound;

use crate::support::read_out;

const FILES: [(&str, &str); 2] = [
    ("chinese.txt", include_str!("../readings/chinese.txt")),
    ("mixed.txt", include_str!("../readings/mixed.txt")),
];

struct Sentence<'a> {
    written: &'a str,
    read: &'a str,
    sounds: Vec<&'a str>,
}

fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let blocks = text.trim().split("\n\n");
    blocks
        .map(|block| {
            let lines: Vec<_> = block.lines().collect();
            let (&[written, read], sounds) = lines.split_first_chunk().expect("two lines");
            let sounds = sounds.iter().flat_map(|line| {
                let sounds = line.strip_prefix("~ ").expect("sounds begin with a tilde");
                sounds.split("; ")
            });
            Sentence {
                written,
                read,
                sounds: sounds.collect(),
            }
        })
        .collect()
}

#[test]
fn two_hundred_sentences_are_read_as_people_read_them() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (file, text) in FILES {
        for sentence in sentences(text) {
            count += 1;
            let got = read_out(sentence.written);
            if got != sentence.read {
                wrong.push(format!(
                    "{file}\n  written:  {}\n  expected: {}\n  got:      {got}",
                    sentence.written, sentence.read
                ));
            }
            let heard = by_sound(&got);
            for sound in sentence
                .sounds
                .iter()
                .filter(|sound| !heard.contains(**sound))
            {
                wrong.push(format!(
                    "{file}\n  written:  {}\n  expected: {sound}\n  got:      {heard}",
                    sentence.written
                ));
            }
        }
    }
    assert!(count >= 200, "{count} sentences");
    assert!(
        wrong.is_empty(),
        "{} readings are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
