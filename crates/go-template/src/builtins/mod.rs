//! Functions of Go's `text/template` itself.

use super::ast::Operand;
use super::dynamic::{Elem, List, Val};
use super::error::Failure;
use super::function::Type::{Any, Str};
use super::function::{Function, Implementation, fixed, variadic};
use super::limits::Meter;
use super::print;

mod compare;
mod escape;

use compare::{eq, equal, less, less_or_equal};
use escape::{html, js, urlquery};

/// All of them; `slice` is absent, as sprig's replaces it.
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "and", params: &[Any], variadic: Some(Any), run: Implementation::And },
    Function { name: "or", params: &[Any], variadic: Some(Any), run: Implementation::Or },
    Function { name: "call", params: &[Any], variadic: Some(Any), run: Implementation::Call },
    fixed("not", &[Any], |_, args| Ok(Val::Bool(!args[0].truth()))),
    fixed("len", &[Any], len),
    variadic("index", &[Any], Any, index),
    variadic("print", &[], Any, |meter, args| Ok(Val::str(print::sprint(meter, args)?))),
    variadic("printf", &[Str], Any, printf),
    variadic("println", &[], Any, |meter, args| Ok(Val::str(print::sprintln(meter, args)?))),
    variadic("html", &[], Any, html),
    variadic("js", &[], Any, js),
    variadic("urlquery", &[], Any, urlquery),
    variadic("eq", &[Any], Any, eq),
    fixed("ne", &[Any, Any], |meter, args| Ok(Val::Bool(!equal(meter, &args[0], &args[1])?))),
    fixed("lt", &[Any, Any], |_, args| Ok(Val::Bool(less(&args[0], &args[1])?))),
    fixed("le", &[Any, Any], |meter, args| Ok(Val::Bool(less_or_equal(meter, &args[0], &args[1])?))),
    fixed("gt", &[Any, Any], |meter, args| Ok(Val::Bool(!less_or_equal(meter, &args[0], &args[1])?))),
    fixed("ge", &[Any, Any], |_, args| Ok(Val::Bool(!less(&args[0], &args[1])?))),
];

/// The error of `call`: no value is a function here.
pub(super) fn not_callable(operand: Option<&Operand>, args: &[Val]) -> Failure {
    match args.first() {
        None | Some(Val::Nil) => Failure::new("call of nil"),
        Some(value) => {
            let name = match (operand, value) {
                (Some(operand), _) => operand.to_string(),
                (None, Val::Str(text)) => String::from_utf8_lossy(text).into_owned(),
                (None, value) => format!("<{} Value>", value.type_name()),
            };
            Failure::new(format!("non-function {name} of type {}", value.type_name()))
        }
    }
}

fn printf(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (format, args) = match args.split_first() {
        Some((Val::Str(format), rest)) => (format.clone(), rest),
        _ => return Err(Failure::new("no format")),
    };
    Ok(Val::str(print::sprintf(meter, &format, args)?))
}

fn len(_: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let length = match &args[0] {
        Val::Str(text) => text.len(),
        Val::List(list) => list.items().len(),
        Val::Map(map) => map.len(),
        Val::Nil => return Err(Failure::new("len of nil pointer")),
        other => return Err(Failure::new(format!("len of type {}", other.type_name()))),
    };
    Ok(Val::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn index(_: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let mut item = args[0].clone();
    if let Val::Nil = item {
        return Err(Failure::new("index of untyped nil"));
    }
    for key in &args[1..] {
        item = match &item {
            Val::Nil => return Err(Failure::new("index of nil pointer")),
            Val::Str(text) => {
                let at = position(key, text.len())?;
                Val::Byte(*text.get(at).ok_or_else(|| Failure::new("reflect: string index out of range"))?)
            }
            Val::List(list) => element(list, key)?,
            Val::Map(map) => {
                let Val::Str(name) = key else {
                    return Err(Failure::new(match key {
                        Val::Nil => "value is nil; should be of type string".to_owned(),
                        key => format!("value has type {}; should be string", key.type_name()),
                    }));
                };
                map.get(name).unwrap_or_else(|| zero(map.elem))
            }
            other => return Err(Failure::new(format!("can't index item of type {}", other.type_name()))),
        };
    }
    Ok(item)
}

fn element(list: &List, key: &Val) -> Result<Val, Failure> {
    let at = position(key, list.items().len())?;
    list.items().get(at).cloned().ok_or_else(|| Failure::new("reflect: slice index out of range"))
}

fn zero(elem: Elem) -> Val {
    match elem {
        Elem::Any => Val::Nil,
        Elem::Str => Val::str(""),
        Elem::Int => Val::Int(0),
    }
}

/// Go's `indexArg`, which accepts the length itself.
fn position(key: &Val, length: usize) -> Result<usize, Failure> {
    if let Val::Nil = key {
        return Err(Failure::new("cannot index slice/array with nil"));
    }
    let Some(number) = key.integer() else {
        return Err(Failure::new(format!("cannot index slice/array with type {}", key.type_name())));
    };
    match usize::try_from(number) {
        Ok(at) if at <= length => Ok(at),
        _ => Err(Failure::new(format!("index out of range: {number}"))),
    }
}
