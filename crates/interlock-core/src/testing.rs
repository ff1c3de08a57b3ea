//! What the tests of every domain share: a review through the webhook's own path, and its outcome.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use json_patch::Patch;
use serde_json::{Value, json};

use crate::admission::lister::{CacheState, KindListers, Lister};
use crate::admission::{AdmissionAnswer, CacheWait, Config, DecisionRecord, WebhookEndpoint, answer};
use crate::api::interlock::Actions;
use crate::api::meta;
use crate::kinds::static_lister::StaticLister;
use crate::kinds::{Kinds, guarded};

/// When requests are decided on: a little after the last change of what is there.
pub fn now() -> Timestamp {
    "2026-01-02T04:02:10Z".parse().unwrap()
}

/// What every denial is like, whatever the rule.
pub fn assert_shape(response: &Value) {
    let status = &response["status"];
    let text = status["message"].as_str().unwrap();
    assert!(text.len() <= 1024, "{} bytes:\n{text}", text.len());
    assert!(text.lines().count() <= 6, "{text}");
    let first = text.lines().next().unwrap();
    let rule = first.rsplit_once(" [").and_then(|(_, rule)| rule.strip_suffix(']')).expect(text);
    let last = text.lines().last().unwrap();
    assert_eq!(last, format!("See `interlock explain {rule}`"), "{text}");
    let next =
        text.lines().find(|line| line.starts_with("Next: ")).unwrap_or_else(|| panic!("no remedy:\n{text}"));
    let kubectl = next.find("`kubectl ").unwrap_or_else(|| panic!("no command of kubectl:\n{text}"));
    assert!(next.find("`interlock ").is_none_or(|ours| kubectl < ours), "{text}");
    assert_eq!(next.matches('`').count() % 2, 0, "a command is cut:\n{text}");
    let whole = response.to_string();
    for raw in
        ["strconv", "invalid type", " expected ", "at line ", "' -> '***", "'***' to '***'", "Some(", "None"]
    {
        assert!(!whole.contains(raw), "{raw:?} in {whole}");
    }
    if status["code"] == 422 {
        // kubectl prints the field of a cause, and then its message.
        let causes = status["details"]["causes"].as_array().unwrap();
        let (field, message) = (causes[0]["field"].as_str().unwrap(), causes[0]["message"].as_str().unwrap());
        assert_eq!(text.replacen(&format!("\n  {field}\n"), "\n", 1), message);
        assert!(causes.iter().all(|cause| cause["message"].as_str().is_some_and(|text| !text.is_empty())));
    }
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub struct Said {
    pub response: Value,
    pub record: DecisionRecord<'static>,
    /// The object with the patch applied.
    pub object: Value,
    pub patch: Value,
}

impl Said {
    pub fn allowed(&self) -> bool {
        self.response["allowed"] == json!(true)
    }

    pub fn message(&self) -> &str {
        self.response["status"]["message"].as_str().unwrap_or_default()
    }

    pub fn code(&self) -> u64 {
        self.response["status"]["code"].as_u64().unwrap_or_default()
    }

    pub fn warnings(&self) -> Vec<&str> {
        self.response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub fn rule(&self) -> &'static str {
        self.record.rules.first().copied().unwrap_or_default()
    }

    pub fn execution(&self) -> &Value {
        &self.object["spec"]["planExecution"]
    }

    pub fn stamp(&self) -> Value {
        let text = self.object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str();
        text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
    }

    pub fn assert_refused(&self, rule: &str, sentence: &str) {
        assert!(!self.allowed(), "allowed: {:#}", self.response);
        assert_eq!(self.rule(), rule, "{}", self.message());
        assert!(self.message().contains(sentence), "want {sentence:?} in:\n{}", self.message());
    }

    pub fn assert_allowed(&self) {
        assert!(self.allowed(), "refused: {}", self.message());
    }
}

/// A static lister, and its reported cache state.
pub struct Cached<'a>(pub &'a StaticLister, pub CacheState);

impl Lister for Cached<'_> {
    fn actions(&self, namespace: &str) -> Actions {
        self.0.actions(namespace)
    }

    fn kinds(&self) -> &KindListers {
        self.0.kinds()
    }

    fn cache(&self, capability: &str) -> CacheState {
        match &self.1 {
            CacheState::Synced => self.0.cache(capability),
            state => state.clone(),
        }
    }
}

/// What an endpoint answers to a review.
pub fn ask(kinds: Kinds, view: &Cached<'_>, config: &Config, door: WebhookEndpoint, review: &Value) -> Said {
    let body = serde_json::to_vec(review).unwrap();
    match answer(&guarded(kinds), door, &body, view, config, CacheWait::Exhausted, Some(now())).unwrap() {
        AdmissionAnswer::Done(reply) => {
            let answer: Value = serde_json::from_slice(&reply.body).unwrap();
            let response = answer["response"].clone();
            assert_eq!(response["uid"], review["request"]["uid"]);
            let patch: Value = response["patch"]
                .as_str()
                .map_or(Value::Null, |text| serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap());
            if response["allowed"] != json!(true) {
                assert_shape(&response);
            }
            let mut object = review["request"]["object"].clone();
            if !patch.is_null() {
                let patch: Patch = serde_json::from_value(patch.clone()).unwrap();
                json_patch::patch(&mut object, &patch.0).unwrap();
            }
            Said { response, record: reply.record.into_owned(), object, patch }
        }
        AdmissionAnswer::Wait(key) => panic!("waits for {key} though patience is exhausted"),
    }
}
