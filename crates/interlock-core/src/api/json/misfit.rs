//! Why a text is not of a type, for people: the path of the field, what it must be, and what it is.
//!
//! serde's own texts are for its users. Their position leads to the field, and what they ask for is one of a few
//! phrases.

use serde::Deserialize;

use crate::api::violation::{FieldReason, ViolationField};

/// Longest path, and longest name in it: the names are the user's.
const PATH_LIMIT: usize = 160;
const NAME_LIMIT: usize = 64;

/// The field of a text that is not of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Its path below the text, such as `.plans[deploy].phases[0].name`.
    path: String,
    /// What is wrong.
    detail: String,
}

impl Misfit {
    /// As the field of a violation, below the path of the text.
    pub fn field(self, text: &str) -> ViolationField {
        ViolationField::new([text, &self.path].concat(), FieldReason::Invalid, self.detail)
    }
}

/// The first field of a text that is not of its type, if there is one.
pub fn misfit<'t, T: Deserialize<'t>>(text: &'t str) -> Option<Misfit> {
    let error = serde_json::from_str::<T>(text).err()?;
    Some(of_error(text, &error))
}

/// The field that an error of serde_json about a text is about.
pub fn of_error(text: &str, error: &serde_json::Error) -> Misfit {
    let offset = offset(text, error.line(), error.column());
    let mut walk = Walk::default();
    let kind = walk.to(text.as_bytes(), offset);
    let said = error.to_string();
    let missing = said.strip_prefix("missing field `").and_then(|said| said.split('`').next());
    let detail = match missing {
        Some(_) => "is missing: add it".to_owned(),
        None if said.starts_with("duplicate field ") => "is written twice: write it once".to_owned(),
        None => wrong_kind(&said, kind),
    };
    let mut path = walk.path(text);
    if let Some(field) = missing {
        path.push('.');
        path.push_str(field);
    }
    Misfit { path, detail }
}

fn wrong_kind(said: &str, kind: Option<&'static str>) -> String {
    match (wanted(said), kind) {
        (Some(wanted), Some(kind)) if wanted != kind => format!("must be {wanted}, and is {kind}"),
        (Some(wanted), _) => format!("must be {wanted}"),
        (None, Some(kind)) => format!("is {kind} that does not fit its schema"),
        (None, None) => "does not fit its schema".to_owned(),
    }
}

/// What an error of serde asks for.
fn wanted(said: &str) -> Option<&'static str> {
    let (_, wanted) = said.rsplit_once(", expected ")?;
    let wanted = wanted.split(" at line ").next().unwrap_or(wanted);
    match wanted {
        "a string" | "a borrowed string" | "string or map" => Some("a string"),
        "a boolean" => Some("true or false"),
        "a sequence" => Some("a list"),
        "a map" => Some("a map"),
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => {
            Some("a whole number")
        }
        "f32" | "f64" => Some("a number"),
        other if other.starts_with("struct ") => Some("a map"),
        _ => None,
    }
}

/// The offset of a place, both counted from 1; the last byte of a column that does not exist.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column).min(text.len())
}

/// The way to a place in a text: for each container around it, the range of the name or the number of the
/// member.
#[derive(Debug, Default)]
struct Walk {
    inside: Vec<Member>,
}

#[derive(Debug)]
enum Member {
    Named(std::ops::Range<usize>),
    Numbered(usize),
}

impl Walk {
    /// Walks to the value that starts, or the scalar that ends, at an offset; else to the container around it.
    /// Returns what the value is.
    fn to(&mut self, text: &[u8], offset: usize) -> Option<&'static str> {
        let mut at = 0;
        let mut awaits_name = false;
        while at < text.len() {
            let byte = text[at];
            match byte {
                b'{' | b'[' => {
                    if at >= offset {
                        return Some(if byte == b'{' { "a map" } else { "a list" });
                    }
                    awaits_name = byte == b'{';
                    self.inside.push(if awaits_name { Member::Named(at..at) } else { Member::Numbered(0) });
                    at += 1;
                }
                b'}' | b']' => {
                    if let Some(container) = self.inside.pop()
                        && at + 1 >= offset
                    {
                        return Some(match container {
                            Member::Named(_) => "a map",
                            Member::Numbered(_) => "a list",
                        });
                    }
                    at += 1;
                }
                b',' => {
                    match self.inside.last_mut() {
                        Some(Member::Numbered(number)) => *number += 1,
                        Some(Member::Named(_)) => awaits_name = true,
                        None => {}
                    }
                    at += 1;
                }
                b':' | b' ' | b'\n' | b'\t' | b'\r' => at += 1,
                _ => {
                    let end = scalar_end(text, at);
                    match self.inside.last_mut() {
                        Some(Member::Named(name)) if awaits_name => {
                            *name = at + 1..end.saturating_sub(1).max(at + 1);
                            awaits_name = false;
                        }
                        _ if end >= offset => return Some(scalar(byte)),
                        _ => {}
                    }
                    at = end;
                }
            }
        }
        None
    }

    /// The path of the place.
    fn path(&self, text: &str) -> String {
        let mut path = String::new();
        for member in &self.inside {
            match member {
                Member::Numbered(number) => path.push_str(&format!("[{number}]")),
                // No name was read yet.
                Member::Named(name) if name.is_empty() => {}
                Member::Named(name) => {
                    let name = text.get(name.clone()).unwrap_or_default();
                    let name = &name[..name.floor_char_boundary(NAME_LIMIT)];
                    let is_plain =
                        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                    if is_plain {
                        path.push('.');
                        path.push_str(name);
                    } else {
                        path.push_str(&format!("[{name}]"));
                    }
                }
            }
            if path.len() > PATH_LIMIT {
                break;
            }
        }
        path
    }
}

