//! The answers of both webhook endpoints, for people and for programs.

use serde_json::{Value, json};

use interlock_core::admission::DecisionRecord;

/// The answers of both webhook endpoints.
pub(super) struct CheckDecision {
    pub(super) response: Value,
    pub(super) record: DecisionRecord<'static>,
    pub(super) patch: Value,
    pub(super) object: Value,
}

impl CheckDecision {
    pub(super) fn allowed(&self) -> bool {
        self.response["allowed"] == json!(true)
    }

    /// The answer of mutation, with additions of validation.
    pub(super) fn with_warnings_of(&self, validated: &Self) -> Self {
        let mut record = self.record.clone();
        let mut response = self.response.clone();
        let mut warnings = self.warnings();
        for warning in validated.warnings() {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        response["warnings"] = json!(warnings);
        for rule in &validated.record.rules {
            if !record.rules.contains(rule) {
                record.rules.push(rule);
            }
        }
        Self { response, record, patch: self.patch.clone(), object: self.object.clone() }
    }

    fn warnings(&self) -> Vec<String> {
        let warnings = self.response["warnings"].as_array();
        warnings.into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect()
    }

    /// The answer of `-o json`.
    pub(super) fn json(&self) -> Value {
        let status = &self.response["status"];
        let allowed = self.allowed();
        json!({
            "allowed": allowed,
            "code": if allowed { json!(200) } else { status["code"].clone() },
            "reason": status["reason"],
            "message": status["message"],
            "causes": status["details"]["causes"].as_array().cloned().unwrap_or_default(),
            "rules": self.record.rules,
            "warnings": self.warnings(),
            "patch": self.patch,
            "object": self.object,
        })
    }

    /// The answer of `-o text`.
    pub(super) fn text(&self) -> String {
        let subject = format!("{} {}/{}", self.record.kind, self.record.namespace, self.record.name);
        let mut text: String = self.warnings().iter().map(|w| format!("Warning: {w}\n")).collect();
        if !self.allowed() {
            let status = &self.response["status"];
            let message = status["message"].as_str().unwrap_or_default();
            let head = format!(
                "refused ({} {}): {subject}",
                status["code"],
                status["reason"].as_str().unwrap_or_default()
            );
            return format!("{text}{head}\n{message}\n");
        }
        text.push_str(&format!("allowed: {subject}\n"));
        if let Some(plan) = &self.record.plan {
            text.push_str(&format!("plan: {plan}\n"));
        }
        for operation in self.patch.as_array().into_iter().flatten() {
            let word = |key: &str| operation[key].as_str().unwrap_or_default();
            let value = operation.get("value").map(|v| format!(" {v}")).unwrap_or_default();
            text.push_str(&format!("patch: {} {}{value}\n", word("op"), word("path")));
        }
        text
    }
}
