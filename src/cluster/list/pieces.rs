//! The text of a list, taken apart while it arrives: where its objects and its metadata begin
//! and end. What they say is for others to read.

use std::ops::Range;

/// Part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// One of `items`.
    Object,
    /// `metadata` of the list itself.
    Metadata,
}

/// A list that arrives.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// What has arrived and is still needed.
    text: Vec<u8>,
    /// How much of it was looked at.
    seen: usize,
    /// Where the piece, or the key of a member, that is open began.
    start: Option<usize>,
    /// Objects and arrays that are open.
    depth: usize,
    quoted: bool,
    escaped: bool,
    /// Member of the list.
    member: Member,
    complete: bool,
}

/// A member of the list: what a piece is when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    Items,
    Metadata,
    #[default]
    Other,
}

impl Member {
    fn of(key: &[u8]) -> Self {
        match key {
            b"items" => Self::Items,
            b"metadata" => Self::Metadata,
            _ => Self::Other,
        }
    }

    /// Its pieces, and how many objects and arrays are open around one.
    fn pieces(self) -> Option<(Piece, usize)> {
        match self {
            Self::Items => Some((Piece::Object, 2)),
            Self::Metadata => Some((Piece::Metadata, 1)),
            Self::Other => None,
        }
    }
}

impl Pieces {
    /// More of the text.
    pub(super) fn add(&mut self, more: &[u8]) {
        let over = self.start.unwrap_or(self.seen);
        self.text.drain(..over);
        self.seen -= over;
        self.start = self.start.map(|_| 0);
        self.text.extend_from_slice(more);
    }

    /// Whether the list has ended.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The next piece that has arrived whole.
    pub(super) fn next(&mut self) -> Option<(Piece, &[u8])> {
        while self.seen < self.text.len() {
            if self.quoted {
                self.pass_text();
            } else if let Some((piece, range)) = self.pass_mark() {
                return Some((piece, &self.text[range]));
            }
        }
        None
    }

    /// Goes on to the end of a string, as far as it has arrived.
    fn pass_text(&mut self) {
        for &byte in &self.text[self.seen..] {
            self.seen += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.quoted = false;
                    // The name of a member, or a value, which no piece follows.
                    if self.depth == 1
                        && let Some(start) = self.start.take()
                    {
                        self.member = Member::of(&self.text[start + 1..self.seen - 1]);
                    }
                    return;
                }
                _ => {}
            }
        }
    }

    /// Takes in one byte outside of strings.
    fn pass_mark(&mut self) -> Option<(Piece, Range<usize>)> {
        let (at, byte) = (self.seen, self.text[self.seen]);
        self.seen += 1;
        let piece = self.member.pieces();
        match byte {
            b'"' => {
                self.quoted = true;
                if self.depth == 1 {
                    self.start = Some(at);
                }
            }
            b'{' | b'[' => {
                if piece.is_some_and(|(_, around)| around == self.depth) {
                    self.start = Some(at);
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.complete = self.depth == 0;
                let (piece, _) = piece.filter(|(_, around)| *around == self.depth)?;
                return self.start.take().map(|start| (piece, start..self.seen));
            }
            _ => {}
        }
        None
    }
}
