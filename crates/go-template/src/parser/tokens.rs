//! Tokens with lookahead, like Go's parser.

use super::{Parsed, Parser, syntax};
use crate::token::{Token, TokenKind};

impl Parser<'_> {
    pub(super) fn next(&mut self) -> Token {
        let tree = &mut self.tree;
        if tree.peeked > 0 {
            tree.peeked -= 1;
        } else {
            tree.tokens[0] = self.lexer.next_token();
        }
        tree.tokens[tree.peeked].clone()
    }

    pub(super) fn backup(&mut self) {
        self.tree.peeked += 1;
    }

    pub(super) fn backup2(&mut self, first: Token) {
        self.tree.tokens[1] = first;
        self.tree.peeked = 2;
    }

    pub(super) fn backup3(&mut self, first: Token, second: Token) {
        self.tree.tokens[1] = second;
        self.tree.tokens[2] = first;
        self.tree.peeked = 3;
    }

    pub(super) fn peek(&mut self) -> Token {
        let token = self.next();
        self.backup();
        token
    }

    pub(super) fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != TokenKind::Space {
                return token;
            }
        }
    }

    pub(super) fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    pub(super) fn expect(&mut self, kind: TokenKind, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(&token, context) }
    }

    pub(super) fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        if token.kind != TokenKind::Error {
            return syntax(format!("unexpected {} in {context}", token.shown()));
        }
        let mut message = token.text.clone();
        let line = self.tree.action_line;
        if line != 0 && line != token.line {
            if !message.ends_with(" action") {
                message.push_str(" in action");
            }
            message.push_str(&format!(" started at {}:{line}", self.name));
        }
        syntax(message)
    }
}
