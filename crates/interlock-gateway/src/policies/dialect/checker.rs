//! The walk over the tree of an expression: names, functions, and types where they are known.

use crd_schema::syntax::tree::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use crd_schema::syntax::tree::{SelectExpr, operators};
use interlock_core::api::suggest::did_you_mean;

use super::attributes::{AUTH_SERVER, Attribute, attribute};
use super::functions::{self, Call, Form, NOT_OF_AUTH_SERVER, USE_EACH, USE_HAS};
use super::pattern;
use super::types::Type;
use super::verdict::{MAX_LEVELS, Use, Verdict};
use super::wording::{list, nearest, shown, spelled};

/// Names of types, which are values of CEL.
const KINDS: [&str; 10] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];

/// Names of types that have parts, as of `type(request.time)`.
const MESSAGES: [&str; 2] = ["google.protobuf.Duration", "google.protobuf.Timestamp"];

/// Why an expression can never act.
struct Never(String);

type Checked<T> = Result<T, Never>;

fn never<T>(reason: impl Into<String>) -> Checked<T> {
    Err(Never(reason.into()))
}

/// What an expression stands for.
enum Shape {
    Value(Type),
    /// The beginning of names of attributes.
    Part(String),
}

impl Shape {
    /// Its type as a value: the beginning of names is a map of them.
    fn kind(&self) -> Type {
        match self {
            Self::Value(kind) => *kind,
            Self::Part(_) => Type::Map,
        }
    }
}

/// A walk, with what it found that the proxy cannot evaluate.
pub(super) struct Checker {
    of: Use,
    unsupported: Option<String>,
    /// Variables of loops.
    variables: Vec<String>,
    level: u16,
}

impl Checker {
    pub(super) fn new(of: Use) -> Self {
        Self { of, unsupported: None, variables: Vec::new(), level: 0 }
    }

    /// The verdict on an expression.
    pub(super) fn verdict(mut self, tree: &IdedExpr) -> Verdict {
        match self.value(tree).and_then(|kind| self.result(kind)) {
            Err(Never(reason)) => Verdict::Refused(reason),
            Ok(()) => self.unsupported.map_or(Verdict::Right, Verdict::Unsupported),
        }
    }

    /// Whether the type of the whole fits its use.
    fn result(&mut self, kind: Type) -> Checked<()> {
        if self.of.is_predicate() && !Type::Bool.takes(kind) {
            return never(format!(
                "is {}, and a predicate has to be a bool; compare it with a value",
                kind.with_article()
            ));
        }
        let is_single = !matches!(kind, Type::List | Type::Map | Type::StringMap | Type::Kind);
        if self.of == Use::Counter && !is_single {
            self.cannot(kind.with_article(), "count by one of its members");
        }
        Ok(())
    }

    /// Notes what the proxy cannot evaluate; the first is shown.
    fn cannot(&mut self, what: String, remedy: &str) {
        if self.of.is_of_proxy() && self.unsupported.is_none() {
            self.unsupported = Some(format!("the proxy cannot evaluate {what}; {remedy}"));
        }
    }

    /// Notes what the auth server cannot evaluate.
    fn auth_server_cannot(&mut self, what: &str, remedy: &str) {
        if !self.of.is_of_proxy() && self.unsupported.is_none() {
            self.unsupported = Some(format!("the auth server cannot evaluate {what}; {remedy}"));
        }
    }

    /// Notes optional values, which only the auth server has.
    fn optional(&mut self, what: &str) {
        self.cannot(what.to_owned(), USE_HAS);
    }

    fn value(&mut self, tree: &IdedExpr) -> Checked<Type> {
        Ok(self.shape(tree)?.kind())
    }