/// Where a string, a number or a word ends.
fn scalar_end(text: &[u8], from: usize) -> usize {
    if text[from] != b'"' {
        let ends = |byte: &u8| b",]}: \n\t\r".contains(byte);
        return text[from..].iter().position(ends).map_or(text.len(), |length| from + length.max(1));
    }
    let mut at = from + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn scalar(first: u8) -> &'static str {
    match first {
        b'"' => "a string",
        b't' | b'f' => "a boolean",
        b'n' => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Versioned {
        version: String,
        tasks: Vec<String>,
        parameters: Vec<Parameter>,
        plans: BTreeMap<String, Plan>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Parameter {
        name: String,
        default: Option<String>,
        required: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Plan {
        #[serde(default)]
        phases: Vec<Named>,
    }

    fn found(spec: &Value) -> String {
        let text = spec.to_string();
        let field = misfit::<Versioned>(&text).expect("a misfit").field("spec");
        format!("{}: {}", field.path, field.detail)
    }

    #[rstest]
    #[case::text_for_map(json!("x"), "spec: must be a map, and is a string")]
    #[case::map_for_string(json!({"version": {"a": 1}}), "spec.version: must be a string, and is a map")]
    #[case::number_for_string(json!({"version": 1.5}), "spec.version: must be a string, and is a number")]
    #[case::string_for_list(json!({"tasks": "a"}), "spec.tasks: must be a list, and is a string")]
    #[case::number_for_map(json!({"plans": {"deploy": 3}}), "spec.plans.deploy: must be a map, and is a number")]
    #[case::deep(
        json!({"plans": {"a": {}, "back-up": {"phases": [{"name": "p"}, {"name": true}]}}}),
        "spec.plans[back-up].phases[1].name: must be a string, and is a boolean"
    )]
    #[case::string_for_flag(
        json!({"parameters": [{"name": "a"}, {"name": "b", "required": "yes"}]}),
        "spec.parameters[1].required: must be true or false, and is a string"
    )]
    #[case::after_others(
        json!({"operator": {"name": "a"}, "parameters": [{"name": "A", "default": {}}]}),
        "spec.parameters[0].default: must be a string, and is a map"
    )]
    fn the_field_is_named_with_what_it_must_be(#[case] spec: Value, #[case] expected: &str) {
        assert_eq!(found(&spec), expected);
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Named {
        name: String,
        #[serde(default)]
        inner: Vec<Named>,
    }

    #[rstest]
    #[case::missing(r#"{"name": "a", "inner": [{"name": "b"}, {}]}"#, "x.inner[1].name: is missing: add it")]
    #[case::twice(r#"{"name": "a", "name": "b"}"#, "x.name: is written twice: write it once")]
    #[case::lines(
        "{\n  \"name\": \"a\",\n  \"inner\": [\n    {\"name\": 3}]}",
        "x.inner[0].name: must be a string, and is a number"
    )]
    #[case::no_json("{", "x: does not fit its schema")]
    fn other_faults(#[case] text: &str, #[case] expected: &str) {
        let field = misfit::<Named>(text).expect("a misfit").field("x");
        assert_eq!(format!("{}: {}", field.path, field.detail), expected);
    }

    #[test]
    fn long_names_are_cut() {
        let spec = json!({"plans": {"p".repeat(500): {"phases": [{"n".repeat(500): 1, "name": 1}]}}});
        assert!(found(&spec).len() < 400, "{}", found(&spec));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the text is: no panic, one short line, and no word of serde's.
        #[test]
        fn any_text_is_read(text in "[\\[\\]{},:\"\\\\ a1tn\n\u{e9}]{0,40}") {
            if let Some(misfit) = misfit::<Named>(&text) {
                let detail = misfit.field("x").detail;
                prop_assert!(detail.len() < 100 && !detail.contains("expected") && !detail.contains("at line"), "{detail}");
            }
        }
    }
}
