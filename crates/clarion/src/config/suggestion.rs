//! What a mistyped name was probably meant to be.

/// Suggests the known name that is most like the mistyped one, or lists all names if none is similar.
pub(super) fn suggestion(known: &[&str], name: &str, label: &str) -> String {
    let nearest = known
        .iter()
        .map(|key| (strsim::jaro_winkler(key, name), key))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, key)) if likeness > 0.6 => format!("; did you mean `{label}{key}`?"),
        _ => format!("; known here are: {}", known.join(", ")),
    }
}
