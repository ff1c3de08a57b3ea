//! `snakecase`, `kebabcase`, `camelcase`: the words of huandu's `xstrings` 1.6.

use std::iter::Peekable;
use std::str::Chars;

use super::text::{lower, upper};
use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::Str;
use crate::function::{Function, arg, fixed};
use crate::limits::Meter;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("snakecase", &[Str], |meter, args| separated(meter, args, '_')),
    fixed("kebabcase", &[Str], |meter, args| separated(meter, args, '-')),
    fixed("camelcase", &[Str], |meter, args| {
        meter.bytes(arg::text(args, 0).len().saturating_mul(2))?;
        Ok(Val::str(camel(&arg::chars(args, 0))))
    }),
];

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

/// Words without a separator between them keep their case, except for a run of capitals at the start of a
/// word.
fn camel(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    let first = loop {
        match chars.next() {
            None => return out,
            Some(c) if is_connector(c) => out.push(c),
            Some(c) => break c,
        }
    };
    let mut run_of_capitals = first.is_uppercase();
    let mut previous = lower(first);
    for c in chars {
        let mut current = c;
        if is_connector(c) && is_connector(previous) {
            out.push(previous);
            previous = c;
            continue;
        }
        if is_connector(previous) {
            run_of_capitals = c.is_uppercase();
            current = upper(c);
        } else {
            if run_of_capitals {
                if c.is_uppercase() {
                    current = lower(c);
                } else {
                    run_of_capitals = false;
                }
            }
            out.push(previous);
        }
        previous = current;
    }
    out.push(previous);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

/// Letters without case (such as Chinese ones) do not count as alphabet.
fn is_alphabet(c: char) -> bool {
    c.is_alphabetic()
        && !matches!(c, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4d85}' | '\u{20000}'..='\u{2b81d}')
}

/// ASCII punctuation as in Unicode (`$+<=>^`|~` are symbols); other punctuation is rare in names.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c)
}

fn class(c: char) -> Word {
    match c {
        c if is_connector(c) => Word::Connector,
        c if is_punctuation(c) => Word::Punctuation,
        c if c.is_uppercase() => Word::Upper,
        c if is_alphabet(c) => Word::Alphabet,
        c if c.is_numeric() => Word::Number,
        _ => Word::Other,
    }
}

fn take_while(chars: &mut Peekable<Chars<'_>>, word: &mut String, keep: impl Fn(char) -> bool) {
    while let Some(c) = chars.next_if(|&c| keep(c)) {
        word.push(c);
    }
}

/// A word and the text after it; `HTTPStatus` is `HTTP` and `Status`.
fn next_word(text: &str) -> Option<(Word, String, &str)> {
    let mut chars = text.chars().peekable();
    let first = chars.next()?;
    let mut word = String::from(first);
    let kind = class(first);
    match kind {
        Word::Upper => {
            if chars.peek().is_some_and(|c| c.is_uppercase()) {
                take_while(&mut chars, &mut word, char::is_uppercase);
                if chars.peek().is_some_and(|&c| is_alphabet(c)) {
                    word.pop();
                }
            } else {
                take_while(&mut chars, &mut word, |c| is_alphabet(c) && !c.is_uppercase());
            }
        }
        Word::Alphabet => take_while(&mut chars, &mut word, |c| is_alphabet(c) && !c.is_uppercase()),
        Word::Number => take_while(&mut chars, &mut word, char::is_numeric),
        Word::Other => take_while(&mut chars, &mut word, |c| class(c) == Word::Other),
        kind => take_while(&mut chars, &mut word, |c| class(c) == kind),
    }
    let rest = &text[word.len()..];
    Some((kind, word, rest))
}

/// The words of a text, read one by one.
struct Words<'t> {
    rest: &'t str,
    current: Option<(Word, String)>,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Self {
        let mut words = Self { rest: text, current: None };
        words.advance();
        words
    }

    fn advance(&mut self) {
        self.current = next_word(self.rest).map(|(kind, word, rest)| {
            self.rest = rest;
            (kind, word)
        });
    }

    fn kind(&self) -> Option<Word> {
        self.current.as_ref().map(|(kind, _)| *kind)
    }
}

struct Joined {
    out: String,
    connector: char,
}

impl Joined {
    fn word(&mut self, kind: Word, word: &str) {
        if !matches!(kind, Word::Upper | Word::Connector) {
            self.out.push_str(word);
            return;
        }
        self.out.extend(word.chars().map(|c| if is_connector(c) { self.connector } else { lower(c) }));
    }

    /// Writes the rest of a number's word: the letters and digits after it.
    fn tail(&mut self, words: &mut Words<'_>) {
        while let Some((kind @ (Word::Alphabet | Word::Number), word)) = words.current.clone() {
            self.word(kind, &word);
            words.advance();
        }
        if words.kind().is_some_and(starts_word) {
            self.out.push(self.connector);
        }
    }
}

fn starts_word(kind: Word) -> bool {
    !matches!(kind, Word::Connector | Word::Punctuation)
}

fn separated(meter: &Meter, args: &[Val], connector: char) -> Result<Val, Failure> {
    let text = arg::chars(args, 0);
    meter.bytes(text.len() * 2)?;
    let mut joined = Joined { out: String::new(), connector };
    let mut words = Words::new(&text);
    while let Some((kind, word)) = words.current.clone() {
        if words.rest.is_empty() {
            joined.word(kind, &word);
            break;
        }
        if kind != Word::Connector {
            joined.word(kind, &word);
        }
        words.advance();
        match kind {
            Word::Number => joined.tail(&mut words),
            Word::Connector => joined.word(kind, &word),
            Word::Punctuation => {}
            _ => after_letters(&mut joined, &mut words),
        }
    }
    Ok(Val::str(joined.out))
}

/// A number after letters is part of their word (`bld4_floor`), unless lower case letters follow it
/// (`http_2xx`).
fn after_letters(joined: &mut Joined, words: &mut Words<'_>) {
    let Some((kind, number)) = words.current.clone() else { return };
    if kind != Word::Number {
        if starts_word(kind) {
            joined.out.push(joined.connector);
        }
        return;
    }
    if words.rest.is_empty() {
        return;
    }
    words.advance();
    if words.kind() != Some(Word::Alphabet) {
        joined.word(Word::Number, &number);
        if words.kind().is_some_and(starts_word) {
            joined.out.push(joined.connector);
        }
        return;
    }
    joined.out.push(joined.connector);
    joined.word(Word::Number, &number);
    joined.tail(words);
}
