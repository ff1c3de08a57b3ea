//! A scanner over JSON text: checks it in one pass, and hands out what is asked for as slices.
//!
//! A review is scanned once and most of it is never looked at again, so this is what a decision
//! costs. It accepts exactly what serde_json accepts (a property test holds it to that), takes
//! eight bytes of a string at a time, and does not recurse, so depth costs memory and no stack.

use std::borrow::Cow;

use thiserror::Error;

use super::text::{Text, next_special};

/// Where a text is no JSON, or not of the shape that is read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {at}")]
pub struct JsonError {
    /// What is wrong.
    pub what: Cow<'static, str>,
    /// Where.
    pub at: usize,
}

/// A value as it stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// The text, without white space around it.
    pub fn get(self) -> &'a str {
        self.0
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// The string that it is.
    pub fn text(self) -> Result<Text<'a>, JsonError> {
        Scanner::new(self.0).text()
    }

    /// Reads the members of the object that it is.
    pub fn members(
        self,
        member: impl FnMut(Text<'a>, &mut Scanner<'a>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        Scanner::new(self.0).members(member)
    }
}

/// Which members were there already: the same one twice is read by no two readers alike.
#[derive(Debug, Default)]
pub struct Seen(u16);

impl Seen {
    /// Notes the member of that number; refuses it the second time.
    pub fn once(&mut self, number: u8, scanner: &Scanner<'_>) -> Result<(), JsonError> {
        let bit = 1 << (number & 15);
        if self.0 & bit != 0 {
            return scanner.error("duplicate field");
        }
        self.0 |= bit;
        Ok(())
    }
}

/// A place in a text.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

type Scanned<T> = Result<T, JsonError>;

