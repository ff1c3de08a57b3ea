//! The product's sources as the compiler reaches them: from `lib.rs` along its `mod` lines,
//! without what is compiled for tests only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::tokens::{self, Kind, Token};

/// Files by their path below `src`.
pub type Files = BTreeMap<PathBuf, String>;

/// A module that has a file of its own.
pub struct Module {
    /// Path below the crate; empty for `lib.rs`.
    pub path: Vec<String>,
    /// The file, below `src`.
    pub file: PathBuf,
    /// What it is made of, without tests.
    pub tokens: Vec<Token>,
    /// Its lines that are neither comments nor tests, with their numbers.
    pub lines: Vec<(usize, String)>,
}

impl Module {
    /// The room that it is in.
    pub fn room(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }
}

/// All Rust files below a folder.
pub fn files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(root).unwrap().to_owned(), text);
            }
        }
    }
    found
}

/// The modules that `top` reaches, itself first.
pub fn modules(files: &Files, top: &str) -> Vec<Module> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), PathBuf::from(top))];
    while let Some((path, file)) = open.pop() {
        let text = &files[&file];
        let mut tests = BTreeSet::new();
        let tokens = without_tests(tokens::read(text), &mut tests);
        for child in declared(&tokens) {
            let path: Vec<String> = path.iter().cloned().chain([child]).collect();
            let stem: PathBuf = path.iter().collect();
            let file = [stem.with_extension("rs"), stem.join("mod.rs")]
                .into_iter()
                .find(|file| files.contains_key(file))
                .unwrap_or_else(|| {
                    panic!("{} declares {}, which has no file", file.display(), stem.display())
                });
            open.push((path, file));
        }
        let lines = text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line.to_owned()))
            .filter(|(number, line)| !tests.contains(number) && !line.trim_start().starts_with("//"))
            .collect();
        found.push(Module { path, file, tokens, lines });
    }
    found
}

/// Leaves out whatever `#[cfg(test)]` stands before, and notes its lines.
fn without_tests(tokens: Vec<Token>, lines: &mut BTreeSet<usize>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(mut token) = tokens.next() {
        if token.is_mark('#') && tokens.peek().is_some_and(gates_a_test) {
            let ends = |t: &Token| t.is_mark(';') || t.nested('{').is_some();
            let last = tokens.find(ends).map_or(token.first, |end| end.last);
            lines.extend(token.first..=last);
            continue;
        }
        if let Kind::Nested(_, inner) = &mut token.kind {
            *inner = without_tests(std::mem::take(inner), lines);
        }
        kept.push(token);
    }
    kept
}

/// Whether this is `[cfg(test)]`.
fn gates_a_test(token: &Token) -> bool {
    match token.nested('[') {
        Some([cfg, of]) => cfg.is_word("cfg") && matches!(of.nested('('), Some([t]) if t.is_word("test")),
        _ => false,
    }
}

/// Names of the modules that are declared here and have files of their own.
fn declared(tokens: &[Token]) -> Vec<String> {
    let declared = tokens.windows(3).filter(|w| w[0].is_word("mod") && w[2].is_mark(';'));
    declared.filter_map(|w| w[1].word()).map(str::to_owned).collect()
}
