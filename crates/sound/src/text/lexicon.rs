//! Words that a customer wants to be said otherwise than they are written: names, products, abbreviations.

/// The text with these words (written, said) in the form in which they are said. At each place the longest word that fits counts, and what is
/// put in is not looked at again. Words of letters and digits count only as a whole, in small or capital letters.
pub fn with_readings(text: &str, readings: &[(&str, &str)]) -> String {
    let mut said = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let fitting = readings
            .iter()
            .filter(|(written, _)| is_at(text, at, written));
        if let Some((written, reading)) = fitting.max_by_key(|(written, _)| written.len()) {
            said.push_str(reading);
            at += written.len();
        } else {
            said.push(character);
            at += character.len_utf8();
        }
    }
    said
}

fn is_at(text: &str, at: usize, written: &str) -> bool {
    let Some(found) = text.get(at..at + written.len()) else {
        return false;
    };
    let joins = |outside: Option<char>, inside: Option<char>| {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        is_word(outside) && is_word(inside)
    };
    let before = text[..at].chars().next_back();
    let behind = text[at + written.len()..].chars().next();
    !written.is_empty()
        && found.eq_ignore_ascii_case(written)
        && !joins(before, written.chars().next())
        && !joins(behind, written.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_said_as_the_customer_wants_and_nothing_else_is() {
        let readings = [
            ("k8s", "kubernetes"),
            ("重楼", "崇楼"),
            ("重", "虫"),
            ("A-17", "阿十七"),
            ("", "nothing"),
        ];
        for (text, said) in [
            ("K8S集群，k8sx", "kubernetes集群，k8sx"),
            ("重楼重来", "崇楼虫来"),
            ("门A-17开，BA-17，A-170", "门阿十七开，BA-17，A-170"),
            ("", ""),
        ] {
            assert_eq!(with_readings(text, &readings), said, "{text}");
        }
        // What is put in is not looked at again.
        assert_eq!(with_readings("a b", &[("a", "b"), ("b", "a")]), "b a");
    }

    proptest::proptest! {
        #[test]
        fn a_text_without_the_words_stays_as_it_is(text in ".{0,60}", written in "[a-z中国]{0,3}") {
            let readings = [(written.as_str(), "x")];
            let said = with_readings(&text, &readings);
            let is_there = !written.is_empty() && text.to_ascii_lowercase().contains(&written);
            proptest::prop_assert!(is_there || said == text);
        }
    }
}
