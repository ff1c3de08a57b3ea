//! A report as SARIF 2.1.0: a result for each violation, warning and rule that was not evaluated.

use std::collections::BTreeMap;

use interlock_core::api::docs::DocsUrl;
use interlock_core::kinds;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use crate::cli::check::decision::{ObjectDecision, Report, Verdict};
use crate::cli::check::manifests::{ManifestPlace, STDIN};
use crate::telemetry::build;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The page of the rules that are not those of the webhook.
const PAGE: &str = "docs/check.md";

const NOT_EVALUATED: &str = "not-evaluated";
const NOT_CHECKED: &str = "not-checked";
const WARNING: &str = "warning";

/// Characters that a path in a URI does not have.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The SARIF of a report, with links where it is known where the documentation can be read.
pub(super) fn of(report: &Report, docs: Option<&DocsUrl>) -> Value {
    let mut log = Log::default();
    for decision in &report.decisions {
        log.add(decision);
    }
    let mut rules: Vec<Value> = vec![Value::Null; log.rules.len()];
    for (id, index) in &log.rules {
        rules[*index] = rule(id, docs);
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "interlock", "version": build::VERSION, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": log.results,
        }],
    })
}

/// Describes a rule; its page is one of this project.
fn rule(id: &str, docs: Option<&DocsUrl>) -> Value {
    let known = kinds::rules(crate::kinds::all()).find(|rule| rule.id() == id);
    let page = known.map_or(PAGE, |rule| rule.page());
    let help = match (known, docs) {
        (Some(rule), docs) => rule.see(docs),
        (None, Some(docs)) => docs.page(page),
        (None, None) => page.to_owned(),
    };
    let text = match id {
        NOT_EVALUATED => "A rule of a schema was not evaluated.",
        NOT_CHECKED => "Neither rules nor a schema of the object's kind are known.",
        WARNING => "The webhook warns.",
        _ if id.starts_with("schema-") => "The CustomResourceDefinition of the object refuses it.",
        _ => "A rule of Interlock refuses the object.",
    };
    let mut described = json!({
        "id": id,
        "shortDescription": {"text": text},
        "help": {"text": format!("See {help}")},
        "properties": {"page": page},
    });
    if let Some(docs) = docs {
        described["helpUri"] = json!(docs.page(page));
    }
    described
}

#[derive(Default)]
struct Log {
    /// Rules by their ids, with their indexes.
    rules: BTreeMap<String, usize>,
    results: Vec<Value>,
}

impl Log {
    fn add(&mut self, decision: &ObjectDecision) {
        let subject = decision.subject();
        if let Some(refusal) = &decision.refusal {
            for cause in &refusal.causes {
                let message = match cause.field.as_str() {
                    "" => format!("{subject}: {}", cause.message),
                    field => format!("{subject}: {field}: {}", cause.message),
                };
                self.result(&cause.rule, "error", &message, &cause.place);
            }
            if refusal.causes.is_empty() {
                let rule = decision.rules.first().cloned().unwrap_or_default();
                self.result(&rule, "error", &format!("{subject}: {}", refusal.message), &decision.place);
            }
        }
        for warning in &decision.warnings {
            self.result(WARNING, "warning", &format!("{subject}: {warning}"), &decision.place);
        }
        for rule in &decision.unevaluated {
            self.result(NOT_EVALUATED, "note", &format!("{subject}: {rule}"), &decision.place);
        }
        if let Some(note) = decision.note.as_ref().filter(|_| decision.verdict == Verdict::NotChecked) {
            self.result(NOT_CHECKED, "note", &format!("{subject}: {note}"), &decision.place);
        }
    }

    fn result(&mut self, rule: &str, level: &str, message: &str, place: &ManifestPlace) {
        let next = self.rules.len();
        let index = *self.rules.entry(rule.to_owned()).or_insert(next);
        self.results.push(json!({
            "ruleId": rule,
            "ruleIndex": index,
            "level": level,
            "message": {"text": message},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": uri(&place.file)},
                "region": {"startLine": place.line},
            }}],
        }));
    }
}

/// A file as a URI, relative where the file's path is.
fn uri(file: &str) -> String {
    if file == STDIN {
        return "stdin".to_owned();
    }
    let path = utf8_percent_encode(file.strip_prefix("./").unwrap_or(file), PATH).to_string();
    if path.starts_with('/') { format!("file://{path}") } else { path }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A link only where an address is known: a tool that shows it could not resolve another.
    #[rstest]
    #[case("plan-running", "docs/denials/plan-running.md", "`interlock explain plan-running`")]
    #[case("RF02", "docs/router-flavor.md", "`interlock explain RF02`")]
    #[case("schema-enum", "docs/check.md", "docs/check.md")]
    fn rules_link_to_their_pages(#[case] id: &str, #[case] page: &str, #[case] help: &str) {
        let plain = rule(id, None);
        assert_eq!(plain["help"]["text"], format!("See {help}"));
        assert_eq!((&plain["helpUri"], &plain["properties"]["page"]), (&Value::Null, &json!(page)));
        let docs = "https://docs.example.org".parse().unwrap();
        assert_eq!(rule(id, Some(&docs))["helpUri"], format!("https://docs.example.org/{page}"));
    }

    #[rstest]
    #[case("-", "stdin")]
    #[case("./a b/c#1.yaml", "a%20b/c%231.yaml")]
    #[case("/a/\u{e9}.yaml", "file:///a/%C3%A9.yaml")]
    fn files_are_uris(#[case] file: &str, #[case] expected: &str) {
        assert_eq!(uri(file), expected);
    }
}
