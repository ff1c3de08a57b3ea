//! The way in for a hostile package, shared by the fuzz target and the time-bounded run of the tests.
//!
//! Bytes as a template, with what stands before a line of five `=` as the value of a parameter: parsed,
//! rendered with all of sprig, and its text decoded.
//!
//! Whatever comes in: no panic, and nothing beyond the budgets. The fuzzer holds it to 2 s and 256 MiB.

use go_template::limits::MAX_OUTPUT;
use go_template::yaml::{Aliases, Reader};
use go_template::{Never, Root, Value};
use interlock_kudo::package::functions;

/// Renders a package of one template.
pub fn call(body: &[u8]) {
    let text = String::from_utf8_lossy(body);
    let (value, text) = text.split_once("\n=====\n").unwrap_or(("[a, {b: 1}]", &text));
    let value = Reader::new(Aliases::Refused, &Never).read(value).unwrap_or_default();
    let root = serde_json::json!({
        "Name": "demo", "Namespace": "team", "Pipes": {},
        "Params": {"TEXT": "a b", "NUMBER": "3", "EMPTY": "", "VALUE": value},
    });
    let Ok(template) = functions::parse("fuzz.yaml", text) else { return };
    let Ok(text) = template.render(&Root::from(&Value::from(root)), &Never) else { return };
    assert!(text.len() <= MAX_OUTPUT);
    super::yaml::call(text.as_bytes());
}
