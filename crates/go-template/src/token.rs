//! Tokens of a template, named as in Go's `text/template/parse/lex.go`.

use super::go::quote::quoted;

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenKind {
    /// The text cannot be read further; the value has the reason.
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    // Keywords, to the end.
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl TokenKind {
    /// The kind of a keyword.
    pub(super) fn keyword(word: &str) -> Option<Self> {
        Some(match word {
            "block" => Self::Block,
            "break" => Self::Break,
            "continue" => Self::Continue,
            "define" => Self::Define,
            "else" => Self::Else,
            "end" => Self::End,
            "if" => Self::If,
            "nil" => Self::Nil,
            "range" => Self::Range,
            "template" => Self::Template,
            "with" => Self::With,
            _ => return None,
        })
    }
}

/// A token with its position in the text.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Byte offset of its start.
    pub(super) pos: usize,
    pub(super) text: String,
    /// Line of its start, from 1.
    pub(super) line: usize,
}

impl Token {
    /// The name of the token in Go's errors.
    pub(super) fn shown(&self) -> String {
        match self.kind {
            TokenKind::Eof => "EOF".to_owned(),
            TokenKind::Error => self.text.clone(),
            kind if kind >= TokenKind::Block => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                let head: String = self.text.chars().take(10).collect();
                format!("{}...", quoted(&head))
            }
            _ => quoted(&self.text),
        }
    }
}
