//! Documents name tests by file and function; each of them exists.

use std::path::Path;

/// What a document says in backticks as `FILE.rs: FUNCTION`.
pub fn named_tests(document: &str) -> Vec<(&str, &str)> {
    document
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|code| code.split_once(": "))
        .filter(|(file, _)| file.ends_with(".rs"))
        .collect()
}

/// The named tests that are not there.
pub fn missing(document: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let named = named_tests(&text);
    assert!(!named.is_empty(), "{} names no test", document.display());
    let exists = |file: &str, function: &str| {
        std::fs::read_to_string(file).is_ok_and(|source| {
            source.contains(&format!("fn {function}(")) || source.contains(&format!("fn {function}<"))
        })
    };
    named
        .into_iter()
        .filter(|(file, function)| !exists(file, function))
        .map(|(file, function)| format!("{}: `{file}: {function}` does not exist", document.display()))
        .collect()
}

/// The files that a section of a document names and that do not exist.
pub fn missing_files(document: &Path, section: &str) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let section = text.split(&format!("\n## {section}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
    let code = section.split('`').skip(1).step_by(2);
    let named = code.filter(|code| code.contains('/'));
    let (mut count, mut missing) = (0, Vec::new());
    for file in named {
        count += 1;
        if !Path::new(file).exists() {
            missing.push(format!("{}: `{file}` does not exist", document.display()));
        }
    }
    assert!(count > 10, "{} names {count} files", document.display());
    missing
}

/// Blocks of Rust of a document that no file of these shows as they are.
pub fn not_shown(document: &Path, sources: &[&str]) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let sources: Vec<String> = sources.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let blocks: Vec<&str> =
        text.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty(), "{} shows nothing", document.display());
    let shown = |block: &&&str| sources.iter().any(|source| source.contains(**block));
    blocks.iter().filter(|block| !shown(block)).map(|block| (*block).to_owned()).collect()
}
