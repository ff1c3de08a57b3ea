//! The functions and operators of CEL, by who has them.
//!
//! Envoy refuses a configuration with a function that it does not have, or with one that is called with another number
//! of arguments: the whole route configuration, with the routes of everybody. An argument of a wrong type it takes,
//! and the expression fails on each request.

use super::types::Type::{self, *};

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `name(a, b)`
    Global,
    /// `a.name(b)`
    Method,
    /// Either way.
    Both,
    /// `a + b`, `!a`
    Operator,
}

/// A function with the types of its arguments, of which the first is what a method is called on.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name; that of an operator has `_` for each operand.
    pub name: &'static str,
    /// How it is called.
    pub form: Form,
    /// The types that it takes.
    pub arguments: &'static [Type],
    /// The type of its value.
    pub result: Type,
}

const fn global(name: &'static str, arguments: &'static [Type], result: Type) -> Function {
    Function { name, form: Form::Global, arguments, result }
}

const fn method(name: &'static str, arguments: &'static [Type], result: Type) -> Function {
    Function { name, form: Form::Method, arguments, result }
}

const fn both(name: &'static str, arguments: &'static [Type], result: Type) -> Function {
    Function { name, form: Form::Both, arguments, result }
}

const fn operator(name: &'static str, arguments: &'static [Type], result: Type) -> Function {
    Function { name, form: Form::Operator, arguments, result }
}

/// What Envoy has. `==`, `!=`, `[]`, `in`, `has()` and `? :` take any types, and are checked apart.
pub const ENVOY: &[Function] = &[
    both("size", &[String], Int),
    both("size", &[Bytes], Int),
    both("size", &[List], Int),
    both("size", &[Map], Int),
    both("contains", &[String, String], Bool),
    both("startsWith", &[String, String], Bool),
    both("endsWith", &[String, String], Bool),
    both("matches", &[String, String], Bool),
    global("re.extract", &[String, String, String], String),
    global("re.capture", &[String, String], String),
    global("re.captureN", &[String, String], StringMap),
    global("bool", &[Bool], Bool),
    global("bool", &[String], Bool),
    global("int", &[Number], Int),
    global("int", &[Bool], Int),
    global("int", &[String], Int),
    global("int", &[Timestamp], Int),
    global("uint", &[Number], Uint),
    global("uint", &[String], Uint),
    global("double", &[Number], Double),
    global("double", &[String], Double),
    global("bytes", &[String], Bytes),
    global("bytes", &[Bytes], Bytes),
    global("duration", &[String], Duration),
    global("timestamp", &[String], Timestamp),
    global("timestamp", &[Int], Timestamp),
    global("dyn", &[Any], Any),
    global("type", &[Any], Kind),
    method("getFullYear", &[Timestamp], Int),
    method("getFullYear", &[Timestamp, String], Int),
    method("getMonth", &[Timestamp], Int),
    method("getMonth", &[Timestamp, String], Int),
    method("getDate", &[Timestamp], Int),
    method("getDate", &[Timestamp, String], Int),
    method("getDayOfMonth", &[Timestamp], Int),
    method("getDayOfMonth", &[Timestamp, String], Int),
    method("getDayOfWeek", &[Timestamp], Int),
    method("getDayOfWeek", &[Timestamp, String], Int),
    method("getDayOfYear", &[Timestamp], Int),
    method("getDayOfYear", &[Timestamp, String], Int),
    method("getHours", &[Timestamp], Int),
    method("getHours", &[Timestamp, String], Int),
    method("getHours", &[Duration], Int),
    method("getMinutes", &[Timestamp], Int),
    method("getMinutes", &[Timestamp, String], Int),
    method("getMinutes", &[Duration], Int),
    method("getSeconds", &[Timestamp], Int),
    method("getSeconds", &[Timestamp, String], Int),
    method("getSeconds", &[Duration], Int),
    method("getMilliseconds", &[Timestamp], Int),
    method("getMilliseconds", &[Timestamp, String], Int),
    method("getMilliseconds", &[Duration], Int),
    operator("_&&_", &[Bool, Bool], Bool),
    operator("_||_", &[Bool, Bool], Bool),
    operator("!_", &[Bool], Bool),
    operator("-_", &[Int], Int),
    operator("-_", &[Double], Double),
    operator("_+_", &[Int, Int], Int),
    operator("_+_", &[Uint, Uint], Uint),
    operator("_+_", &[Double, Double], Double),
    operator("_+_", &[Duration, Duration], Duration),
    operator("_+_", &[Timestamp, Duration], Timestamp),
    operator("_+_", &[Duration, Timestamp], Timestamp),
    operator("_-_", &[Int, Int], Int),
    operator("_-_", &[Uint, Uint], Uint),
    operator("_-_", &[Double, Double], Double),
    operator("_-_", &[Duration, Duration], Duration),
    operator("_-_", &[Timestamp, Duration], Timestamp),
    operator("_-_", &[Timestamp, Timestamp], Duration),
    operator("_*_", &[Int, Int], Int),
    operator("_*_", &[Uint, Uint], Uint),
    operator("_*_", &[Double, Double], Double),
    operator("_/_", &[Int, Int], Int),
    operator("_/_", &[Uint, Uint], Uint),
    operator("_/_", &[Double, Double], Double),
    operator("_%_", &[Int, Int], Int),
    operator("_%_", &[Uint, Uint], Uint),
    operator("_<_", &[Number, Number], Bool),
    operator("_<_", &[String, String], Bool),
    operator("_<_", &[Bytes, Bytes], Bool),
    operator("_<_", &[Bool, Bool], Bool),
    operator("_<_", &[Timestamp, Timestamp], Bool),
    operator("_<_", &[Duration, Duration], Bool),
];

