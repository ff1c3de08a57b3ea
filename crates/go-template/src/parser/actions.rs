//! Actions up to their pipeline: control structures and definitions.

use super::{Ending, Item, Parsed, Parser, syntax};
use crate::ast::{Branch, Control, Node, NodeList};
use crate::go::quote::unquote;
use crate::token::{Token, TokenKind};

impl Parser<'_> {
    pub(super) fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let node = match token.kind {
            TokenKind::Block => self.block()?,
            TokenKind::Break => self.leave("{{break}}", Node::Break { pos: token.pos })?,
            TokenKind::Continue => self.leave("{{continue}}", Node::Continue { pos: token.pos })?,
            TokenKind::Else => return self.otherwise(),
            TokenKind::End => {
                self.expect(TokenKind::RightDelim, "end")?;
                return Ok(Item::Ending(Ending::End));
            }
            TokenKind::If => self.control(Control::If)?,
            TokenKind::Range => self.control(Control::Range)?,
            TokenKind::With => self.control(Control::With)?,
            TokenKind::Template => self.template()?,
            _ => {
                self.backup();
                let pos = token.pos;
                Node::Action { pos, pipe: self.pipeline("command", TokenKind::RightDelim)? }
            }
        };
        Ok(Item::Node(node))
    }

    fn leave(&mut self, shown: &str, node: Node) -> Parsed<Node> {
        let token = self.next_non_space();
        if token.kind != TokenKind::RightDelim {
            return self.unexpected(&token, shown);
        }
        if self.tree.range_depth == 0 {
            return syntax(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    /// `else`; the control structure that it belongs to reads an `if` or `with` after it.
    fn otherwise(&mut self) -> Parsed<Item> {
        if !matches!(self.peek_non_space().kind, TokenKind::If | TokenKind::With) {
            self.expect(TokenKind::RightDelim, "else")?;
        }
        Ok(Item::Ending(Ending::Else))
    }

    fn control(&mut self, control: Control) -> Parsed<Node> {
        let scope = self.tree.variables.len();
        let pipe = self.pipeline(control.word(), TokenKind::RightDelim)?;
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
    fn else_list(&mut self, control: Control) -> Parsed<NodeList> {
        match (control, self.peek().kind) {
            (Control::If, TokenKind::If) | (Control::With, TokenKind::With) => {
                self.next();
                let node = self.deeper(|parser| parser.control(control))?;
                Ok(NodeList { nodes: vec![node] })
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
        let pipe = self.pipeline(CONTEXT, TokenKind::RightDelim)?;
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
        let pipe = if self.next_non_space().kind == TokenKind::RightDelim {
            None
        } else {
            self.backup();
            Some(self.pipeline(CONTEXT, TokenKind::RightDelim)?)
        };
        Ok(Node::Template { pos: token.pos, name, pipe })
    }

    pub(super) fn template_name(&self, token: &Token, context: &str) -> Parsed<String> {
        if !matches!(token.kind, TokenKind::String | TokenKind::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(&token.text).map(String::from_utf8) {
            Some(Ok(name)) => Ok(name),
            _ => syntax("invalid syntax"),
        }
    }
}
