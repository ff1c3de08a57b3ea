//! Tokens to nodes, as Go's `text/template/parse/parse.go` does it.

use std::collections::BTreeMap;

use super::ast::{Branch, Command, Control, List, Node, Number, Operand, Pipe, Term};
use super::error::{ParseError, ParseErrorKind, Place};
use super::function::Function;
use super::go::quote::{Keep, quote, unquote};
use super::lexer::{Kind, Lexer, Token};
use super::library::{self, Lookup};
use super::limits::MAX_NESTING;
use super::literal;

type Parsed<T> = Result<T, ParseErrorKind>;

/// The templates of one file: its own under its name, and those it defines.
pub(super) fn parse(name: &str, text: &str) -> Result<BTreeMap<String, List>, ParseError> {
    let mut parser =
        Parser { name, lexer: Lexer::new(text), tree: Tree::new(), depth: 0, trees: BTreeMap::new() };
    match parser.file() {
        Ok(()) => Ok(parser.trees),
        Err(kind) => {
            let token = &parser.tree.tokens[0];
            let column = Place::of(text, token.pos).column;
            Err(ParseError { name: name.to_owned(), place: Place { line: token.line, column }, kind })
        }
    }
}

/// What is known while one template (the file or a definition in it) is read.
struct Tree {
    /// Lookahead; the first is the newest.
    tokens: [Token; 3],
    peeked: usize,
    variables: Vec<String>,
    /// Line of the delimiter that started the action being read, 0 outside.
    action_line: usize,
    range_depth: usize,
}

impl Tree {
    fn new() -> Self {
        let none = Token { kind: Kind::Eof, pos: 0, text: String::new(), line: 0 };
        Self {
            tokens: [none.clone(), none.clone(), none],
            peeked: 0,
            variables: vec!["$".to_owned()],
            action_line: 0,
            range_depth: 0,
        }
    }
}

struct Parser<'a> {
    name: &'a str,
    lexer: Lexer<'a>,
    tree: Tree,
    depth: usize,
    trees: BTreeMap<String, List>,
}

/// What ended a list of nodes.
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

// Tokens.
impl Parser<'_> {
    fn next(&mut self) -> Token {
        let tree = &mut self.tree;
        if tree.peeked > 0 {
            tree.peeked -= 1;
        } else {
            tree.tokens[0] = self.lexer.next_token();
        }
        tree.tokens[tree.peeked].clone()
    }

    fn backup(&mut self) {
        self.tree.peeked += 1;
    }

    fn backup2(&mut self, first: Token) {
        self.tree.tokens[1] = first;
        self.tree.peeked = 2;
    }

    fn backup3(&mut self, first: Token, second: Token) {
        self.tree.tokens[1] = second;
        self.tree.tokens[2] = first;
        self.tree.peeked = 3;
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.backup();
        token
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(&token, context) }
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        if token.kind != Kind::Error {
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

// Files, definitions and lists.
impl Parser<'_> {
    fn file(&mut self) -> Parsed<()> {
        let mut root = List::default();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Kind::Define {
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

    /// Reads a template of its own: it sees no variables and no `range` around it.
    fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outer = std::mem::replace(&mut self.tree, Tree::new());
        // On an error the inner tree stays: its newest token is where reading stopped.
        let result = read(self)?;
        self.tree = outer;
        Ok(result)
    }

    fn add(&mut self, name: String, list: List) -> Parsed<()> {
        match self.trees.get(&name) {
            Some(existing) if !existing.is_empty() => {
                if list.is_empty() {
                    return Ok(());
                }
                let name = quote(name.as_bytes(), Keep::Printable);
                syntax(format!("template: multiple definition of template {name}"))
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
        self.expect(Kind::RightDelim, CONTEXT)?;
        let list = self.whole_list(CONTEXT)?;
        self.add(name, list)
    }

    /// A list that `end` must end.
    fn whole_list(&mut self, context: &str) -> Parsed<List> {
        match self.list()? {
            (list, Ending::End) => Ok(list),
            (_, ending) => syntax(format!("unexpected {} in {context}", ending.shown())),
        }
    }

    fn list(&mut self) -> Parsed<(List, Ending)> {
        self.deeper(|parser| {
            let mut list = List::default();
            while parser.peek_non_space().kind != Kind::Eof {
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

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text(token.text))),
            Kind::LeftDelim => {
                self.tree.action_line = token.line;
                let item = self.action()?;
                self.tree.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }
}

// Actions.
impl Parser<'_> {
    fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let node = match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.leave("{{break}}", Node::Break { pos: token.pos })?,
            Kind::Continue => self.leave("{{continue}}", Node::Continue { pos: token.pos })?,
            Kind::Else => return self.otherwise(),
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::Ending(Ending::End));
            }
            Kind::If => self.control(Control::If)?,
            Kind::Range => self.control(Control::Range)?,
            Kind::With => self.control(Control::With)?,
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                let pos = token.pos;
                Node::Action { pos, pipe: self.pipeline("command", Kind::RightDelim)? }
            }
        };
        Ok(Item::Node(node))
    }

    fn leave(&mut self, shown: &str, node: Node) -> Parsed<Node> {
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(&token, shown);
        }
        if self.tree.range_depth == 0 {
            return syntax(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    /// `else`, leaving an `if` or `with` behind it to be read by the control it belongs to.
    fn otherwise(&mut self) -> Parsed<Item> {
        if !matches!(self.peek_non_space().kind, Kind::If | Kind::With) {
            self.expect(Kind::RightDelim, "else")?;
        }
        Ok(Item::Ending(Ending::Else))
    }

    fn control(&mut self, control: Control) -> Parsed<Node> {
        let scope = self.tree.variables.len();
        let pipe = self.pipeline(control.word(), Kind::RightDelim)?;
        let in_range = usize::from(control == Control::Range);
        self.tree.range_depth += in_range;
        let (list, ending) = self.list()?;
        self.tree.range_depth -= in_range;
        let otherwise = match ending {
            Ending::End => None,
            Ending::Else => Some(self.else_list(control)?),
        };
        self.tree.variables.truncate(scope);
        Ok(Node::Branch(Branch { pos: pipe.pos, control, pipe, list, otherwise }))
    }

    /// `{{else if}}` is an `if` within `else`, and one `end` ends both.
    fn else_list(&mut self, control: Control) -> Parsed<List> {
        match (control, self.peek().kind) {
            (Control::If, Kind::If) | (Control::With, Kind::With) => {
                self.next();
                let node = self.deeper(|parser| parser.control(control))?;
                Ok(List { nodes: vec![node] })
            }
            _ => match self.list()? {
                (list, Ending::End) => Ok(list),
                (_, ending) => syntax(format!("expected end; found {}", ending.shown())),
            },
        }
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        let definition = name.clone();
        self.within(|parser| {
            let list = parser.whole_list(CONTEXT)?;
            parser.add(definition, list)
        })?;
        Ok(Node::Template { pos: token.pos, name, pipe: Some(pipe) })
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = if self.next_non_space().kind == Kind::RightDelim {
            None
        } else {
            self.backup();
            Some(self.pipeline(CONTEXT, Kind::RightDelim)?)
        };
        Ok(Node::Template { pos: token.pos, name, pipe })
    }

    fn template_name(&self, token: &Token, context: &str) -> Parsed<String> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(&token.text).map(String::from_utf8) {
            Some(Ok(name)) => Ok(name),
            _ => syntax("invalid syntax"),
        }
    }
}

