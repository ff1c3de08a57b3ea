//! The wire format: both review versions, denials, bodies that are no reviews, hostile bodies.

use interlock_core::admission::{AdmissionAnswer, CacheWait, WebhookEndpoint, answer};
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, idle, manifest, review};

fn raw(body: &[u8]) -> Result<Value, String> {
    let world = World::strict();
    match answer(
        &interlock_core::kinds::guarded(crate::all()),
        WebhookEndpoint::Mutate,
        body,
        &world.view,
        &world.config,
        CacheWait::Exhausted,
        None,
    ) {
        Ok(AdmissionAnswer::Done(reply)) => Ok(serde_json::from_slice(&reply.body).unwrap()),
        Ok(AdmissionAnswer::Wait(key)) => Err(format!("waits for {key}")),
        Err(bad) => Err(bad.to_string()),
    }
}

#[rstest]
#[case("admission.k8s.io/v1")]
#[case("admission.k8s.io/v1beta1")]
fn a_review_is_answered_in_its_own_version(#[case] version: &str) {
    let mut review = review("CREATE", "Instance", manifest(json!({})), Value::Null);
    review["apiVersion"] = json!(version);
    let answer = raw(review.to_string().as_bytes()).unwrap();
    assert_eq!(answer["apiVersion"], version);
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    assert_eq!(answer["response"]["auditAnnotations"], json!({"verdict": "patched", "plan": "deploy"}));
}

/// Without a patch or warnings the response has no patch, patchType or warnings.
#[test]
fn an_empty_answer_has_only_what_it_needs() {
    let old = idle(json!({}));
    let answer = raw(review("UPDATE", "Instance", old.clone(), old).to_string().as_bytes()).unwrap();
    assert_eq!(
        answer["response"],
        json!({"uid": "0e5f6f2e-9d5c-4f0e-8f52-0a2ac0d6d5d1", "allowed": true, "auditAnnotations": {"verdict": "allowed"}})
    );
}

#[rstest]
#[case::version(|r: &mut Value| r["apiVersion"] = json!("admission.k8s.io/v2"), "is not known here")]
#[case::kind(|r: &mut Value| r["kind"] = json!("Pod"), "is not known here")]
#[case::no_request(|r: &mut Value| r["request"] = Value::Null, "has no request")]
#[case::no_uid(|r: &mut Value| { r["request"].as_object_mut().unwrap().remove("uid"); }, "missing field `uid`")]
#[case::object_is_no_object(|r: &mut Value| r["request"]["object"] = json!(7), "is not an AdmissionReview")]
#[case::object_is_a_list(|r: &mut Value| r["request"]["object"] = json!([]), "is not an AdmissionReview")]
#[case::metadata_is_a_list(|r: &mut Value| r["request"]["object"]["metadata"] = json!([]), "is not an AdmissionReview")]
#[case::request_is_a_list(|r: &mut Value| r["request"] = json!(["u"]), "is not an AdmissionReview")]
#[case::long_uid(|r: &mut Value| r["request"]["uid"] = json!("u".repeat(65)), "request.uid has 65 bytes: at most 64 are accepted")]
#[case::long_name(|r: &mut Value| r["request"]["name"] = json!("n".repeat(90_000)), "request.name has 90000 bytes: at most 253")]
#[case::long_namespace(|r: &mut Value| r["request"]["namespace"] = json!("n".repeat(64)), "request.namespace has 64 bytes")]
#[case::long_kind(|r: &mut Value| r["request"]["kind"]["kind"] = json!("K".repeat(64)), "request.kind.kind has 64 bytes")]
#[case::long_name_of_the_object(|r: &mut Value| r["request"]["object"]["metadata"]["name"] = json!("n".repeat(254)), "request.object.metadata.name has 254 bytes")]
#[case::metadata_is_no_object(|r: &mut Value| r["request"]["object"]["metadata"] = json!("m"), "is not an AdmissionReview")]
fn what_is_no_review(#[case] change: fn(&mut Value), #[case] text: &str) {
    let mut review = review("CREATE", "Instance", manifest(json!({})), Value::Null);
    change(&mut review);
    let error = raw(review.to_string().as_bytes()).unwrap_err();
    assert!(error.contains(text), "{error}");
    assert!(error.len() < 400);
}

#[rstest]
#[case::kind("/request/kind/kind", json!("Widget"), 403)]
#[case::group("/request/kind/group", json!("apps"), 403)]
#[case::version_of_the_kind("/request/kind/version", json!("v2"), 403)]
#[case::operation("/request/operation", json!("CONNECT"), 403)]
#[case::no_operation("/request/operation", json!(""), 403)]
#[case::no_object("/request/object", Value::Null, 400)]
#[case::no_old_object("/request/oldObject", Value::Null, 400)]
fn what_cannot_be_judged_is_refused(#[case] pointer: &str, #[case] value: Value, #[case] code: u64) {
    let mut review = review("UPDATE", "Instance", idle(json!({})), idle(json!({})));
    *review.pointer_mut(pointer).unwrap() = value;
    let answer = raw(review.to_string().as_bytes()).unwrap();
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], code);
    assert_eq!(answer["response"]["auditAnnotations"]["rule"], "request-unknown");
}

