//! Patterns of `matches()`, which Envoy compiles with RE2 when it loads a configuration.
//!
//! RE2's syntax is that of Go, so it is translated as patterns of definitions are. What is stricter here than RE2:
//! `\C` is refused, and Unicode classes (`\pL`, `\p{Greek}`) count as too large, which nearly each of them is.

use std::collections::BTreeSet;

use go_template::go::pattern::{translate, wide_folds};
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};
use regex_syntax::utf8::{Utf8Range, Utf8Sequences};

/// Instructions of a compiled pattern that Envoy admits.
const MAX_INSTRUCTIONS: usize = 100;
/// Bytes of a pattern; one that long exceeds the instructions, too, unless most of it says nothing.
const MAX_PATTERN: usize = 512;
/// Instructions that each pattern has: its beginning, its end, and the search for its beginning.
const FRAME: usize = 4;

/// Why RE2 in Envoy does not take a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Its syntax, which other engines take or not.
    Syntax { reason: String, is_taken_elsewhere: bool },
    /// Its compiled size, which is no bound of other engines.
    TooLarge,
}

/// Whether Envoy takes a pattern.
pub(super) fn check(pattern: &str) -> Result<(), Refused> {
    let syntax = |reason: String| {
        let is_taken_elsewhere = regex_syntax::parse(pattern).is_ok();
        Refused::Syntax { reason, is_taken_elsewhere }
    };
    if pattern.len() > MAX_PATTERN || wide_folds(pattern) > 0 {
        return Err(Refused::TooLarge);
    }
    escapes_and_groups(pattern).map_err(|what| syntax(format!("RE2 has no {what}")))?;
    if pattern.contains("\\p") || pattern.contains("\\P") {
        return Err(Refused::TooLarge);
    }
    let translated = translate(pattern).map_err(syntax)?;
    let tree = regex_syntax::parse(&translated).map_err(|error| syntax(reason(&error)))?;
    if FRAME.saturating_add(size(&tree)) > MAX_INSTRUCTIONS { Err(Refused::TooLarge) } else { Ok(()) }
}

fn reason(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        _ => "it is no pattern".to_owned(),
    }
}

/// The first escape or group that RE2 does not have.
fn escapes_and_groups(pattern: &str) -> Result<(), String> {
    let mut rest = pattern;
    while let Some(at) = rest.find(['\\', '(']) {
        let behind = &rest[at + 1..];
        let next = behind.chars().next();
        if rest[at..].starts_with('\\') {
            let quoted =
                behind.strip_prefix('Q').map(|quoted| quoted.find("\\E").map_or(quoted.len(), |end| end + 2));
            match next {
                Some(c) if c.is_ascii_alphanumeric() && !"AbBdDsSwWpPQEzafnrtvx01234567".contains(c) => {
                    return Err(format!("\\{c}"));
                }
                _ if behind.starts_with("b{") => return Err("\\b{".to_owned()),
                // RE2 has octal numbers and no references: a single digit is neither.
                Some('1'..='7') if !behind[1..].starts_with(|c: char| c.is_digit(8)) => {
                    return Err("references to groups".to_owned());
                }
                _ => {}
            }
            rest = &behind[next.map_or(0, char::len_utf8) + quoted.unwrap_or(0)..];
        } else {
            if let Some(group) = behind.strip_prefix('?') {
                let named =
                    group.starts_with("P<") || group.starts_with('<') && !group.starts_with(['=', '!']);
                let flags = group.find(|c| !"imsU-".contains(c)).map_or("", |end| &group[end..]);
                let is_look_behind = group.starts_with("<=") || group.starts_with("<!");
                if is_look_behind || !(named || flags.starts_with([':', ')'])) {
                    return Err(format!("(?{}", group.chars().take(2).collect::<String>()));
                }
            }
            rest = behind;
        }
    }
    Ok(())
}

/// At least the instructions that RE2 compiles a pattern to.
fn size(tree: &Hir) -> usize {
    match tree.kind() {
        HirKind::Empty => 1,
        // One, of which the tree does not have each repetition.
        HirKind::Look(_) => 3,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class_size(class),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repeated) => {
            let once = size(&repeated.sub);
            let times = |number: u32| once.saturating_add(1).saturating_mul(number as usize);
            let least = once.saturating_mul(repeated.min as usize);
            match repeated.max {
                Some(max) => least.saturating_add(times(max.saturating_sub(repeated.min))),
                None => least.max(once).saturating_add(2),
            }
        }
        HirKind::Capture(group) => size(&group.sub).saturating_add(2),
        HirKind::Concat(parts) => parts.iter().map(size).fold(0, usize::saturating_add),
        HirKind::Alternation(parts) => parts.iter().map(|part| size(part) + 1).fold(0, usize::saturating_add),
    }
}

/// The instructions of a class: one for each range of bytes that differs, with what follows it.
fn class_size(class: &ClassUnicode) -> usize {
    /// What RE2 compiles all characters beyond ASCII to, by a short cut.
    const BEYOND_ASCII: usize = 6;
    let lower = |c: char| c.to_ascii_lowercase();
    let holds = |from: char, to: char| class.ranges().iter().any(|r| r.start() <= from && to <= r.end());
    let mut ascii = 0;
    let mut beyond: BTreeSet<Vec<(u8, u8)>> = BTreeSet::new();
    let mut has_short_cut = false;
    for range in class.ranges() {
        let (start, end) = (range.start(), range.end());
        if start.is_ascii() {
            // RE2 folds upper case into the range of lower case.
            let is_upper = start.is_ascii_uppercase() && end.is_ascii_uppercase();
            ascii += usize::from(!(is_upper && holds(lower(start), lower(end))));
        }
        if start <= '\u{80}' && end == char::MAX {
            has_short_cut = true;
        } else if !end.is_ascii() {
            for sequence in Utf8Sequences::new(start.max('\u{80}'), end) {
                let bytes: Vec<(u8, u8)> =
                    sequence.as_slice().iter().map(|Utf8Range { start, end }| (*start, *end)).collect();
                beyond.extend((0..bytes.len()).map(|from| bytes[from..].to_vec()));
            }
        }
    }
    ascii + beyond.len() + if has_short_cut { BEYOND_ASCII } else { 0 }
}
