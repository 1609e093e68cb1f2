//! Header values in which some text stands in quotes.

/// The parts between the separators that are not quoted, without the blanks around them. Empty ones are left out.
pub(crate) fn split_outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |letter| {
        let plain = !escaped;
        escaped = plain && quoted && letter == '\\';
        quoted ^= plain && letter == '"';
        letter == separator && !quoted
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}
