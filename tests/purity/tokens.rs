//! Rust's text as words, marks and what stands in brackets; comments and literals are left out.

use std::iter::Peekable;
use std::str::Chars;

/// A token, and the lines that it begins and ends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub first: usize,
    pub last: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A name, a keyword or a number.
    Word(String),
    /// One character of punctuation.
    Mark(char),
    /// What stands in brackets, by the opening one.
    Nested(char, Vec<Token>),
}

impl Token {
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(own) if own == word)
    }

    pub fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    /// What stands in these brackets.
    pub fn nested(&self, open: char) -> Option<&[Token]> {
        match &self.kind {
            Kind::Nested(own, inner) if *own == open => Some(inner),
            _ => None,
        }
    }

    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// The tokens of a text.
pub fn read(text: &str) -> Vec<Token> {
    Reader { rest: text.chars().peekable(), line: 1 }.tokens()
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// The tokens up to a closing bracket, or the end.
    fn tokens(&mut self) -> Vec<Token> {
        let mut found = Vec::new();
        while let Some(next) = self.next() {
            let first = self.line;
            let kind = match next {
                ')' | ']' | '}' => break,
                '(' | '[' | '{' => Some(Kind::Nested(next, self.tokens())),
                '/' if self.rest.peek() == Some(&'/') => {
                    while self.rest.next_if(|c| *c != '\n').is_some() {}
                    None
                }
                '/' if self.rest.peek() == Some(&'*') => {
                    self.comment();
                    None
                }
                '"' => {
                    self.text();
                    None
                }
                '\'' => {
                    self.quoted();
                    None
                }
                c if c.is_alphanumeric() || c == '_' => self.word(c).map(Kind::Word),
                c if c.is_whitespace() => None,
                c => Some(Kind::Mark(c)),
            };
            found.extend(kind.map(|kind| Token { kind, first, last: self.line }));
        }
        found
    }

    /// A word; none where it is what a literal begins with.
    fn word(&mut self, first: char) -> Option<String> {
        let mut word = String::from(first);
        while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
            word.push(c);
        }
        let raw = matches!(word.as_str(), "r" | "br" | "cr");
        match self.rest.peek() {
            Some('"' | '#') if raw => {
                let mut fence = 0;
                while self.rest.next_if_eq(&'#').is_some() {
                    fence += 1;
                }
                // `r#word` is a word.
                if self.rest.next_if_eq(&'"').is_some() {
                    self.raw_text(fence);
                }
                None
            }
            // The text or the byte behind it is left out by itself.
            Some('"' | '\'') if matches!(word.as_str(), "b" | "c") => None,
            _ => Some(word),
        }
    }

    /// The rest of a comment in `/* */`, which may hold others.
    fn comment(&mut self) {
        let (mut depth, mut before) = (1, self.next());
        while depth > 0
            && let Some(next) = self.next()
        {
            match (before, next) {
                (Some('*'), '/') => depth -= 1,
                (Some('/'), '*') => depth += 1,
                _ => {
                    before = Some(next);
                    continue;
                }
            }
            before = None;
        }
    }

    /// The rest of a text in quotes.
    fn text(&mut self) {
        while let Some(next) = self.next() {
            match next {
                '"' => return,
                '\\' => {
                    self.next();
                }
                _ => {}
            }
        }
    }

    /// The rest of a raw text, which ends with a quote and as many `#` as it began with.
    fn raw_text(&mut self, fence: usize) {
        let mut closing = None;
        while closing != Some(fence) {
            closing = match (self.next(), closing) {
                (None, _) => return,
                (Some('"'), _) => Some(0),
                (Some('#'), Some(n)) => Some(n + 1),
                _ => None,
            };
        }
    }

    /// The rest of a character, or of a lifetime.
    fn quoted(&mut self) {
        let escaped = self.next() == Some('\\');
        if escaped {
            self.next();
        }
        let ends = |c: &char| *c == '\'';
        if self.rest.next_if(ends).is_some() {
            return;
        }
        let escape = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '{' | '}');
        while self.rest.next_if(escape).is_some() {}
        if escaped {
            self.rest.next_if(ends);
        }
    }
}

#[rstest::rstest]
#[case::words("use a::b_1;", "use a : : b_1 ;")]
#[case::brackets("f(a[1], {b})", "f (a [1] , {b})")]
#[case::comments("a // b\n/* c /* d */ e */ f /// g\nh", "a f h")]
#[case::texts(r##"a "b \" c" d b"e" f r#"g " h"# i br"j" k"##, "a d f i k")]
#[case::characters(r"'a' b '\'' c '\u{1F}' d b'\n' e '\\' f '(' g", "b c d e f g")]
#[case::lifetimes("&'a str, 'static, '_ b<'c>", "& str , , b < >")]
fn comments_and_literals_are_left_out(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(plain(&read(text)), expected);
}

#[test]
fn lines_are_those_of_the_text() {
    let found = read("a\n{\"x\ny\"\n}\nb");
    let lines: Vec<(usize, usize)> = found.iter().map(|token| (token.first, token.last)).collect();
    assert_eq!(lines, [(1, 1), (2, 4), (5, 5)]);
}

fn plain(tokens: &[Token]) -> String {
    let words: Vec<String> = tokens
        .iter()
        .map(|token| match &token.kind {
            Kind::Word(word) => word.clone(),
            Kind::Mark(mark) => mark.to_string(),
            Kind::Nested(open, inner) => {
                let close = match open {
                    '(' => ')',
                    '[' => ']',
                    _ => '}',
                };
                format!("{open}{}{close}", plain(inner))
            }
        })
        .collect();
    words.join(" ")
}