// Pipelines.
impl Parser<'_> {
    fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let pos = self.peek_non_space().pos;
        let mut pipe = Pipe { pos, assigns: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    check_pipeline(&pipe, context)?;
                    return Ok(pipe);
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.backup();
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
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            self.next();
            // A space is a token, so "$x foo" takes three tokens to tell from "$x := foo".
            let after = self.peek();
            let next = self.peek_non_space();
            let comma = next.kind == Kind::Char && next.text == ",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                if after.kind == Kind::Space {
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
                pipe.assigns = next.kind == Kind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.variables.len() >= 2 {
                return syntax(format!("too many declarations in {context}"));
            }
            if !matches!(self.peek_non_space().kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
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
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.backup(),
                Kind::Pipe => {}
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

    /// A term with the fields taken of it; `None` where no term starts.
    fn operand(&mut self) -> Parsed<Option<Operand>> {
        let Some(operand) = self.term()? else { return Ok(None) };
        let pos = self.peek().pos;
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
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
                let shown = quote(operand.to_string().as_bytes(), Keep::Printable);
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
            Kind::Identifier => Term::Function(find_function(&token.text)?),
            Kind::Dot => Term::Dot,
            Kind::Nil => Term::Nil,
            Kind::Variable => {
                if !self.tree.variables.contains(&token.text) {
                    return Err(ParseErrorKind::UndefinedVariable(token.text));
                }
                Term::Variable(token.text, Vec::new())
            }
            Kind::Field => Term::Field(vec![token.text[1..].to_owned()]),
            Kind::Bool => Term::Bool(token.text == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => Term::Number(number(&token)?),
            Kind::LeftParen => {
                let pipe =
                    self.deeper(|parser| parser.pipeline("parenthesized pipeline", Kind::RightParen))?;
                return Ok(Some(Operand { pos: pipe.pos, term: Term::Pipe(Box::new(pipe)) }));
            }
            Kind::String | Kind::RawString => match unquote(&token.text) {
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
}

fn number(token: &Token) -> Parsed<Number> {
    literal::number(&token.text, token.kind).map_err(ParseErrorKind::Syntax)
}

fn find_function(name: &str) -> Parsed<&'static Function> {
    match library::find(name) {
        Lookup::Known(function) => Ok(function),
        Lookup::Unsupported => Err(ParseErrorKind::UnsupportedFunction(name.to_owned())),
        Lookup::Unknown => Err(ParseErrorKind::UndefinedFunction(name.to_owned())),
    }
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
