//! Which answers of a webhook the API server takes, and what it makes of the others.

use base64::Engine as _;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Call, Reaction, Wire};

/// A patch may come as base64 or, as kube's own type writes it, as an array of numbers.
#[test]
fn patches_are_taken_as_base64_and_as_numbers() {
    let wire = Wire::new(&["Mutating"]);
    wire.existing("w");
    let patch = json!([{"op": "add", "path": "/spec/seen", "value": true}]);
    let base64 = patch.clone();
    wire.hook.script(move |_| Reaction::patch(&base64));
    let object = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}})).ok();
    assert_eq!(object["spec"], json!({"number": 2, "seen": true}));

    let numbers = json!(patch.to_string().replace("seen", "too").into_bytes());
    wire.hook.script(move |_| Reaction::Respond(json!({"patchType": "JSONPatch", "patch": numbers})));
    let object = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 3}})).ok();
    assert_eq!(object["spec"], json!({"number": 3, "seen": true, "too": true}));
}

/// Harmless oddities.
#[rstest]
#[case::empty_patch(json!({"patchType": "JSONPatch", "patch": base64("[]")}))]
#[case::empty_status(json!({"status": {}}))]
#[case::unknown_field(json!({"novelty": {"a": 1}}))]
#[case::audit_annotations(json!({"auditAnnotations": {"rule": "none"}}))]
fn accepted(#[case] response: Value) {
    let wire = Wire::new(&["Mutating"]);
    wire.existing("w");
    wire.hook.script(move |_| Reaction::Respond(response.clone()));
    let object = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}})).ok();
    assert_eq!(object["spec"], json!({"number": 2}));
}

/// Answers that fail the request with 500, and a part of the text that says so.
#[rstest]
#[case::patch_without_type("Mutating", json!({"patch": base64("[]")}), "webhook returned response.patch but not response.patchType")]
#[case::type_without_patch("Mutating", json!({"patchType": "JSONPatch"}), "webhook returned response.patchType but not response.patch")]
#[case::patch_from_a_validating_webhook("Validating", json!({"patchType": "JSONPatch", "patch": base64("[]")}), "response.patch")]
#[case::removal_of_nothing("Mutating", json!({"patchType": "JSONPatch", "patch": base64(r#"[{"op":"remove","path":"/spec/none"}]"#)}), "error in remove for path")]
#[case::another_uid("Mutating", json!({"uid": "other"}), "expected response.uid=")]
fn refused_as_an_internal_error(#[case] kind: &str, #[case] response: Value, #[case] text: &str) {
    let wire = Wire::new(&[kind]);
    wire.existing("w");
    wire.hook.script(move |_| Reaction::Respond(response.clone()));
    let answer = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}}));
    assert!(answer.message().contains(text), "{answer}");
    answer.refused(500);
}

/// Bodies and statuses that are no review: `failed calling webhook`, and what of them is shown.
#[rstest]
#[case::plain_500(500, "oops", "failed calling webhook", "oops")]
#[case::not_json(200, "hello", "failed calling webhook", "hello")]
#[case::another_version(
    200,
    r#"{"apiVersion":"admission.k8s.io/v9","kind":"AdmissionReview","response":{}}"#,
    "no kind \"AdmissionReview\" is registered",
    "\u{0}"
)]
fn no_review(#[case] code: u16, #[case] body: &'static str, #[case] shown: &str, #[case] hidden: &str) {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    wire.hook.script(move |_| Reaction::Raw(code, body.to_owned()));
    let answer = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}}));
    assert!(answer.message().contains(shown), "{answer}");
    assert!(!answer.message().contains(hidden), "{answer}");
    answer.refused(500);
}

/// A Status as the body of an error: its message is shown.
#[test]
fn the_message_of_a_status_body_is_shown() {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 400, "message": "so it is"});
    wire.hook.script(move |_| Reaction::Raw(400, status.to_string()));
    let answer = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}}));
    assert!(answer.message().contains("so it is"), "{answer}");
    answer.refused(500);
}

/// A webhook that says nothing is waited for as long as its registration says.
#[test]
fn silence_ends_with_the_timeout() {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    wire.hook.script(|_: &Call| Reaction::Silence);
    let answer = wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}}));
    assert!(answer.message().contains("context deadline exceeded"), "{answer}");
    answer.refused(500);
}

/// 503 with Retry-After is asked again inside the timeout: a webhook that starts is waited for.
/// (Without that header it is not.)
#[test]
fn a_503_is_asked_again_inside_the_timeout() {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    let mut first = true;
    wire.hook.script(
        move |_| {
            if std::mem::take(&mut first) { Reaction::Later(503) } else { Reaction::allow() }
        },
    );
    wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}})).ok();
    assert_eq!(wire.calls().len(), 2);
}

fn base64(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}