    fn shape(&mut self, tree: &IdedExpr) -> Checked<Shape> {
        self.level = self.level.saturating_add(1);
        if self.level > MAX_LEVELS {
            self.cannot(format!("more than {MAX_LEVELS} levels"), "split the expression into several");
        }
        let shape = match &tree.expr {
            Expr::Ident(name) => self.name(name.strip_prefix('.').unwrap_or(name)),
            Expr::Select(select) => self.selection(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(repeated) => self.repetition(repeated),
            Expr::Literal(literal) => Ok(Shape::Value(kind_of(literal))),
            Expr::List(list) => {
                if !list.optional_indices.is_empty() {
                    self.optional("optional elements");
                }
                self.values(&list.elements)?;
                Ok(Shape::Value(Type::List))
            }
            Expr::Map(map) => {
                map.entries.iter().try_for_each(|entry| self.entry(&entry.expr))?;
                Ok(Shape::Value(Type::Map))
            }
            Expr::Struct(message) => {
                self.cannot(
                    format!("the message {}", shown(&message.type_name)),
                    "use the values of its fields",
                );
                message.entries.iter().try_for_each(|entry| self.entry(&entry.expr))?;
                Ok(Shape::Value(Type::Any))
            }
            Expr::Unspecified => Ok(Shape::Value(Type::Any)),
        };
        self.level -= 1;
        shape
    }

    fn values(&mut self, trees: &[IdedExpr]) -> Checked<Vec<Type>> {
        trees.iter().map(|tree| self.value(tree)).collect()
    }

    fn entry(&mut self, entry: &EntryExpr) -> Checked<()> {
        let is_optional = match entry {
            EntryExpr::StructField(field) => {
                self.value(&field.value)?;
                field.optional
            }
            EntryExpr::MapEntry(entry) => {
                self.value(&entry.key)?;
                self.value(&entry.value)?;
                entry.optional
            }
        };
        if is_optional {
            self.optional("optional entries");
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Checked<Shape> {
        if name.starts_with('@') || self.variables.iter().any(|own| own == name) {
            return Ok(Shape::Value(Type::Any));
        }
        if KINDS.contains(&name) {
            return Ok(Shape::Value(Type::Kind));
        }
        self.attribute(name.to_owned())
    }

    /// What a whole name stands for.
    fn attribute(&mut self, name: String) -> Checked<Shape> {
        if MESSAGES.contains(&name.as_str()) {
            self.cannot(format!("the type {name}"), "compare with timestamp() or duration()");
            return Ok(Shape::Value(Type::Kind));
        }
        if MESSAGES.iter().any(|own| own.strip_prefix(&*name).is_some_and(|rest| rest.starts_with('.'))) {
            return Ok(Shape::Part(name));
        }
        let Some(found) = attribute(&name) else {
            return never(format!("neither Envoy nor Kuadrant has {}; {}", shown(&name), nearest(&name)));
        };
        if found != Attribute::Part && !AUTH_SERVER.contains(&name.as_str()) {
            let near = did_you_mean(&name, AUTH_SERVER);
            self.auth_server_cannot(&name, near.as_deref().unwrap_or("use an attribute of the request"));
        }
        // The auth server takes them from JSON, where a number has no type.
        let known = |kind| if self.of.is_of_proxy() { kind } else { Type::Any };
        match found {
            Attribute::Part => Ok(Shape::Part(name)),
            Attribute::Envoy(kind) => Ok(Shape::Value(known(kind))),
            Attribute::Later(kind) => {
                let kind = known(kind);
                self.cannot(
                    format!("{name} before it forwards the request"),
                    "use an attribute of the request",
                );
                Ok(Shape::Value(kind))
            }
            Attribute::Kuadrant(kind, remedy) => {
                let kind = known(kind);
                self.cannot(name, remedy);
                Ok(Shape::Value(kind))
            }
        }
    }

    fn selection(&mut self, select: &SelectExpr) -> Checked<Shape> {
        let of = self.shape(&select.operand)?;
        let is_unknown = |name: &str| attribute(&format!("{name}.{}", select.field)).is_none();
        // What no request has is not there.
        if select.test && matches!(&of, Shape::Part(name) if is_unknown(name)) {
            return Ok(Shape::Value(Type::Bool));
        }
        let member = self.member(of, &select.field)?;
        Ok(if select.test { Shape::Value(Type::Bool) } else { member })
    }

    fn member(&mut self, of: Shape, field: &str) -> Checked<Shape> {
        match of {
            Shape::Part(name) => self.attribute(format!("{name}.{field}")),
            Shape::Value(Type::StringMap) => Ok(Shape::Value(Type::String)),
            Shape::Value(Type::Any | Type::Map) => Ok(Shape::Value(Type::Any)),
            Shape::Value(kind) => {
                let field = shown(field);
                never(format!(
                    "{} has no member {field}; leave it out, or call it: {field}()",
                    kind.with_article()
                ))
            }
        }
    }

    fn element(&mut self, of: &IdedExpr, index: &IdedExpr) -> Checked<Shape> {
        let of = self.shape(of)?;
        let at = self.value(index)?;
        let taken: &[Type] = match of.kind() {
            Type::List => &[Type::Int, Type::Uint],
            Type::StringMap => &[Type::String],
            Type::Map if matches!(of, Shape::Part(_)) => &[Type::String],
            Type::Map => &[Type::String, Type::Int, Type::Uint, Type::Bool],
            _ => &[Type::Any],
        };
        if !taken.iter().any(|taken| taken.takes(at)) {
            let [of, at, taken] = [of.kind(), at, taken[0]].map(Type::with_article);
            return never(format!("{of} has no member by {at}; use {taken}"));
        }
        match (&index.expr, of) {
            (
                Expr::Literal(LiteralValue::String(field)),
                of @ (Shape::Part(_) | Shape::Value(Type::StringMap)),
            ) => self.member(of, field.inner()),
            (_, Shape::Part(_) | Shape::Value(Type::Any | Type::List | Type::Map)) => {
                Ok(Shape::Value(Type::Any))
            }
            (_, Shape::Value(Type::StringMap)) => Ok(Shape::Value(Type::String)),
            (_, Shape::Value(kind)) => {
                never(format!("{} has no members; leave out the brackets", kind.with_article()))
            }
        }
    }

    fn repetition(&mut self, repeated: &ComprehensionExpr) -> Checked<Shape> {
        self.cannot("the loops all, exists, exists_one, filter and map".to_owned(), USE_EACH);
        self.value(&repeated.iter_range)?;
        let before = self.variables.len();
        let own = [Some(&repeated.iter_var), repeated.iter_var2.as_ref()];
        self.variables.extend(own.into_iter().flatten().cloned());
        for part in [&repeated.accu_init, &repeated.loop_cond, &repeated.loop_step, &repeated.result] {
            self.value(part)?;
        }
        self.variables.truncate(before);
        Ok(Shape::Value(Type::Any))
    }

    fn call(&mut self, call: &CallExpr) -> Checked<Shape> {
        let name = call.func_name.as_str();
        if let Some(header) = hyphenated(call) {
            let header = shown(&header);
            return never(format!(
                "request.headers.{header} is a subtraction; write request.headers['{header}']"
            ));
        }
        match (name, call.args.as_slice()) {
            (operators::INDEX, [of, index]) => return self.element(of, index),
            (operators::OPT_INDEX | operators::OPT_SELECT, [of, _]) => {
                self.optional("optional members");
                self.value(of)?;
                return Ok(Shape::Value(Type::Any));
            }
            (operators::NOT_STRICTLY_FALSE, [of]) => return self.shape(of),
            // Macros of optional values, which the parser leaves as calls: their variable is no attribute.
            ("optMap" | "optFlatMap", _) => {
                self.cannot(format!("{name}()"), USE_HAS);
                return Ok(Shape::Value(Type::Any));
            }
            _ => {}
        }
        // `re.capture()` parses as a method of `re`.
        let qualified = call.target.as_ref().and_then(|target| match &target.expr {
            Expr::Ident(of) => Some(format!("{of}.{name}")),
            _ => None,
        });
        let qualified = qualified.filter(|name| functions::names().any(|own| own == name));
        let mut kinds = Vec::with_capacity(call.args.len() + 1);
        if let (Some(target), None) = (&call.target, &qualified) {
            kinds.push(self.value(target)?);
        }
        kinds.extend(self.values(&call.args)?);
        if let Some(value) = self.comparison(name, &call.args, &kinds)? {
            return Ok(Shape::Value(value));
        }
        let is_operator = name.starts_with(['_', '!', '-']);
        let form = match (&call.target, &qualified) {
            (Some(_), None) => Form::Method,
            _ if is_operator => Form::Operator,
            _ => Form::Global,
        };
        let name = qualified.as_deref().unwrap_or(name);
        let kind = self.function(name, form, &kinds)?;
        let last = call.args.last().map(|last| &last.expr);
        if let ("matches", Some(Expr::Literal(LiteralValue::String(text)))) = (name, last) {
            self.pattern(text.inner())?;
        }
        Ok(Shape::Value(kind))
    }

    /// The operators that take any types.
    fn comparison(&mut self, name: &str, args: &[IdedExpr], kinds: &[Type]) -> Checked<Option<Type>> {
        match (name, kinds) {
            (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
                let is_null = |tree: &IdedExpr| matches!(tree.expr, Expr::Literal(LiteralValue::Null));
                if args.iter().filter(|tree| is_null(tree)).count() == 1 {
                    self.cannot(
                        "a comparison with null: what is absent has no value there".to_owned(),
                        "use has()",
                    );
                } else if !left.can_equal(*right) {
                    return never(format!(
                        "{} never equals {}; compare values of one type",
                        left.with_article(),
                        right.with_article()
                    ));
                }
                Ok(Some(Type::Bool))
            }
            (operators::IN, [_, of]) => {
                if Type::List.takes(*of) || Type::Map.takes(*of) {
                    return Ok(Some(Type::Bool));
                }
                let remedy = if *of == Type::String { "use contains()" } else { "use a list or a map" };
                never(format!("in has no form for {}; {remedy}", of.with_article()))
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                if !Type::Bool.takes(*condition) {
                    return never(format!(
                        "the condition of ? : is {}; compare it with a value",
                        condition.with_article()
                    ));
                }
                Ok(Some(if yes == no { *yes } else { Type::Any }))
            }
            _ => Ok(None),
        }
    }

    fn function(&mut self, name: &str, form: Form, kinds: &[Type]) -> Checked<Type> {
        let spelled = spelled(name, form);
        if NOT_OF_AUTH_SERVER.contains(&name) {
            self.auth_server_cannot(&spelled, "use a function of CEL or of strings");
        }
        match functions::call(name, form, kinds) {
            Call::Envoy(kind) => Ok(kind),
            Call::Kuadrant(kind, remedy) => {
                let of = if form == Form::Operator { format!(" of {}", list(kinds)) } else { String::new() };
                self.cannot(format!("{spelled}{of}"), remedy);
                Ok(kind)
            }
            Call::WrongTypes => {
                never(format!("{spelled} has no form for {}; use values of other types", list(kinds)))
            }
            Call::WrongCount => never(format!(
                "{spelled} is called with {} arguments, which it does not take; see the table of functions",
                kinds.len()
            )),
            Call::WrongForm => {
                let remedy = if form == Form::Method {
                    format!("write {}(a) in place of a.{spelled}", shown(name))
                } else {
                    format!("write a.{spelled} in place of {}(a)", shown(name))
                };
                self.cannot(format!("{spelled} in this form"), &remedy);
                Ok(Type::Any)
            }
            Call::Unknown => {
                let known: Vec<&str> = functions::names().collect();
                let near = did_you_mean(&shown(name), &known);
                let remedy = near.unwrap_or_else(|| "see the table of functions".to_owned());
                never(format!("neither Envoy nor Kuadrant has the function {spelled}; {remedy}"))
            }
        }
    }

    fn pattern(&mut self, text: &str) -> Checked<()> {
        match pattern::check(text) {
            Ok(()) => {}
            Err(pattern::Refused::TooLarge) => {
                self.cannot(
                    "a pattern that large".to_owned(),
                    "shorten it, or use startsWith() and contains()",
                );
            }
            Err(pattern::Refused::Syntax { reason, is_taken_elsewhere: true }) if self.of.is_of_proxy() => {
                self.cannot(format!("its pattern: {reason}"), "write it for RE2");
            }
            Err(pattern::Refused::Syntax { reason, .. }) => {
                return never(format!("has a pattern that RE2 refuses: {reason}; write it for RE2"));
            }
        }
        Ok(())
    }
}

/// The header that `request.headers.x-user` means: CEL has no hyphens in names.
fn hyphenated(call: &CallExpr) -> Option<String> {
    let (mut call, mut after) = (call, Vec::new());
    loop {
        let (operators::SUBSTRACT, [left, right]) = (call.func_name.as_str(), call.args.as_slice()) else {
            return None;
        };
        after.push(first_name(right)?);
        match &left.expr {
            Expr::Call(earlier) => call = earlier,
            Expr::Select(first) if is_headers(&first.operand) => {
                after.push(&first.field);
                after.reverse();
                return Some(after.join("-"));
            }
            _ => return None,
        }
    }
}

/// The name that `user` or `user.startsWith('a')` begins with.
fn first_name(tree: &IdedExpr) -> Option<&str> {
    match &tree.expr {
        Expr::Ident(name) => Some(name),
        Expr::Call(call) => match &call.target.as_ref()?.expr {
            Expr::Ident(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

fn is_headers(tree: &IdedExpr) -> bool {
    let Expr::Select(select) = &tree.expr else { return false };
    select.field == "headers" && matches!(&select.operand.expr, Expr::Ident(of) if of == "request")
}

fn kind_of(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}