/// Functions of Kuadrant that Envoy does not have, with the values for which it calls them, and what to write in
/// their place. Those without arguments here are called with any.
pub const KUADRANT: &[(Function, &str)] = &[
    (both("string", &[Any], String), "compare with a value of the same type"),
    (both("lowerAscii", &[String], String), IGNORE_CASE),
    (both("upperAscii", &[String], String), IGNORE_CASE),
    (both("trim", &[String], String), USE_MATCHES),
    (both("replace", &[String, String, String], String), USE_MATCHES),
    (both("replace", &[String, String, String, Int], String), USE_MATCHES),
    (both("split", &[String, String], List), USE_CAPTURE),
    (both("split", &[String, String, Int], List), USE_CAPTURE),
    (both("substring", &[String, Int], String), USE_CAPTURE),
    (both("substring", &[String, Int, Int], String), USE_CAPTURE),
    (both("charAt", &[String, Int], String), USE_CAPTURE),
    (both("indexOf", &[String, String], Int), "use contains() or matches()"),
    (both("indexOf", &[String, String, Int], Int), "use contains() or matches()"),
    (both("lastIndexOf", &[String, String], Int), "use contains() or matches()"),
    (both("lastIndexOf", &[String, String, Int], Int), "use contains() or matches()"),
    (both("join", &[List], String), "give each value a counter of its own"),
    (both("join", &[List, String], String), "give each value a counter of its own"),
    (both("format", &[String, List], String), "give each value a counter of its own"),
    (both("reverse", &[String], String), USE_MATCHES),
    (global("strings.quote", &[String], String), USE_MATCHES),
    (both("min", &[Any, Any], Any), "use a < b ? a : b"),
    (both("max", &[Any, Any], Any), "use a > b ? a : b"),
    (both("queryMap", &[String], StringMap), "use request.query.matches()"),
    (both("queryMap", &[String, Bool], Map), "use request.query.matches()"),
    (global("requestBodyJSON", &[String], Any), "use request.headers or request.query"),
    (global("responseBodyJSON", &[String], Any), "use request.headers or request.query"),
    (global("optional.of", &[Any], Any), USE_HAS),
    (global("optional.none", &[], Any), USE_HAS),
    (global("optional.ofNonZeroValue", &[Any], Any), USE_HAS),
    (both("value", &[Any], Any), USE_HAS),
    (both("hasValue", &[Any], Bool), USE_HAS),
    (both("or", &[Any, Any], Any), USE_HAS),
    (both("orValue", &[Any, Any], Any), USE_HAS),
    (operator("_+_", &[String, String], String), "give each value a counter of its own, or use matches()"),
    (operator("_+_", &[Bytes, Bytes], Bytes), "give each value a counter of its own"),
    (operator("_+_", &[List, List], List), "write one list"),
];

/// Functions that the auth server does not have; it has the others, and Go's extension for strings.
pub(super) const NOT_OF_AUTH_SERVER: [&str; 8] = [
    "re.extract",
    "re.capture",
    "re.captureN",
    "min",
    "max",
    "queryMap",
    "requestBodyJSON",
    "responseBodyJSON",
];

/// What to write in place of a macro that loops.
pub(super) const USE_EACH: &str = "write each case out with && and ||, or use matches()";
/// What to write in place of optional values.
pub(super) const USE_HAS: &str = "use has() and ? :";
const IGNORE_CASE: &str = "use matches() with a pattern that begins with (?i)";
const USE_MATCHES: &str = "use matches()";
const USE_CAPTURE: &str = "use matches() or re.capture()";

/// What becomes of a call.
pub(super) enum Call {
    /// Envoy has it; the type of its value.
    Envoy(Type),
    /// Kuadrant alone has it; the type of its value, and the remedy.
    Kuadrant(Type, &'static str),
    /// The name is known, and the types are not taken.
    WrongTypes,
    /// The name is known, and not with this number of arguments.
    WrongCount,
    /// The name is known, and called otherwise: as a method, or not as one.
    WrongForm,
    /// The name is not known.
    Unknown,
}

/// What becomes of a call of a function in a form, with arguments of these types.
pub(super) fn call(name: &str, form: Form, arguments: &[Type]) -> Call {
    let name = if ["_<=_", "_>_", "_>=_"].contains(&name) { "_<_" } else { name };
    let is_called = |function: &Function| {
        function.name == name
            && (function.form == form || function.form == Form::Both && form != Form::Operator)
    };
    let takes = |function: &Function| {
        function.arguments.iter().zip(arguments).all(|(takes, argument)| takes.takes(*argument))
    };
    let envoy = || ENVOY.iter().filter(|function| is_called(function));
    let kuadrant = || KUADRANT.iter().filter(|(function, _)| is_called(function));
    let counted = |function: &Function| function.arguments.len() == arguments.len();

    let mut taken = envoy().filter(|function| counted(function) && takes(function));
    if let Some(first) = taken.next() {
        let is_same = taken.all(|other| other.result == first.result);
        return Call::Envoy(if is_same { first.result } else { Any });
    }
    if let Some((function, remedy)) = kuadrant().find(|(function, _)| counted(function) && takes(function)) {
        return Call::Kuadrant(function.result, remedy);
    }
    if envoy().any(counted) || kuadrant().any(|(function, _)| counted(function)) {
        Call::WrongTypes
    } else if envoy().next().is_some() || kuadrant().next().is_some() {
        Call::WrongCount
    } else if names().any(|own| own == name) {
        Call::WrongForm
    } else {
        Call::Unknown
    }
}

/// The names of functions, without operators.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let all = ENVOY.iter().chain(KUADRANT.iter().map(|(function, _)| function));
    all.filter(|function| function.form != Form::Operator).map(|function| function.name)
}
