//! Pipelines: declarations, commands, operands.

use super::{Parsed, Parser, syntax};
use crate::ast::{Command, Number, Operand, Pipe, Term};
use crate::error::ParseErrorKind;
use crate::function::Function;
use crate::functions::Lookup;
use crate::go::quote::{quoted, unquote};
use crate::literal;
use crate::token::{Token, TokenKind};

impl Parser<'_> {
    /// Parses a pipeline up to the token that ends it.
    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Parsed<Pipe> {
        let pos = self.peek_non_space().pos;
        let mut pipe = Pipe { pos, assigns: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    check_pipeline(&pipe, context)?;
                    // Most have one command, but a new list allocates four.
                    pipe.commands.shrink_to_fit();
                    return Ok(pipe);
                }
                TokenKind::Bool
                | TokenKind::CharConstant
                | TokenKind::Complex
                | TokenKind::Dot
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::Number
                | TokenKind::Nil
                | TokenKind::RawString
                | TokenKind::String
                | TokenKind::Variable
                | TokenKind::LeftParen => {
                    self.backup();
                    self.count()?;
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
    }

    /// `$x :=`, `$x =`, and in a `range` also `$i, $x :=`.
    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Parsed<()> {
        loop {
            let variable = self.peek_non_space();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            self.next();
            // A space is a token, so distinguishing "$x foo" from "$x := foo" takes three tokens.
            let after = self.peek();
            let next = self.peek_non_space();
            let comma = next.kind == TokenKind::Char && next.text == ",";
            if !comma && !matches!(next.kind, TokenKind::Assign | TokenKind::Declare) {
                if after.kind == TokenKind::Space {
                    self.backup3(variable, after);
                } else {
                    self.backup2(variable);
                }
                return Ok(());
            }
            self.next_non_space();
            pipe.variables.push(variable.text.clone());
            self.tree.variables.push(variable.text);
            if !comma {
                pipe.assigns = next.kind == TokenKind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.variables.len() >= 2 {
                return syntax(format!("too many declarations in {context}"));
            }
            if !matches!(
                self.peek_non_space().kind,
                TokenKind::Variable | TokenKind::RightDelim | TokenKind::RightParen
            ) {
                return syntax("range can only initialize variables");
            }
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let pos = self.peek_non_space().pos;
        let mut operands = Vec::new();
        loop {
            self.peek_non_space();
            operands.extend(self.operand()?);
            let token = self.next();
            match token.kind {
                TokenKind::Space => continue,
                TokenKind::RightDelim | TokenKind::RightParen => self.backup(),
                TokenKind::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        let mut operands = operands.into_iter();
        match operands.next() {
            Some(first) => Ok(Command { pos, first, args: operands.collect() }),
            None => syntax("empty command"),
        }
    }

    /// A term with its field accesses; `None` if no term starts here.
    fn operand(&mut self) -> Parsed<Option<Operand>> {
        self.count()?;
        let Some(operand) = self.term()? else { return Ok(None) };
        let pos = self.peek().pos;
        let mut fields = Vec::new();
        while self.peek().kind == TokenKind::Field {
            self.count()?;
            fields.push(self.next().text[1..].to_owned());
        }
        if fields.is_empty() {
            return Ok(Some(operand));
        }
        let term = match operand.term {
            Term::Field(mut names) => {
                names.append(&mut fields);
                Term::Field(names)
            }
            Term::Variable(name, mut names) => {
                names.append(&mut fields);
                Term::Variable(name, names)
            }
            Term::Bool(_) | Term::String { .. } | Term::Number(_) | Term::Nil | Term::Dot => {
                let shown = quoted(&operand.to_string());
                return syntax(format!("unexpected . after term {shown}"));
            }
            _ => Term::Chain(Box::new(operand), fields),
        };
        Ok(Some(Operand { pos, term }))
    }

    fn term(&mut self) -> Parsed<Option<Operand>> {
        let token = self.next_non_space();
        let pos = token.pos;
        let term = match token.kind {
            TokenKind::Identifier => Term::Function(self.function(&token.text)?),
            TokenKind::Dot => Term::Dot,
            TokenKind::Nil => Term::Nil,
            TokenKind::Variable => {
                if !self.tree.variables.contains(&token.text) {
                    return Err(ParseErrorKind::UndefinedVariable(token.text));
                }
                Term::Variable(token.text, Vec::new())
            }
            TokenKind::Field => Term::Field(vec![token.text[1..].to_owned()]),
            TokenKind::Bool => Term::Bool(token.text == "true"),
            TokenKind::CharConstant | TokenKind::Complex | TokenKind::Number => Term::Number(number(&token)?),
            TokenKind::LeftParen => {
                let pipe =
                    self.deeper(|parser| parser.pipeline("parenthesized pipeline", TokenKind::RightParen))?;
                return Ok(Some(Operand { pos: pipe.pos, term: Term::Pipe(Box::new(pipe)) }));
            }
            TokenKind::String | TokenKind::RawString => match unquote(&token.text) {
                Some(value) => Term::String { literal: token.text, value },
                None => return syntax("invalid syntax"),
            },
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(Operand { pos, term }))
    }

    fn function(&self, name: &str) -> Parsed<&'static Function> {
        match self.functions.find(name) {
            Lookup::Known(function) => Ok(function),
            Lookup::Unsupported => Err(ParseErrorKind::UnsupportedFunction(name.to_owned())),
            Lookup::Unknown => Err(ParseErrorKind::UndefinedFunction(name.to_owned())),
        }
    }
}

fn number(token: &Token) -> Parsed<Number> {
    literal::number(&token.text, token.kind).map_err(ParseErrorKind::Syntax)
}

fn check_pipeline(pipe: &Pipe, context: &str) -> Parsed<()> {
    if pipe.commands.is_empty() {
        return syntax(format!("missing value for {context}"));
    }
    for (i, command) in pipe.commands.iter().enumerate().skip(1) {
        if let Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::String { .. } =
            command.first.term
        {
            return syntax(format!("non executable command in pipeline stage {}", i + 1));
        }
    }
    Ok(())
}
