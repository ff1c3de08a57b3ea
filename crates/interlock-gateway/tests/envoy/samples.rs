//! Values for the arguments of functions.

use interlock_gateway::policies::dialect::{Form, Function, Type};

/// A value of a type.
fn sample(of: Type) -> &'static str {
    match of {
        Type::Bool => "true",
        Type::Int | Type::Number => "1",
        Type::Uint => "1u",
        Type::Double => "1.5",
        Type::String | Type::Any => "'a'",
        Type::Bytes => "b'a'",
        Type::Timestamp => "request.time",
        Type::Duration => "duration('1s')",
        Type::List => "['a']",
        Type::Map => "{'a': 'b'}",
        Type::StringMap => "request.headers",
        Type::Null => "null",
        Type::Kind => "type(1)",
    }
}

/// Texts that functions read.
fn text(function: &str, at: usize) -> &'static str {
    match (function, at) {
        ("bool", _) => "'true'",
        ("int" | "uint" | "double", _) => "'1'",
        ("duration", _) => "'1s'",
        ("timestamp", _) => "'2024-01-01T00:00:00Z'",
        ("re.extract", 2) => r"'\\1'",
        ("re.extract" | "re.capture" | "re.captureN", 1) => "'(a)'",
        (name, 1) if name.starts_with("get") => "'Europe/Berlin'",
        _ => "'a'",
    }
}

/// A call of a function, with a value for each argument.
pub fn written(function: &Function) -> String {
    let value = |(at, of): (usize, &Type)| {
        if *of == Type::String { text(function.name, at) } else { sample(*of) }
    };
    let values: Vec<&str> = function.arguments.iter().enumerate().map(value).collect();
    match (function.form, values.as_slice()) {
        (Form::Method, [of, rest @ ..]) => format!("{of}.{}({})", function.name, rest.join(", ")),
        (Form::Operator, [one]) => format!("{}({one})", function.name.trim_matches('_')),
        (Form::Operator, [left, right]) => format!("({left} {} {right})", function.name.trim_matches('_')),
        _ => format!("{}({})", function.name, values.join(", ")),
    }
}

/// The name of a type in CEL; of one that is not known, what the value says itself.
pub fn kind(of: Type, value: &str) -> String {
    let name = match of {
        Type::Any | Type::Number => return format!("type({value})"),
        Type::Timestamp => "type(timestamp(0))",
        Type::Duration => "type(duration('1s'))",
        Type::StringMap => "map",
        Type::Null => "null_type",
        known => return known.to_string(),
    };
    name.to_owned()
}
