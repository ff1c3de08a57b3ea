//! Template text to tokens, state by state like Go's `text/template/parse/lex.go`.

use super::go::quote::quoted;
use super::go::utf8::is_print;
use super::token::{Token, TokenKind};

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const LEFT_COMMENT: &str = "/*";
const RIGHT_COMMENT: &str = "*/";
/// Spaces that a trim marker removes.
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
/// The marker and the space beside it.
const TRIM_MARKER: usize = 2;

/// Reads one token at a time.
pub(super) struct Lexer<'a> {
    input: &'a str,
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    paren_depth: usize,
    inside_action: bool,
    failed: Option<Token>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a str) -> Self {
        Self {
            input,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            paren_depth: 0,
            inside_action: false,
            failed: None,
        }
    }

    /// The next token; repeats the last one after the end or an error.
    pub(super) fn next_token(&mut self) -> Token {
        if let Some(token) = &self.failed {
            return token.clone();
        }
        if self.inside_action { self.inside_action() } else { self.text() }
    }

    fn rest(&self) -> &'a str {
        &self.input[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    /// Advances over bytes without decoding them as characters.
    fn skip(&mut self, bytes: usize) {
        let text = &self.input[self.pos..self.pos + bytes];
        self.line += text.matches('\n').count();
        self.pos += bytes;
    }

    fn ignore(&mut self) {
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn emit(&mut self, kind: TokenKind) -> Token {
        let text = self.input[self.start..self.pos].to_owned();
        let token = Token { kind, pos: self.start, text, line: self.start_line };
        self.ignore();
        token
    }

    fn error(&mut self, message: impl Into<String>) -> Token {
        let token =
            Token { kind: TokenKind::Error, pos: self.start, text: message.into(), line: self.start_line };
        self.failed = Some(token.clone());
        token
    }

    /// Plain text up to the next action.
    fn text(&mut self) -> Token {
        loop {
            let Some(offset) = self.rest().find(LEFT) else {
                self.skip(self.rest().len());
                return if self.pos > self.start {
                    self.emit(TokenKind::Text)
                } else {
                    self.emit(TokenKind::Eof)
                };
            };
            if offset > 0 {
                let text = &self.rest()[..offset];
                let trims = has_left_trim_marker(&self.rest()[offset + LEFT.len()..]);
                let kept = if trims { text.trim_end_matches(SPACES).len() } else { offset };
                self.skip(kept);
                let token = self.emit(TokenKind::Text);
                self.skip(offset - kept);
                self.ignore();
                if !token.text.is_empty() {
                    return token;
                }
            }
            if let Some(token) = self.left_delim() {
                return token;
            }
        }
    }

    /// The start of an action; `None` after a comment.
    fn left_delim(&mut self) -> Option<Token> {
        self.skip(LEFT.len());
        let after_marker = if has_left_trim_marker(self.rest()) { TRIM_MARKER } else { 0 };
        if self.rest()[after_marker..].starts_with(LEFT_COMMENT) {
            self.skip(after_marker);
            self.ignore();
            return self.comment();
        }
        let token = self.emit(TokenKind::LeftDelim);
        self.inside_action = true;
        self.skip(after_marker);
        self.ignore();
        self.paren_depth = 0;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token> {
        let Some(end) = self.rest()[LEFT_COMMENT.len()..].find(RIGHT_COMMENT) else {
            return Some(self.error("unclosed comment"));
        };
        let width = LEFT_COMMENT.len() + end + RIGHT_COMMENT.len();
        let Some(trims) = right_delim(&self.rest()[width..]) else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.skip(width + RIGHT.len() + if trims { TRIM_MARKER } else { 0 });
        if trims {
            self.skip_spaces();
        }
        self.ignore();
        None
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start_matches(SPACES).len());
    }

    fn right_delim(&mut self, trims: bool) -> Token {
        if trims {
            self.skip(TRIM_MARKER);
            self.ignore();
        }
        self.skip(RIGHT.len());
        let token = self.emit(TokenKind::RightDelim);
        if trims {
            self.skip_spaces();
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside_action(&mut self) -> Token {
        if let Some(trims) = right_delim(self.rest()) {
            return if self.paren_depth == 0 {
                self.right_delim(trims)
            } else {
                self.error("unclosed left paren")
            };
        }
        let Some(c) = self.peek() else {
            return self.error("unclosed action");
        };
        if is_space(c) {
            return self.space();
        }
        if matches!(c, '+' | '-' | '0'..='9') {
            return self.number();
        }
        if c == '.' && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        self.next();
        match c {
            '=' => self.emit(TokenKind::Assign),
            ':' if self.next() == Some('=') => self.emit(TokenKind::Declare),
            ':' => self.error("expected :="),
            '|' => self.emit(TokenKind::Pipe),
            '"' => self.quoted('"', TokenKind::String, "unterminated quoted string"),
            '\'' => self.quoted('\'', TokenKind::CharConstant, "unterminated character constant"),
            '`' => self.raw_string(),
            '$' => self.field_or_variable(TokenKind::Variable, TokenKind::Variable),
            // Go reads a point at the very end of the text as a number, and rejects it as such.
            '.' if self.peek().is_none() => self.emit(TokenKind::Number),
            '.' => self.field_or_variable(TokenKind::Field, TokenKind::Dot),
            '(' => {
                self.paren_depth += 1;
                self.emit(TokenKind::LeftParen)
            }
            ')' if self.paren_depth == 0 => self.error("unexpected right paren"),
            ')' => {
                self.paren_depth -= 1;
                self.emit(TokenKind::RightParen)
            }
            c if is_alphanumeric(c) => self.identifier(),
            ' '..='~' => self.emit(TokenKind::Char),
            c => self.error(format!("unrecognized character in action: {}", unicode(c))),
        }
    }

    /// A run of spaces, without the space of a trimming right delimiter.
    fn space(&mut self) -> Token {
        while self.peek().is_some_and(is_space) {
            self.next();
        }
        // All spaces are one byte wide.
        if right_delim(&self.input[self.pos - 1..]) == Some(true) {
            self.pos -= 1;
            if self.input[self.pos..].starts_with('\n') {
                self.line -= 1;
            }
            if self.pos == self.start {
                return self.right_delim(true);
            }
        }
        self.emit(TokenKind::Space)
    }

    fn identifier(&mut self) -> Token {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if let Some(token) = self.bad_character() {
            return token;
        }
        let word = &self.input[self.start..self.pos];
        let kind = match word {
            "true" | "false" => TokenKind::Bool,
            word => TokenKind::keyword(word).unwrap_or(TokenKind::Identifier),
        };
        self.emit(kind)
    }

    fn field_or_variable(&mut self, kind: TokenKind, alone: TokenKind) -> Token {
        if self.at_terminator() {
            return self.emit(alone);
        }
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        self.bad_character().unwrap_or_else(|| self.emit(kind))
    }

    fn bad_character(&mut self) -> Option<Token> {
        if self.at_terminator() {
            return None;
        }
        let c = self.peek()?;
        Some(self.error(format!("bad character {}", unicode(c))))
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(c) if is_space(c) => true,
            Some(_) => self.rest().starts_with(RIGHT),
        }
    }

    fn quoted(&mut self, mark: char, kind: TokenKind, unterminated: &str) -> Token {
        loop {
            match self.next() {
                Some('\\') if !matches!(self.next(), None | Some('\n')) => {}
                None | Some('\n' | '\\') => return self.error(unterminated),
                Some(c) if c == mark => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_string(&mut self) -> Token {
        loop {
            match self.next() {
                None => return self.error("unterminated raw quoted string"),
                Some('`') => return self.emit(TokenKind::RawString),
                Some(_) => {}
            }
        }
    }

    /// Accepts more than valid numbers; the parser rejects the rest.
    fn number(&mut self) -> Token {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.input[..self.pos].ends_with('i') {
                return self.bad_number();
            }
            return self.emit(TokenKind::Complex);
        }
        self.emit(TokenKind::Number)
    }

    fn bad_number(&mut self) -> Token {
        let text = quoted(&self.input[self.start..self.pos]);
        self.error(format!("bad number syntax: {text}"))
    }

    fn accept(&mut self, valid: &str) -> bool {
        let accepted = self.peek().is_some_and(|c| valid.contains(c));
        if accepted {
            self.next();
        }
        accepted
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEX: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEX;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if digits == DECIMAL && self.accept("eE") || digits == HEX && self.accept("pP") {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

/// `U+0040 '@'`, like Go's `%#U`.
fn unicode(c: char) -> String {
    let code = format!("U+{:04X}", u32::from(c));
    if is_print(c) { format!("{code} '{c}'") } else { code }
}

fn is_space(c: char) -> bool {
    SPACES.contains(&c)
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || !c.is_ascii() && c.is_alphabetic()
}

fn has_left_trim_marker(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

/// Whether the text starts with a right delimiter, and whether that trims.
fn right_delim(text: &str) -> Option<bool> {
    if text.starts_with(RIGHT) {
        return Some(false);
    }
    let mut chars = text.chars();
    let marked = chars.next().is_some_and(is_space) && chars.next() == Some('-');
    (marked && chars.as_str().starts_with(RIGHT)).then_some(true)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(text);
        let mut shown = Vec::new();
        loop {
            let token = lexer.next_token();
            shown.push(format!("{:?}@{}:{}", token.kind, token.line, token.text));
            if matches!(token.kind, TokenKind::Eof | TokenKind::Error) {
                return shown;
            }
        }
    }

    #[rstest]
    #[case("a", &["Text@1:a", "Eof@1:"])]
    #[case("a \n{{- .X -}}\n b", &["Text@1:a", "LeftDelim@2:{{", "Field@2:.X", "RightDelim@2:}}", "Text@3:b", "Eof@3:"])]
    #[case("{{/* c\n */}}b", &["Text@2:b", "Eof@2:"])]
    #[case("{{-3}}", &["LeftDelim@1:{{", "Number@1:-3", "RightDelim@1:}}", "Eof@1:"])]
    #[case("{{$x := .}}", &["LeftDelim@1:{{", "Variable@1:$x", "Space@1: ", "Declare@1::=", "Space@1: ", "Dot@1:.", "RightDelim@1:}}", "Eof@1:"])]
    #[case("{{(", &["LeftDelim@1:{{", "LeftParen@1:(", "Error@1:unclosed action"])]
    #[case("{{\"a\\", &["LeftDelim@1:{{", "Error@1:unterminated quoted string"])]
    #[case("{{1x}}", &["LeftDelim@1:{{", "Error@1:bad number syntax: \"1x\""])]
    #[case("{{\u{1}}}", &["LeftDelim@1:{{", "Error@1:unrecognized character in action: U+0001"])]
    #[case("{{a$}}", &["LeftDelim@1:{{", "Error@1:bad character U+0024 '$'"])]
    fn lexes(#[case] text: &str, #[case] want: &[&str]) {
        assert_eq!(tokens(text), want);
    }
}
