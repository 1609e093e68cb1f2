//! `docs/measured.md`: each bench replaces its own section and leaves the rest as people have written it.

use std::path::Path;

use anyhow::Context;

/// Puts `text` between `<!-- name -->` and `<!-- /name -->`, or at the end of the file where these are missing.
pub fn write(path: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let old = match std::fs::read_to_string(path) {
        Ok(old) => old,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "# Measured\n".to_owned(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    std::fs::write(path, replace(&old, name, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn replace(document: &str, name: &str, text: &str) -> String {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let section = format!("{open}\n{}\n{close}", text.trim_end());
    let before = document.split_once(&open);
    match before.and_then(|(before, rest)| Some((before, rest.split_once(&close)?.1))) {
        Some((before, after)) => format!("{before}{section}{after}"),
        None => format!("{}\n\n{section}\n", document.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_replaces_its_own_section_only() {
        let first = replace("# Measured\n", "accepts", "old\n");
        assert_eq!(
            first,
            "# Measured\n\n<!-- accepts -->\nold\n<!-- /accepts -->\n"
        );
        let both = replace(&first, "calls", "others") + "\nWords.\n";
        assert_eq!(
            replace(&both, "accepts", "new"),
            "# Measured\n\n<!-- accepts -->\nnew\n<!-- /accepts -->\n\n<!-- calls -->\nothers\n<!-- /calls -->\n\nWords.\n"
        );
    }
}
