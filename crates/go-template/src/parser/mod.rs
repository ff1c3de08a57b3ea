//! Tokens to nodes, like Go's `text/template/parse/parse.go`.

use std::collections::BTreeMap;

use super::ast::{Node, NodeList};
use super::error::{ParseError, ParseErrorKind, Place};
use super::functions::Functions;
use super::go::quote::quoted;
use super::lexer::Lexer;
use super::limits::{MAX_NESTING, MAX_NODES};
use super::token::{Token, TokenKind};

mod actions;
mod pipelines;
mod scope;
mod tokens;

use scope::Scope;

type Parsed<T> = Result<T, ParseErrorKind>;

/// The templates of one file: its own under its name, and its definitions.
pub(super) struct Parse {
    pub(super) trees: BTreeMap<String, NodeList>,
    /// Number of their nodes, commands and operands.
    pub(super) nodes: usize,
}

/// Parses the text of a file.
pub(super) fn parse(name: &str, text: &str, functions: &Functions) -> Result<Parse, ParseError> {
    let lexer = Lexer::new(text);
    let mut parser =
        Parser { name, functions, lexer, tree: Tree::new(), depth: 0, nodes: 0, trees: BTreeMap::new() };
    match parser.file() {
        Ok(()) => Ok(Parse { trees: parser.trees, nodes: parser.nodes }),
        Err(kind) => {
            let token = &parser.tree.tokens[0];
            let column = Place::of(text, token.pos).column;
            let place = Place { line: token.line, column };
            Err(ParseError { name: name.to_owned(), place, kind: kind.cut() })
        }
    }
}

/// State of the parser for one template (the file or a definition in it).
struct Tree {
    /// Lookahead; the first is the newest.
    tokens: [Token; 3],
    peeked: usize,
    variables: Scope,
    /// Line of the left delimiter of the current action, 0 outside.
    action_line: usize,
    range_depth: usize,
}

impl Tree {
    fn new() -> Self {
        let mut variables = Scope::default();
        variables.push("$".to_owned());
        let none = Token { kind: TokenKind::Eof, pos: 0, text: String::new(), line: 0 };
        Self {
            tokens: [none.clone(), none.clone(), none],
            peeked: 0,
            variables,
            action_line: 0,
            range_depth: 0,
        }
    }
}

struct Parser<'a> {
    name: &'a str,
    functions: &'a Functions,
    lexer: Lexer<'a>,
    tree: Tree,
    depth: usize,
    /// Nodes, commands and operands so far.
    nodes: usize,
    trees: BTreeMap<String, NodeList>,
}

/// The end of a list of nodes.
enum Ending {
    End,
    Else,
}

impl Ending {
    fn shown(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    Ending(Ending),
}

fn syntax<T>(message: impl Into<String>) -> Parsed<T> {
    Err(ParseErrorKind::Syntax(message.into()))
}

impl Parser<'_> {
    fn file(&mut self) -> Parsed<()> {
        let mut root = NodeList::default();
        while self.peek().kind != TokenKind::Eof {
            if self.peek().kind == TokenKind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == TokenKind::Define {
                    self.within(Self::definition)?;
                    continue;
                }
                self.backup2(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => root.nodes.push(node),
                Item::Ending(ending) => return syntax(format!("unexpected {}", ending.shown())),
            }
        }
        self.add(self.name.to_owned(), root)
    }

    /// Parses a separate template, without access to outer variables or `range` loops.
    fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outer = std::mem::replace(&mut self.tree, Tree::new());
        // On an error the inner tree stays: its newest token is where the parser stopped.
        let result = read(self)?;
        self.tree = outer;
        Ok(result)
    }

    fn add(&mut self, name: String, list: NodeList) -> Parsed<()> {
        match self.trees.get(&name) {
            Some(existing) if !existing.is_empty() => {
                if list.is_empty() {
                    return Ok(());
                }
                syntax(format!("template: multiple definition of template {}", quoted(&name)))
            }
            _ => {
                self.trees.insert(name, list);
                Ok(())
            }
        }
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        self.expect(TokenKind::RightDelim, CONTEXT)?;
        let list = self.whole_list(CONTEXT)?;
        self.add(name, list)
    }

    /// A list that must end with `end`.
    fn whole_list(&mut self, context: &str) -> Parsed<NodeList> {
        match self.list()? {
            (list, Ending::End) => Ok(list),
            (_, ending) => syntax(format!("unexpected {} in {context}", ending.shown())),
        }
    }

    fn list(&mut self) -> Parsed<(NodeList, Ending)> {
        self.deeper(|parser| {
            let mut list = NodeList::default();
            while parser.peek_non_space().kind != TokenKind::Eof {
                match parser.text_or_action()? {
                    Item::Node(node) => list.nodes.push(node),
                    Item::Ending(ending) => return Ok((list, ending)),
                }
            }
            syntax("unexpected EOF")
        })
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_NESTING {
            return Err(ParseErrorKind::TooDeep(MAX_NESTING));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Counts a node, a command or an operand, before it is created.
    fn count(&mut self) -> Parsed<()> {
        self.nodes += 1;
        if self.nodes > MAX_NODES { Err(ParseErrorKind::TooLarge(MAX_NODES)) } else { Ok(()) }
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        self.count()?;
        let token = self.next_non_space();
        match token.kind {
            TokenKind::Text => Ok(Item::Node(Node::Text(token.text))),
            TokenKind::LeftDelim => {
                self.tree.action_line = token.line;
                let item = self.action()?;
                self.tree.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }
}
