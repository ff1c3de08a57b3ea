//! Name and Go signature of a function, known before a call.

use super::dynamic::Val;
use super::error::Failure;
use super::limits::Meter;
use super::value::Value;

/// The type of a parameter, as Go declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface{}` or `reflect.Value`: accepts every value.
    Any,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `float64`.
    Float,
    /// `string`.
    Str,
    /// `uint32`: only a literal is one.
    Uint32,
    /// `map[string]interface{}`, or nil.
    Dict,
    /// `[]interface{}`, or nil.
    List,
    /// `time.Time`.
    Time,
    /// `sprig.certificate`.
    Certificate,
}

impl Type {
    /// Its name in Go.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float64",
            Self::Str => "string",
            Self::Uint32 => "uint32",
            Self::Dict => "map[string]interface {}",
            Self::List => "[]interface {}",
            Self::Time => "time.Time",
            Self::Certificate => "sprig.certificate",
        }
    }

    /// Whether an untyped nil can be passed.
    pub(super) fn can_be_nil(self) -> bool {
        matches!(self, Self::Any | Self::Dict | Self::List)
    }

    /// Whether Go would pass the value unconverted.
    pub(super) fn takes(self, value: &Val) -> bool {
        match self {
            Self::Any => true,
            Self::Bool => matches!(value, Val::Bool(_)),
            Self::Int => matches!(value, Val::Int(_)),
            Self::Float => matches!(value, Val::Float(_)),
            Self::Str => matches!(value, Val::Str(_)),
            Self::Uint32 => false,
            Self::List => matches!(value, Val::List(list) if list.elem == super::dynamic::Elem::Any),
            Self::Time => matches!(value, Val::Time(_)),
            Self::Certificate => matches!(value, Val::Certificate(_)),
            Self::Dict => matches!(value, Val::Map(map) if map.elem == super::dynamic::Elem::Any),
        }
    }
}

/// The body of a function; its arguments have the declared types.
pub(super) type Body = fn(&Meter, &[Val]) -> Result<Val, Failure>;

/// The body of a function of the program; its arguments have the declared types. The rendering is charged
/// for its arguments and its result, not for its work. An error rejects the arguments; the template's error
/// prefixes it with the function's name.
pub type Plain = fn(&[Value]) -> Result<Value, String>;

/// Implementation of a function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Implementation {
    /// `and`: the first false argument, without evaluating those behind it.
    And,
    /// `or`: the first true argument.
    Or,
    /// `call`: needs the text of its argument for its error.
    Call,
    Body(Body),
    Plain(Plain),
}

/// A function that templates can call.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub(super) name: &'static str,
    pub(super) params: &'static [Type],
    /// Type of any further arguments.
    pub(super) variadic: Option<Type>,
    pub(super) run: Implementation,
}

impl Function {
    /// A function that takes arguments of these types.
    pub const fn new(name: &'static str, params: &'static [Type], body: Plain) -> Self {
        Self { name, params, variadic: None, run: Implementation::Plain(body) }
    }

    /// The same with any number of further arguments of this type.
    #[must_use]
    pub const fn and_more(self, more: Type) -> Self {
        Self { variadic: Some(more), ..self }
    }
}

/// A function with a fixed number of arguments.
pub(super) const fn fixed(name: &'static str, params: &'static [Type], body: Body) -> Function {
    Function { name, params, variadic: None, run: Implementation::Body(body) }
}

/// A function with any number of further arguments.
pub(super) const fn variadic(
    name: &'static str,
    params: &'static [Type],
    more: Type,
    body: Body,
) -> Function {
    Function { name, params, variadic: Some(more), run: Implementation::Body(body) }
}

/// Access to arguments of declared types without a second check.
pub(super) mod arg {
    use std::rc::Rc;

    use crate::dynamic::{Map, Val};

    pub(crate) fn text(args: &[Val], at: usize) -> &[u8] {
        match args.get(at) {
            Some(Val::Str(text)) => text,
            _ => &[],
        }
    }

    pub(crate) fn shared(args: &[Val], at: usize) -> Rc<[u8]> {
        match args.get(at) {
            Some(Val::Str(text)) => text.clone(),
            _ => Rc::from([].as_slice()),
        }
    }

    /// The text as characters; bytes that are not UTF-8 become U+FFFD, as in Go's own functions.
    pub(crate) fn chars(args: &[Val], at: usize) -> String {
        String::from_utf8_lossy(text(args, at)).into_owned()
    }

    pub(crate) fn int(args: &[Val], at: usize) -> i64 {
        args.get(at).and_then(Val::integer).unwrap_or(0)
    }

    pub(crate) fn float(args: &[Val], at: usize) -> Option<f64> {
        match args.get(at) {
            Some(Val::Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// The elements of a list; none of Go's nil.
    pub(crate) fn items(args: &[Val], at: usize) -> &[Val] {
        match args.get(at) {
            Some(Val::List(list)) => list.items(),
            _ => &[],
        }
    }

    /// A map; `None` for Go's nil map.
    pub(crate) fn map(args: &[Val], at: usize) -> Option<&Map> {
        match args.get(at) {
            Some(Val::Map(map)) => Some(map),
            _ => None,
        }
    }
}
