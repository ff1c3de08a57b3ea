//! A scanner over JSON text: checks it in one pass, and returns requested values as slices.
//!
//! A review is scanned once and most of it is never read again, so the scan dominates the cost of a
//! decision.

mod cursor;
mod escape;
mod misfit;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::text::Text;
use cursor::{Cursor, Scanned};

pub use cursor::JsonError;
pub use escape::{json_bytes, json_string};
pub use misfit::{Misfit, misfit, of_error};

/// A value as written in a text.
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

    /// Reads it as a string.
    pub fn text(self) -> Result<Text<'a>, JsonError> {
        Scanner::new(self.0).text()
    }

    /// Reads its members as an object.
    pub fn members(
        self,
        member: impl FnMut(Text<'a>, &mut Scanner<'a>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        Scanner::new(self.0).members(member)
    }
}

/// A value of a text, and the result of a reader that ran when it was scanned.
#[derive(Clone, Debug)]
pub struct JsonRead<'a, T> {
    text: Raw<'a>,
    /// `None` where the reader failed.
    found: Option<T>,
}

impl<'a, T: Clone> JsonRead<'a, T> {
    /// The result of the same reader, or its error.
    pub fn get(&self, read: impl FnOnce(&mut Scanner<'a>) -> Scanned<T>) -> Scanned<T> {
        self.found.clone().map_or_else(|| read(&mut Scanner::new(self.text.0)), Ok)
    }
}

/// The members read so far: JSON readers differ in how they treat duplicates.
#[derive(Debug, Default)]
pub struct SeenMembers(u16);

impl SeenMembers {
    /// Records the member of that number; rejects it the second time.
    pub fn once(&mut self, number: u8, scanner: &Scanner<'_>) -> Result<(), JsonError> {
        let bit = 1 << (number & 15);
        if self.0 & bit != 0 {
            return scanner.error("duplicate field");
        }
        self.0 |= bit;
        Ok(())
    }
}

/// Reads values from a position in a text.
#[derive(Debug)]
pub struct Scanner<'a>(Cursor<'a>);

impl<'a> Scanner<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self(Cursor::new(text))
    }

    /// Number of consumed bytes.
    pub fn position(&self) -> usize {
        self.0.position()
    }

    /// Where the next token starts.
    pub fn here(&mut self) -> usize {
        self.0.peek();
        self.position()
    }

    /// The text consumed since a position.
    pub fn since(&self, position: usize) -> Raw<'a> {
        Raw(self.0.since(position).trim_ascii())
    }

    /// An error at this place.
    pub fn error<T>(&self, what: impl Into<Cow<'static, str>>) -> Scanned<T> {
        self.0.error(what)
    }

    /// Whether nothing but white space is left.
    pub fn end(&mut self) -> Scanned<()> {
        match self.0.peek() {
            None => Ok(()),
            Some(_) => self.error("trailing characters"),
        }
    }

    /// A string.
    pub fn text(&mut self) -> Scanned<Text<'a>> {
        let (inside, escapes) = self.0.string()?;
        if !escapes {
            return Ok(Text(Cow::Borrowed(inside)));
        }
        let from = self.position() - inside.len() - 2;
        serde_json::from_str(self.0.since(from))
            .map_err(|error| JsonError { what: error.to_string().into(), at: from })
    }

    /// A string or null.
    pub fn optional_text(&mut self) -> Scanned<Option<Text<'a>>> {
        if self.null()? { Ok(None) } else { self.text().map(Some) }
    }

    /// Consumes a `null`, if one is next.
    pub fn null(&mut self) -> Scanned<bool> {
        if self.0.peek() != Some(b'n') {
            return Ok(false);
        }
        self.0.literal().map(|()| true)
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

    /// A value, checked but not decoded.
    pub fn value(&mut self) -> Scanned<Raw<'a>> {
        let from = self.here();
        self.0.value()?;
        Ok(Raw(self.0.since(from)))
    }

    /// A value; `None` for null.
    pub fn optional_value(&mut self) -> Scanned<Option<Raw<'a>>> {
        self.value().map(|raw| Some(raw).filter(|raw| !raw.is_null()))
    }

    /// The same for a value that is likely the same text as one checked before: `object` and
    /// `oldObject` differ in little.
    pub fn likely_value(&mut self, known: Option<Raw<'_>>) -> Scanned<Option<Raw<'a>>> {
        let from = self.here();
        if known.is_some_and(|known| self.known(known)) {
            return Ok(Some(self.since(from)));
        }
        self.optional_value()
    }

    /// Consumes a value that was checked before, if the same text is next.
    pub fn known(&mut self, Raw(known): Raw<'_>) -> bool {
        // Such values have an end mark of their own, whatever follows.
        known.starts_with(['{', '[', '"']) && self.exactly(known)
    }

    /// The result of a reader; where it fails, nothing is consumed.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Scanned<T>) -> Option<T> {
        let before = self.0;
        let read = read(self);
        if read.is_err() {
            self.0 = before;
        }
        read.ok()
    }

    /// A value with the result of a reader, or `None` for null; the caller decides whether the
    /// reader must succeed.
    pub fn read<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Scanned<T>,
    ) -> Scanned<Option<JsonRead<'a, T>>> {
        let from = self.here();
        match self.attempt(read) {
            Some(found) => Ok(Some(JsonRead { text: self.since(from), found: Some(found) })),
            None => Ok(self.optional_value()?.map(|text| JsonRead { text, found: None })),
        }
    }

    /// Whether an object is next.
    pub fn at_object(&mut self) -> bool {
        self.0.peek() == Some(b'{')
    }

    /// Reads the members of an object: each call gets the name, and must read the value. The caller
    /// handles duplicate names.
    pub fn members(&mut self, mut member: impl FnMut(Text<'a>, &mut Self) -> Scanned<()>) -> Scanned<()> {
        self.whole_members(|s| s.name().and_then(|name| member(name, s)))
    }

    /// The name of a member.
    pub fn name(&mut self) -> Scanned<Text<'a>> {
        let name = self.text()?;
        if self.0.take(b':') { Ok(name) } else { self.error("expected `:`") }
    }

    /// Consumes the text of a member or of a value that was checked before, if it is next.
    pub fn exactly(&mut self, known: &str) -> bool {
        self.0.peek();
        self.0.exactly(known)
    }

    /// Reads the members of an object: each call must read a name and a value.
    pub fn whole_members(&mut self, mut member: impl FnMut(&mut Self) -> Scanned<()>) -> Scanned<()> {
        if !self.0.take(b'{') {
            return self.error("expected an object");
        }
        if self.0.take(b'}') {
            return Ok(());
        }
        loop {
            member(self)?;
            if self.0.take(b'}') {
                return Ok(());
            }
            if !self.0.take(b',') {
                return self.error("expected `,` or `}`");
            }
        }
    }

    /// Reads the members of an object, or none of a null; returns whether it is an object.
    pub fn optional_members(
        &mut self,
        member: impl FnMut(Text<'a>, &mut Self) -> Scanned<()>,
    ) -> Scanned<bool> {
        if self.null()? { Ok(false) } else { self.members(member).map(|()| true) }
    }

    /// Reads the elements of a list.
    pub fn elements(&mut self, mut element: impl FnMut(&mut Self) -> Scanned<()>) -> Scanned<()> {
        if !self.0.take(b'[') {
            return self.error("expected a list");
        }
        if self.0.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.0.take(b']') {
                return Ok(());
            }
            if !self.0.take(b',') {
                return self.error("expected `,` or `]`");
            }
        }
    }
}
