//! The compiler that a newcomer needs is said in several places.

use std::fs;

use crate::root;

#[test]
fn whoever_says_which_compiler_is_needed_says_the_one_of_the_manifest() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap()
        .trim_matches('"');
    for (file, words) in [
        ("README.md", format!("Rust toolchain ({version} or newer)")),
        (
            "README.zh-CN.md",
            format!("Rust 工具链（{version} 及以上版本）"),
        ),
        (
            "scripts/setup",
            format!("install a toolchain ({version} or newer)"),
        ),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&words), "{file} does not say: {words}");
    }
}
