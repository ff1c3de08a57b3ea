//! The way in for hostile bytes, shared by the fuzz target and the time-bounded run of the tests.
//!
//! Bytes through decode, decide and encode, at every door and in both freeze modes.
//!
//! Whatever comes in: no panic; what goes out is JSON; a patch applies to the object it is for,
//! and mutation has nothing to add to what it made.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, Freeze, WebhookEndpoint, answer};
use interlock_core::api::meta;
use interlock_core::kinds;
use interlock_core::kinds::static_lister::StaticLister;
use serde_json::Value;

static VIEW: LazyLock<StaticLister> = LazyLock::new(|| {
    let mut view = StaticLister::of(interlock::kinds::all());
    for text in
        [include_str!("../../fuzz/seeds/version-1.json"), include_str!("../../fuzz/seeds/version-2.json")]
    {
        let object = serde_json::from_str(text).expect("a seed is JSON");
        view.add(&object, "team").expect("a seed is an OperatorVersion");
    }
    view
});

fn ask(door: WebhookEndpoint, freeze: Freeze, body: &[u8]) -> Option<Value> {
    let config = Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze, docs: None };
    match answer(
        &kinds::guarded(interlock::kinds::all()),
        door,
        body,
        &*VIEW,
        &config,
        CacheWait::Exhausted,
        None,
    ) {
        Ok(AdmissionAnswer::Done(reply)) => {
            Some(serde_json::from_slice(&reply.body).expect("an answer is JSON"))
        }
        Ok(AdmissionAnswer::Wait(key)) => panic!("waits for {key} though patience is exhausted"),
        Err(_) => None,
    }
}

fn patched(body: &[u8], answer: &Value) -> Option<Vec<u8>> {
    let patch = STANDARD.decode(answer["response"]["patch"].as_str()?).expect("a patch is base64");
    let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a patch is JSON");
    // What serde_json::Value cannot hold (depth) is not judged further.
    let mut review: Value = serde_json::from_slice(body).ok()?;
    // No API server sends an object without metadata; a patch of one is refused by it.
    review.pointer("/request/object/metadata")?.as_object()?;
    json_patch::patch(&mut review["request"]["object"], &patch).expect("a patch applies");
    serde_json::to_vec(&review).ok()
}

/// Calls every door with a body. Panics where the process would, and where an answer is none.
pub fn call(body: &[u8]) {
    for freeze in [Freeze::Strict, Freeze::SamePlan] {
        for door in WebhookEndpoint::ALL {
            let Some(answer) = ask(door, freeze, body) else { continue };
            assert!(answer["response"]["allowed"].is_boolean());
            if let Some(again) = patched(body, &answer) {
                let second = ask(door, freeze, &again).expect("what was readable stays readable");
                assert_eq!(second["response"]["patch"], Value::Null, "mutation is idempotent");
            }
        }
    }
}
