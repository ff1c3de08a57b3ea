//! Splits the text of a list while it arrives: finds where its objects and its metadata begin and end.
//! Their content is decoded elsewhere.

use std::ops::Range;

/// Part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListPiece {
    /// One of `items`.
    Object,
    /// `metadata` of the list itself.
    Metadata,
}

/// A list that is arriving.
#[derive(Debug, Default)]
pub(super) struct ListSplitter {
    /// Text that has arrived and is still needed.
    text: Vec<u8>,
    /// How much of it was scanned.
    seen: usize,
    /// Start of the open piece, or of the open key of a member.
    start: Option<usize>,
    /// Number of open objects and arrays.
    depth: usize,
    quoted: bool,
    escaped: bool,
    member: Member,
    complete: bool,
}

/// A member of the list, which decides what its pieces are.
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

    /// Its pieces, and the nesting depth around one.
    fn pieces(self) -> Option<(ListPiece, usize)> {
        match self {
            Self::Items => Some((ListPiece::Object, 2)),
            Self::Metadata => Some((ListPiece::Metadata, 1)),
            Self::Other => None,
        }
    }
}

impl ListSplitter {
    /// Appends text.
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

    /// The next complete piece.
    pub(super) fn next(&mut self) -> Option<(ListPiece, &[u8])> {
        while self.seen < self.text.len() {
            if self.quoted {
                self.skip_string();
            } else if let Some((piece, range)) = self.scan_byte() {
                return Some((piece, &self.text[range]));
            }
        }
        None
    }

    /// Skips to the end of a string, as far as it has arrived.
    fn skip_string(&mut self) {
        for &byte in &self.text[self.seen..] {
            self.seen += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.quoted = false;
                    // The name of a member, or a string value, which no piece follows.
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

    /// Consumes one byte outside of strings.
    fn scan_byte(&mut self) -> Option<(ListPiece, Range<usize>)> {
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
