//! The syntax of JSON: a cursor that moves over one token or one value at a time.
//!
//! It accepts exactly the texts that serde_json accepts (a property test checks that), scans
//! strings in blocks, and does not recurse, so depth costs memory and no stack.

use std::borrow::Cow;

use thiserror::Error;

use super::escape::{BLOCK, Marks, marked};

/// A text that is not JSON, or not of the type that a reader expects.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {at}")]
pub struct JsonError {
    /// The fault.
    pub what: Cow<'static, str>,
    /// Its offset in bytes.
    pub at: usize,
}

pub(super) type Scanned<T> = Result<T, JsonError>;

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The text consumed since a position.
    pub(super) fn since(&self, position: usize) -> &'a str {
        self.text.get(position..self.at).unwrap_or_default()
    }

    pub(super) fn error<T>(&self, what: impl Into<Cow<'static, str>>) -> Scanned<T> {
        Err(JsonError { what: what.into(), at: self.at })
    }

    /// Consumes exactly this text, if it is next.
    pub(super) fn exactly(&mut self, text: &str) -> bool {
        let found = self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Peeks at the next byte that is not white space.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Consumes that byte, if it is next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The content of the string that is next, and whether it has escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Scanned<(&'a str, bool)> {
        let start = self.opened()?;
        let escapes = self.through_quote(start)?;
        Ok((&self.text[start..self.at - 1], escapes))
    }

    /// Skips a string.
    #[inline]
    fn skip_string(&mut self) -> Scanned<()> {
        let start = self.opened()?;
        self.through_quote(start).map(drop)
    }

    /// Consumes the opening quote; returns where the content starts.
    #[inline]
    fn opened(&mut self) -> Scanned<usize> {
        if self.take(b'"') { Ok(self.at) } else { self.error("expected a string") }
    }

    /// Consumes the rest of a string with its closing quote; returns whether it has escapes. Most
    /// strings are short, and end in their first block.
    #[inline]
    fn through_quote(&mut self, start: usize) -> Scanned<bool> {
        let bytes = self.text.as_bytes();
        let found = marked(bytes, start);
        let first = start + found.trailing_zeros() as usize;
        if found != 0 && bytes.get(first) == Some(&b'"') {
            self.at = first + 1;
            return Ok(false);
        }
        self.through_far_quote(start)
    }

    /// The same for a string that is long or has escapes. Nearly all escapes in a long one are of
    /// quotes, as it is JSON itself: blocks without others are skipped as a whole.
    #[inline(never)]
    fn through_far_quote(&mut self, start: usize) -> Scanned<bool> {
        let bytes = self.text.as_bytes();
        // Whether the last byte before the block was a backslash that escapes its first.
        let (mut at, mut escapes, mut escaping) = (start, false, 0);
        while at <= bytes.len() {
            let Marks { quotes, backslashes, controls } = Marks::of(bytes, at);
            escapes |= backslashes != 0;
            let escaped = backslashes << 1 | escaping;
            if controls | (escaped & !quotes) != 0 {
                match self.through_block(at - escaping as usize)? {
                    Some(after) => (at, escaping) = (after, 0),
                    None => return Ok(escapes),
                }
                continue;
            }
            let ends = quotes & !escaped;
            if ends != 0 {
                self.at = at + ends.trailing_zeros() as usize + 1;
                return Ok(escapes);
            }
            escaping = backslashes >> (BLOCK - 1);
            at += BLOCK;
        }
        self.fail("a string does not end", bytes.len())
    }

    /// Consumes a block of a string escape by escape, starting outside of an escape; returns where
    /// the string continues, unless it ends in the block.
    #[inline(never)]
    fn through_block(&mut self, at: usize) -> Scanned<Option<usize>> {
        let bytes = self.text.as_bytes();
        let mut marks = marked(bytes, at);
        while marks != 0 {
            let special = at + marks.trailing_zeros() as usize;
            match bytes.get(special) {
                Some(b'"') => {
                    self.at = special + 1;
                    return Ok(None);
                }
                Some(b'\\') => {}
                _ => return self.fail("control character in a string", special),
            }
            let Some(length) = escape(bytes, special) else {
                return self.fail("invalid escape", special);
            };
            let after = special + length;
            if after >= at + BLOCK {
                return Ok(Some(after));
            }
            marks &= u32::MAX << (after - at);
        }
        Ok(Some(at + BLOCK))
    }

    fn fail<T>(&mut self, what: &'static str, at: usize) -> Scanned<T> {
        self.at = at;
        self.error(what)
    }

    /// Consumes a value of any depth.
    pub(super) fn value(&mut self) -> Scanned<()> {
        let mut open = Open::default();
        loop {
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(b'{') => {
                    self.at += 1;
                    if !self.take(b'}') {
                        open.push(true);
                        self.name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.take(b']') {
                        open.push(false);
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

    /// Consumes closing brackets or a comma after a value; returns whether the outermost is complete.
    fn close(&mut self, open: &mut Open) -> Scanned<bool> {
        while let Some(mark) = open.last() {
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
        self.skip_string()?;
        if self.take(b':') { Ok(()) } else { self.error("expected `:`") }
    }

    pub(super) fn literal(&mut self) -> Scanned<()> {
        let found = ["true", "false", "null"].into_iter().any(|word| self.exactly(word));
        if found { Ok(()) } else { self.error("expected a value") }
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

/// Length of the escape that begins there.
#[inline]
fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'"' | b'\\' | b'n' | b'/' | b'b' | b'f' | b'r' | b't' => Some(2),
        b'u' if hexadecimal(bytes, at + 2) => Some(6),
        _ => None,
    }
}

/// Whether four hexadecimal digits follow.
fn hexadecimal(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..at + 4).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// The objects and lists that are still open: a bit each, set for an object, so that a value
/// that is not very deep needs no memory.
#[derive(Default)]
struct Open {
    depth: usize,
    innermost: u64,
    outer: Vec<u64>,
}

impl Open {
    const BITS: usize = u64::BITS as usize;

    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(Self::BITS) {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.innermost >>= 1;
        if self.depth.is_multiple_of(Self::BITS)
            && let Some(outer) = self.outer.pop()
        {
            self.innermost = outer;
        }
    }

    /// The byte that closes the innermost.
    fn last(&self) -> Option<u8> {
        (self.depth > 0).then_some(if self.innermost & 1 == 1 { b'}' } else { b']' })
    }
}
