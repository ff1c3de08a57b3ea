//! What is decided about an object, and about all of the input.

use crd_schema::{FieldError, PathPart, Unevaluated};
use serde_json::{Value, json};

use super::manifests::{Manifest, ManifestPlace};
use super::object::{name_of, namespace_of};
use super::webhook::WebhookAnswer;

/// What is decided about an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    #[default]
    Allowed,
    Refused,
    /// Neither rules nor a schema of its kind are known.
    NotChecked,
}

impl Verdict {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::NotChecked => "not checked",
        }
    }
}

/// A field that a refusal is about.
#[derive(Clone, Debug)]
pub(super) struct FieldCause {
    pub(super) field: String,
    /// The id of the rule; `schema-...` for those of a definition.
    pub(super) rule: String,
    /// The reason that the webhook gives.
    pub(super) reason: Option<String>,
    pub(super) message: String,
    pub(super) place: ManifestPlace,
}

/// Why an object is refused.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) code: u64,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) causes: Vec<FieldCause>,
}

/// The decision about an object.
#[derive(Debug, Default)]
pub(super) struct ObjectDecision {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) place: ManifestPlace,
    pub(super) verdict: Verdict,
    /// Why nothing is decided, or what stands beside the verdict.
    pub(super) note: Option<String>,
    pub(super) refusal: Option<Refusal>,
    pub(super) rules: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) unevaluated: Vec<Unevaluated>,
    pub(super) plan: Option<String>,
    pub(super) patch: Value,
    pub(super) object: Value,
}

impl ObjectDecision {
    /// A decision that allows an object, until something refuses it.
    pub(super) fn allowed(manifest: &Manifest, object: &Value) -> Self {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: namespace_of(object).map(str::to_owned),
            name: name_of(object).to_owned(),
            place: manifest.place.clone(),
            patch: json!([]),
            object: object.clone(),
            ..Self::default()
        }
    }

    /// The object for people.
    pub(super) fn subject(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }

    pub(super) fn not_checked(mut self, why: String) -> Self {
        self.verdict = Verdict::NotChecked;
        self.note = Some(why);
        self
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.verdict = Verdict::Refused;
        for cause in &refusal.causes {
            if !self.rules.contains(&cause.rule) {
                self.rules.push(cause.rule.clone());
            }
        }
        self.refusal = Some(refusal);
    }

    /// Adds the answer of an endpoint.
    pub(super) fn add_answer(&mut self, answer: &WebhookAnswer, manifest: &Manifest) {
        for warning in answer.warnings() {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        for rule in &answer.record.rules {
            if !self.rules.iter().any(|known| known == rule) {
                self.rules.push((*rule).to_owned());
            }
        }
        self.plan = answer.record.plan.clone().or(self.plan.take());
        if answer.is_allowed() {
            return;
        }
        let status = &answer.response["status"];
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        let rule = answer.record.rules.first().copied().unwrap_or_default();
        let cause = |cause: &Value| {
            let field = cause["field"].as_str().unwrap_or_default();
            FieldCause {
                field: field.to_owned(),
                rule: rule.to_owned(),
                reason: cause["reason"].as_str().map(str::to_owned),
                message: cause["message"].as_str().unwrap_or_default().to_owned(),
                place: manifest.place_of(&parts(field)),
            }
        };
        let causes = status["details"]["causes"].as_array().into_iter().flatten().map(cause).collect();
        self.refuse(Refusal {
            code: status["code"].as_u64().unwrap_or_default(),
            reason: status["reason"].as_str().unwrap_or_default().to_owned(),
            message,
            causes,
        });
    }

    /// Refuses for violations of the schema.
    pub(super) fn refuse_by_schema(&mut self, errors: &[FieldError], omitted: usize, manifest: &Manifest) {
        let causes: Vec<FieldCause> = errors
            .iter()
            .map(|error| FieldCause {
                field: error.path.clone(),
                rule: format!("schema-{}", error.kind.id()),
                reason: None,
                message: error.message.clone(),
                place: manifest.place_of(&error.at),
            })
            .collect();
        let mut lines: Vec<String> = causes
            .iter()
            .map(|cause| match cause.field.as_str() {
                "" => format!("{} [{}]", cause.message, cause.rule),
                field => format!("{field}: {} [{}]", cause.message, cause.rule),
            })
            .collect();
        if omitted > 0 {
            lines.push(format!("and {omitted} more"));
        }
        let (code, reason) = match errors.iter().any(|error| error.kind.is_of_decoder()) {
            true => (400, "BadRequest"),
            false => (422, "Invalid"),
        };
        self.refuse(Refusal { code, reason: reason.to_owned(), message: lines.join("\n"), causes });
    }
}

/// The steps of a field such as `spec.rules[0].group`.
fn parts(field: &str) -> Vec<PathPart> {
    let mut parts = Vec::new();
    for name in field.split('.').filter(|name| !name.is_empty()) {
        let (key, indexes) = name.split_once('[').unwrap_or((name, ""));
        if !key.is_empty() {
            parts.push(PathPart::Key(key.to_owned()));
        }
        for index in indexes.split('[').filter(|index| !index.is_empty()) {
            let index = index.trim_end_matches(']');
            parts.push(index.parse().map_or_else(|_| PathPart::MapKey(index.to_owned()), PathPart::Index));
        }
    }
    parts
}

/// The decisions about all objects, in their order.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) decisions: Vec<ObjectDecision>,
}

impl Report {
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.decisions.iter().filter(|decision| decision.verdict == verdict).count()
    }

    /// Rules that were not evaluated, of all objects.
    pub(super) fn unevaluated(&self) -> usize {
        self.decisions.iter().map(|decision| decision.unevaluated.len()).sum()
    }

    /// Whether nothing is refused.
    pub(super) fn is_allowed(&self) -> bool {
        self.count(Verdict::Refused) == 0
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", &[])]
    #[case("spec.parameters.A", &["spec", "parameters", "A"])]
    #[case("spec.rules[0].group", &["spec", "rules", "[0]", "group"])]
    #[case("metadata.labels[app]", &["metadata", "labels", "app"])]
    fn fields(#[case] field: &str, #[case] expected: &[&str]) {
        let found: Vec<String> = parts(field)
            .into_iter()
            .map(|part| match part {
                PathPart::Key(key) | PathPart::MapKey(key) => key,
                PathPart::Index(index) => format!("[{index}]"),
            })
            .collect();
        assert_eq!(found, expected);
    }
}
