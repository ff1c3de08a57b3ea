//! What people see of a refusal, by its code and shape.

use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use super::{GROUP, Reaction, Wire};

/// `kubectl patch` prints, to the letter; WEBHOOK stands for how messages name the webhook.
#[rstest]
#[case::message_only(json!({"message": "M"}), "Error from server: WEBHOOK denied the request: M\n")]
#[case::nothing(json!(null), "Error from server: WEBHOOK denied the request without explanation\n")]
#[case::forbidden(
    json!({"code": 403, "reason": "Forbidden", "message": "M\n  second line"}),
    "Error from server (Forbidden): WEBHOOK denied the request: M\n  second line\n"
)]
#[case::invalid_with_causes(
    invalid(&json!([
        {"field": "spec.a", "reason": "FieldValueForbidden", "message": "one\n  two"},
        {"field": "spec.b", "reason": "FieldValueForbidden", "message": "three"},
    ])),
    "The Widget \"w\" is invalid: \n* spec.a: one\n  two\n* spec.b: three\n"
)]
#[case::invalid_with_one_cause(
    invalid(&json!([{"field": "spec.a", "reason": "FieldValueForbidden", "message": "one\ntwo"}])),
    "The Widget \"w\" is invalid: spec.a: one\ntwo\n"
)]
#[case::invalid_without_causes_loses_the_message(invalid(&json!([])), "The Widget \"w\" is invalid\n")]
#[case::invalid_without_details(
    json!({"code": 422, "reason": "Invalid", "message": "M"}),
    "The request is invalid: WEBHOOK denied the request: M\n"
)]
#[case::internal_error(
    json!({"code": 500, "reason": "InternalError", "message": "M"}),
    "Error from server (InternalError): WEBHOOK denied the request: M\n"
)]
fn kubectl_prints(#[case] status: Value, #[case] expected: &str) {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    wire.hook.script(move |_| Reaction::deny(&status));
    assert_eq!(wire.patch("w", 2).refused(), expected.replace("WEBHOOK", &wire.quoted()));
    assert_eq!(wire.calls().len(), 1, "one call for one refusal");
}

fn invalid(causes: &Value) -> Value {
    json!({
        "code": 422, "reason": "Invalid", "message": "M",
        "details": {"name": "w", "group": GROUP, "kind": "Widget", "causes": causes},
    })
}

/// All verbs print the causes alike; nothing but the message of the raw Status holds ours.
#[test]
fn every_verb_prints_the_causes_of_a_422_alike() {
    let wire = Wire::new(&["Validating"]);
    wire.apply("w", 1).ok();
    let status = invalid(&json!([{"field": "spec.a", "message": "one\ntwo"}]));
    wire.hook.script(move |_| Reaction::deny(&status));
    let manifest = wire.widget("w", 2).to_string();
    let expected = "The Widget \"w\" is invalid: spec.a: one\ntwo\n";
    assert_eq!(wire.apply("w", 2).refused(), expected);
    for verb in [
        &["apply", "--server-side", "--force-conflicts", "-f", "-"][..],
        &["apply", "--dry-run=server", "-f", "-"],
        &["replace", "-f", "-"],
    ] {
        assert_eq!(wire.admin.kubectl_in(verb, &manifest).refused(), expected, "{verb:?}");
    }
    assert_eq!(wire.admin.kubectl(&["label", "widget", "w", "a=b"]).refused(), expected);
    let raw = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 3}}));
    assert_eq!(raw.message(), format!("{} denied the request: M", wire.quoted()));
    assert_eq!(raw.code, 422);
}

/// A whole-object refusal keeps its lines; client-side apply prints its patch before them.
#[test]
fn client_side_apply_prints_its_patch_before_a_403() {
    let wire = Wire::new(&["Validating"]);
    wire.apply("w", 1).ok();
    let status = json!({"code": 403, "reason": "Forbidden", "message": "M\nsecond"});
    wire.hook.script(move |_| Reaction::deny(&status));
    let text = wire.apply("w", 2).refused();
    assert!(text.starts_with("Error from server (Forbidden): error when applying patch:\n"), "{text}");
    let end = format!("error when patching \"STDIN\": {} denied the request: M\nsecond\n", wire.quoted());
    assert!(text.ends_with(&end), "{text}");
}

/// Why Interlock never answers 409: apply asks six times.
#[test]
fn a_409_makes_kubectl_apply_ask_six_times() {
    let wire = Wire::new(&["Validating"]);
    wire.apply("w", 1).ok();
    wire.calls();
    wire.hook.script(|_| Reaction::deny(&json!({"code": 409, "reason": "Conflict", "message": "M"})));
    wire.apply("w", 2).refused();
    assert_eq!(wire.calls().len(), 6);
    wire.patch("w", 2).refused();
    assert_eq!(wire.calls().len(), 1, "patch does not retry");
}

/// Why Interlock never answers 429: every client hangs for ten seconds.
#[test]
fn a_429_makes_every_client_ask_eleven_times() {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    let status = json!({
        "code": 429, "reason": "TooManyRequests", "message": "M", "details": {"retryAfterSeconds": 1},
    });
    wire.hook.script(move |_| Reaction::deny(&status));
    let began = Instant::now();
    wire.admin.kubectl(&["label", "widget", "w", "a=b"]).refused();
    assert_eq!(wire.calls().len(), 11);
    assert!(began.elapsed() > Duration::from_secs(9));
}

/// Warnings come before the success and before the refusal; one with a line break is lost.
#[test]
fn warnings_are_printed_unless_they_break_the_line() {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    let long = "x".repeat(300);
    let warnings = json!(["first", long, "broken\nline"]);
    let allowed = json!({"warnings": warnings});
    wire.hook.script(move |_| Reaction::Respond(allowed.clone()));
    let out = wire.patch("w", 2);
    assert_eq!(out.code, 0, "{out}");
    assert_eq!(out.stderr, format!("Warning: first\nWarning: {long}\n"));

    let refused = json!({"warnings": ["first"], "allowed": false, "status": {"message": "M"}});
    wire.hook.script(move |_| Reaction::Respond(refused.clone()));
    let expected = format!("Warning: first\nError from server: {} denied the request: M\n", wire.quoted());
    assert_eq!(wire.patch("w", 3).refused(), expected);
}