#[rstest]
#[case::scale("scale")]
#[case::anything("x")]
fn unknown_subresources_are_refused(#[case] sub: &str) {
    let mut review = review("UPDATE", "Instance", idle(json!({})), idle(json!({})));
    review["request"]["subResource"] = json!(sub);
    assert_eq!(raw(review.to_string().as_bytes()).unwrap()["response"]["allowed"], false);
}

#[rstest]
#[case::operator("Operator", "CREATE")]
#[case::instance_deletion("Instance", "DELETE")]
fn what_no_rule_restricts_is_allowed(#[case] kind: &str, #[case] operation: &str) {
    let object = json!({"metadata": {"name": "x", "namespace": "team"}, "spec": {}});
    let review = match operation {
        "DELETE" => review(operation, kind, Value::Null, object),
        _ => review(operation, kind, object, Value::Null),
    };
    assert_eq!(raw(review.to_string().as_bytes()).unwrap()["response"]["allowed"], true);
}

/// A spec that the schema would never admit is denied, not guessed at.
#[rstest]
#[case::parameters(json!({"operatorVersion": {"name": "kafka-1"}, "parameters": []}))]
#[case::value(json!({"operatorVersion": {"name": "kafka-1"}, "parameters": {"NODES": 3}}))]
#[case::reference(json!({"operatorVersion": "kafka-1"}))]
#[case::execution(json!({"operatorVersion": {"name": "kafka-1"}, "planExecution": "deploy"}))]
#[case::spec(json!("spec"))]
#[case::spec_is_a_list(json!([{"name": "kafka-1"}, {}]))]
fn specs_that_cannot_be_read(#[case] spec: Value) {
    let mut object = manifest(json!({}));
    object["spec"] = spec;
    World::strict()
        .create(object)
        .assert_refused("request-unknown", "the spec of the Instance cannot be read");
}

#[test]
fn dry_run_decides_alike() {
    let world = World::strict();
    let mut review = review("CREATE", "Instance", manifest(json!({})), Value::Null);
    let wet = world.ask(WebhookEndpoint::Mutate, &review);
    review["request"]["dryRun"] = json!(true);
    let dry = world.ask(WebhookEndpoint::Mutate, &review);
    assert_eq!(wet.patch, dry.patch);
    assert!(dry.record.dry_run && !wet.record.dry_run);
}

/// Hostile bodies: no panic, and no response that allows anything.
#[rstest]
#[case::empty(b"".to_vec())]
#[case::nothing(b"null".to_vec())]
#[case::list(b"[]".to_vec())]
#[case::bom(b"\xef\xbb\xbf{}".to_vec())]
#[case::not_utf_8(b"{\"kind\":\"\xff\xfe\"}".to_vec())]
#[case::nul(b"\0".to_vec())]
#[case::cut(b"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{".to_vec())]
#[case::trailing(b"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\"}} x".to_vec())]
#[case::twice(b"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\"},\"request\":{\"uid\":\"v\"}}".to_vec())]
#[case::uid_twice(b"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"uid\":\"v\"}}".to_vec())]
#[case::lone_surrogate(b"{\"apiVersion\":\"\\ud800\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\"}}".to_vec())]
#[case::deep_lists([b"[".repeat(100_000), b"]".repeat(100_000)].concat())]
#[case::deep_objects([b"{\"a\":".repeat(100_000), b"1".to_vec(), b"}".repeat(100_000)].concat())]
fn bodies_that_are_no_reviews(#[case] body: Vec<u8>) {
    assert!(raw(&body).is_err());
}

/// Depth, numbers and keys of unread values do not matter; duplicates of read ones are denied.
#[rstest]
#[case::deep(format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)), true)]
#[case::huge_number("1e99999".to_owned(), true)]
#[case::long_number("9".repeat(10_000), true)]
#[case::escaped_key("{\"\\u0061\": \"\\u0000\"}".to_owned(), true)]
fn what_nobody_reads_does_not_matter(#[case] value: String, #[case] allowed: bool) {
    let review = review("CREATE", "Instance", manifest(json!({"NODES": "3"})), Value::Null).to_string();
    let body = review.replacen("\"apiVersion\":\"kudo.dev/v1beta1\"", &format!("\"extra\":{value}"), 1);
    assert_ne!(body, review);
    assert_eq!(raw(body.as_bytes()).unwrap()["response"]["allowed"], allowed);
}

/// Readers disagree about duplicate keys.
#[rstest]
#[case::spec("\"spec\":{", "\"spec\":{},\"spec\":{", false)]
#[case::escaped_spec("\"spec\":{", "\"sp\\u0065c\":{},\"spec\":{", false)]
#[case::parameters("\"parameters\":{", "\"parameters\":{},\"parameters\":{", true)]
fn keys_that_are_there_twice(#[case] find: &str, #[case] replace: &str, #[case] answered: bool) {
    let review = review("CREATE", "Instance", manifest(json!({"NODES": "3"})), Value::Null).to_string();
    let body = review.replacen(find, replace, 1);
    assert_ne!(body, review);
    match raw(body.as_bytes()) {
        Ok(answer) => assert!(answered && answer["response"]["allowed"] == false),
        Err(_) => assert!(!answered),
    }
}
