//! What a template may be written of. Fuel bounds how long a template runs, and not how large a value it builds: so there is nothing in it by which a
//! value becomes larger than those of the alert, neither an operator that joins or repeats, nor a list or a variable to keep such a value in.

/// Characters of a template.
const LONGEST: usize = 4000;
/// What a statement may begin with.
const STATEMENTS: [&str; 6] = ["for", "endfor", "if", "elif", "else", "endif"];
/// Words before which a bracket begins a list; after any other word it picks one.
const BEFORE_A_VALUE: [&str; 8] = ["in", "if", "elif", "else", "and", "or", "not", "is"];
/// Beside these, nothing makes a value larger.
const NOT_OFFERED: [char; 5] = ['*', '~', '+', '{', '}'];

pub fn check(template: &str) -> Result<(), String> {
    if template.chars().count() > LONGEST {
        return Err(format!("a template must have at most {LONGEST} characters"));
    }
    let mut rest = template;
    while let Some(begin) = rest.find('{') {
        rest = &rest[begin + 1..];
        let (kind, end) = match rest.chars().next() {
            Some('{') => (Code::Value, "}}"),
            Some('%') => (Code::Statement, "%}"),
            Some('#') => (Code::Comment, "#}"),
            _ => continue,
        };
        rest = &rest[1..];
        rest = match kind {
            Code::Comment => rest.split_once(end).map_or("", |(_, after)| after),
            Code::Value | Code::Statement => {
                let (code, after) = until(rest, end);
                check_code(&code, kind)?;
                after
            }
        };
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    Value,
    Statement,
    Comment,
}

/// The code before its end, with its texts emptied, and what follows.
fn until<'a>(text: &'a str, end: &str) -> (String, &'a str) {
    let mut code = String::new();
    let mut quote = None;
    let mut is_escaped = false;
    for (place, character) in text.char_indices() {
        if let Some(mark) = quote {
            if is_escaped {
                is_escaped = false;
            } else if character == '\\' {
                is_escaped = true;
            } else if character == mark {
                quote = None;
                code.push(mark);
            }
        } else if text[place..].starts_with(end) {
            return (code, &text[place + end.len()..]);
        } else {
            if matches!(character, '"' | '\'') {
                quote = Some(character);
            }
            code.push(character);
        }
    }
    (code, "")
}

fn check_code(code: &str, kind: Code) -> Result<(), String> {
    // What trims blanks is not part of it.
    let code = code.strip_prefix(['-', '+']).unwrap_or(code);
    let code = code.strip_suffix(['-', '+']).unwrap_or(code).trim();
    if kind == Code::Statement {
        let word = words(code).next().unwrap_or_default();
        if !STATEMENTS.contains(&word) {
            let offered = STATEMENTS.join(", ");
            return Err(format!(
                "{{% {word} %}} is not offered; offered are {offered}"
            ));
        }
    }
    if let Some(character) = code.chars().find(|one| NOT_OFFERED.contains(one)) {
        return Err(format!("{character} is not offered in a template"));
    }
    if words(code).any(|word| word == "recursive") {
        return Err("recursive is not offered in a template".to_owned());
    }
    for (place, _) in code.match_indices('[') {
        let before = code[..place].trim_end();
        let picks =
            before.ends_with(|last: char| last.is_alphanumeric() || "_)]\"'".contains(last));
        let word = words(before).last().unwrap_or_default();
        let is_keyword = before.ends_with(word) && BEFORE_A_VALUE.contains(&word);
        if !picks || is_keyword {
            return Err("a list is not offered in a template".to_owned());
        }
    }
    Ok(())
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    let parts = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_needs_is_offered() {
        for template in [
            "The shop is down",
            "{{ how_bad or 'Alert' }}. {{ alerts[0].what }}{% if count > 1 %} and {{ count - 1 }} more{% endif %}",
            "{%- for alert in alerts -%}{{ alert.labels['a*b~c'] | words }}{%+ endfor %}",
            "{{ alerts[0]['labels'].job }} {# [1] * 2 ~ 3 #}",
            "{{ 'it\\'s }} * 5' }}",
            "{% if group.cluster in alerts[0].labels %}a{% elif count == 2 %}b{% else %}{c}{% endif %}",
        ] {
            assert_eq!(check(template), Ok(()), "{template}");
        }
    }

    #[test]
    fn nothing_makes_a_value_larger() {
        for (template, wanted) in [
            ("{{ 'x' * 100000000 }}", "* is not offered"),
            ("{{ 1 % 1 ~ 'x' * 9999999 }}", "~ is not offered"),
            ("{{ text + text }}", "+ is not offered"),
            ("{% for a in ['xx'] %}{% endfor %}", "a list is not offered"),
            ("{{ [text, text] }}", "a list is not offered"),
            ("{% if not [text] %}{% endif %}", "a list is not offered"),
            ("{{ {'a': text} }}", "{ is not offered"),
            (
                "{% for a in alerts recursive %}{{ loop(alerts) }}{% endfor %}",
                "recursive is not offered",
            ),
            ("{% set a = text %}", "{% set %} is not offered"),
            (
                "{%- macro a() %}{% endmacro %}",
                "{% macro %} is not offered",
            ),
            ("{{ '}}' ~ text }}", "~ is not offered"),
        ] {
            let told = check(template).unwrap_err();
            assert!(told.contains(wanted), "{template}: {told}");
        }
        assert!(check(&"x".repeat(LONGEST + 1)).is_err());
    }
}
