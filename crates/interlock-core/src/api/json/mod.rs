//! A scanner over JSON text: checks it in one pass, and hands out what is asked for as slices.
//!
//! A review is scanned once and most of it is never looked at again, so this is what a decision
//! costs.

mod cursor;
mod escape;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::text::Text;
use cursor::{Cursor, Scanned};

pub use cursor::JsonError;
pub use escape::{json_bytes, json_string};

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

/// A value of a text, and what a reader made of it as it was passed.
#[derive(Clone, Debug)]
pub struct JsonRead<'a, T> {
    text: Raw<'a>,
    /// `None` where it is not of the shape that was read.
    found: Option<T>,
}

impl<'a, T: Clone> JsonRead<'a, T> {
    /// What the same reader made of it, or why it could not.
    pub fn get(&self, read: impl FnOnce(&mut Scanner<'a>) -> Scanned<T>) -> Scanned<T> {
        self.found.clone().map_or_else(|| read(&mut Scanner::new(self.text.0)), Ok)
    }
}

/// Which members were there already: the same one twice is read by no two readers alike.
#[derive(Debug, Default)]
pub struct SeenMembers(u16);

impl SeenMembers {
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

/// A place in a text, from which values are read.
#[derive(Debug)]
pub struct Scanner<'a>(Cursor<'a>);

impl<'a> Scanner<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self(Cursor::new(text))
    }

    /// How many bytes have been taken.
    pub fn position(&self) -> usize {
        self.0.position()
    }

    /// Where the next token starts.
    pub fn here(&mut self) -> usize {
        self.0.peek();
        self.position()
    }

    /// What was taken since a position.
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

    /// Takes a `null`, if one is next.
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

    /// A value, checked and not read.
    pub fn value(&mut self) -> Scanned<Raw<'a>> {
        let from = self.here();
        self.0.value()?;
        Ok(Raw(self.0.since(from)))
    }

    /// A value that is no null.
    pub fn optional_value(&mut self) -> Scanned<Option<Raw<'a>>> {
        self.value().map(|raw| Some(raw).filter(|raw| !raw.is_null()))
    }

    /// A value that is no null, and likely the same text as one that was checked before: an object
    /// and what it was differ in little.
    pub fn likely_value(&mut self, known: Option<Raw<'_>>) -> Scanned<Option<Raw<'a>>> {
        let from = self.here();
        if known.is_some_and(|known| self.known(known)) {
            return Ok(Some(self.since(from)));
        }
        self.optional_value()
    }

    /// Takes a value that was checked before, if the same text is next.
    pub fn known(&mut self, Raw(known): Raw<'_>) -> bool {
        // These end where they end, whatever follows.
        known.starts_with(['{', '[', '"']) && self.exactly(known)
    }

    /// What a reader makes of what is next; nothing is taken where that is not of its shape.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Scanned<T>) -> Option<T> {
        let before = self.0;
        let read = read(self);
        if read.is_err() {
            self.0 = before;
        }
        read.ok()
    }

    /// A value that is no null, read at once where it is of a shape: whether it must be is for
    /// whoever asks for it.
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

    /// Reads the members of an object: each call gets the name, and must read the value. A name
    /// that is there twice is the caller's to judge.
    pub fn members(&mut self, mut member: impl FnMut(Text<'a>, &mut Self) -> Scanned<()>) -> Scanned<()> {
        self.whole_members(|s| s.name().and_then(|name| member(name, s)))
    }

    /// The name of a member.
    pub fn name(&mut self) -> Scanned<Text<'a>> {
        let name = self.text()?;
        if self.0.take(b':') { Ok(name) } else { self.error("expected `:`") }
    }

    /// Takes the text of a member or of a value that was checked before, if that is next.
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

    /// Reads the members of an object, or nothing of a null; tells which.
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