impl<'a> Scanner<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// How many bytes have been taken.
    pub fn position(&self) -> usize {
        self.at
    }

    /// An error at this place.
    pub fn error<T>(&self, what: impl Into<Cow<'static, str>>) -> Scanned<T> {
        Err(JsonError { what: what.into(), at: self.at })
    }

    /// The next byte that is no white space, which stays.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Whether nothing but white space is left.
    pub fn end(&mut self) -> Scanned<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.error("trailing characters"),
        }
    }

    /// The inside of a string, and whether it has escapes; its opening quote is next.
    fn string(&mut self) -> Scanned<(&'a str, bool)> {
        if !self.take(b'"') {
            return self.error("expected a string");
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escapes = false;
        loop {
            self.at = next_special(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'"') => {
                    let inside = &self.text[start..self.at];
                    self.at += 1;
                    return Ok((inside, escapes));
                }
                Some(b'\\') => {
                    escapes = true;
                    self.escape()?;
                }
                Some(_) => return self.error("control character in a string"),
                None => return self.error("a string does not end"),
            }
        }
    }

    fn escape(&mut self) -> Scanned<()> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let length = match rest.first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') if rest.len() > 4 && rest[1..5].iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return self.error("invalid escape"),
        };
        self.at += length;
        Ok(())
    }

    /// A string.
    pub fn text(&mut self) -> Scanned<Text<'a>> {
        self.peek();
        let from = self.at;
        let (inside, escapes) = self.string()?;
        if !escapes {
            return Ok(Text(Cow::Borrowed(inside)));
        }
        serde_json::from_str(&self.text[from..self.at])
            .map_err(|error| JsonError { what: error.to_string().into(), at: from })
    }

    /// A string or null.
    pub fn optional_text(&mut self) -> Scanned<Option<Text<'a>>> {
        if self.null()? { Ok(None) } else { self.text().map(Some) }
    }

    /// Takes a `null`, if one is next.
    pub fn null(&mut self) -> Scanned<bool> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.literal().map(|()| true)
    }

    /// `true`, `false` or null.
    pub fn optional_bool(&mut self) -> Scanned<Option<bool>> {
        match self.value()?.get() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            "null" => Ok(None),
            _ => self.error("expected true or false"),
        }
    }

    /// A value, checked and not read.
    pub fn value(&mut self) -> Scanned<Raw<'a>> {
        self.peek();
        let from = self.at;
        self.skip()?;
        Ok(Raw(&self.text[from..self.at]))
    }

    /// A value that is no null.
    pub fn optional_value(&mut self) -> Scanned<Option<Raw<'a>>> {
        self.value().map(|raw| Some(raw).filter(|raw| !raw.is_null()))
    }

    /// Reads the members of an object: each call gets the name, and must read the value. A name
    /// that is there twice is the caller's to judge.
    pub fn members(&mut self, mut member: impl FnMut(Text<'a>, &mut Self) -> Scanned<()>) -> Scanned<()> {
        if !self.take(b'{') {
            return self.error("expected an object");
        }
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let name = self.text()?;
            if !self.take(b':') {
                return self.error("expected `:`");
            }
            member(name, self)?;
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return self.error("expected `,` or `}`");
            }
        }
    }

    /// Reads the members of an object, or nothing of a null; tells which.
    pub fn optional_members(
        &mut self,
        member: impl FnMut(Text<'a>, &mut Self) -> Scanned<()>,
    ) -> Scanned<bool> {
        if self.null()? { Ok(false) } else { self.members(member).map(|()| true) }
    }

    /// Reads the elements of a list.
    pub fn elements(&mut self, mut element: impl FnMut(&mut Self) -> Scanned<()>) -> Scanned<()> {
        if !self.take(b'[') {
            return self.error("expected a list");
        }
        if self.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return self.error("expected `,` or `]`");
            }
        }
    }

    /// Takes a value of any depth.
    fn skip(&mut self) -> Scanned<()> {
        // The closing marks that are still to come.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{') => {
                    self.at += 1;
                    if !self.take(b'}') {
                        open.push(b'}');
                        self.name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.take(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(_) => self.literal()?,
                None => return self.error("a value is missing"),
            }
            if self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// What follows a value: closing marks, or a comma. Tells whether the outermost is complete.
    fn close(&mut self, open: &mut Vec<u8>) -> Scanned<bool> {
        while let Some(&mark) = open.last() {
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if mark == b'}' {
                        self.name()?;
                    }
                    return Ok(false);
                }
                Some(byte) if byte == mark => {
                    self.at += 1;
                    open.pop();
                }
                _ => return self.error("expected `,` or an end"),
            }
        }
        Ok(true)
    }

    fn name(&mut self) -> Scanned<()> {
        self.string()?;
        if self.take(b':') { Ok(()) } else { self.error("expected `:`") }
    }

    fn literal(&mut self) -> Scanned<()> {
        let rest = &self.text.as_bytes()[self.at..];
        for word in [&b"true"[..], b"false", b"null"] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(());
            }
        }
        self.error("expected a value")
    }

    fn digits(&mut self) -> Scanned<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if length == 0 {
            return self.error("invalid number");
        }
        self.at += length;
        Ok(())
    }

    fn next_is(&mut self, wanted: &[u8]) -> bool {
        let found = self.text.as_bytes().get(self.at).is_some_and(|b| wanted.contains(b));
        self.at += usize::from(found);
        found
    }

    fn number(&mut self) -> Scanned<()> {
        self.next_is(b"-");
        if !self.next_is(b"0") {
            self.digits()?;
        } else if self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            return self.error("invalid number");
        }
        if self.next_is(b".") {
            self.digits()?;
        }
        if self.next_is(b"eE") {
            self.next_is(b"+-");
            self.digits()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde::de::IgnoredAny;

    use super::*;

    fn accepts(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.value().is_ok() && scanner.end().is_ok()
    }

    #[rstest]
    fn accepts_what_serde_json_accepts(
        #[values(
            "",
            " ",
            "null",
            "nul",
            "truex",
            "true",
            " false ",
            "0",
            "-0",
            "00",
            "01",
            "-",
            "1.",
            "1.5",
            ".5",
            "1e5",
            "1e",
            "1E+5",
            "1e-",
            "-1.5e-10",
            "\"\"",
            "\"a\\n\\u00e9\\/\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12\"",
            "\"\\",
            "\"",
            "\"\u{1}\"",
            "\"\u{7f}\"",
            "\"\\ud800\"",
            "[]",
            "[,]",
            "[1,]",
            "[1 2]",
            "[1,2]",
            "[[[]]]",
            "{}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{a:1}",
            "{\"a\":[{\"b\":{}}, 1 ]}",
            "[1}",
            "{\"a\":1]",
            "1 2",
            "[1]]",
            "\u{feff}1",
            "nan",
            "Infinity",
            "+1",
            "{\"a\" : 1 , \"b\":[ ]}",
            "{,}",
            "{\"\":{}}"
        )]
        text: &str,
    ) {
        assert_eq!(accepts(text), serde_json::from_str::<IgnoredAny>(text).is_ok(), "{text:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn accepts_of_anything_what_serde_json_accepts(text in "[\\[\\]{}:,\"\\\\ \\n0-9.eE+tfnulr\\-é]{0,24}") {
            prop_assert_eq!(accepts(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }

        #[test]
        fn strings_are_read_as_serde_json_reads_them(text in "\\PC{0,20}|[\\x00-\\x7f]{0,30}") {
            let json = serde_json::to_string(&text).unwrap();
            let read = Scanner::new(&json).text().unwrap();
            prop_assert_eq!(read.as_str(), text);
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = |n: usize| format!("{}1{}", "[{\"a\":".repeat(n), "}]".repeat(n));
        assert!(accepts(&deep(200_000)));
        assert!(!accepts(&deep(200_000)[1..]));
    }
}
