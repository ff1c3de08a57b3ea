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
