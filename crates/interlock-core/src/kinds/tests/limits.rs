//! Annotations that set time limits.

use rstest::rstest;
use serde_json::{Value, json};

use super::{World, idle, kafka, review};
use crate::admission::WebhookEndpoint;

fn with(mut object: Value, text: &str) -> Value {
    object["metadata"]["annotations"]["interlock.dev/step-deadline"] = json!(text);
    object["metadata"]["annotations"]["interlock.dev/cleanup-patience"] = json!("5m");
    object
}

#[rstest]
#[case::readable("deploy.main.app=10m,1h", None)]
#[case::unreadable("soon", Some("\"soon\" is no time; write one such as 90s, 10m or 1h30m"))]
fn what_cannot_be_read_is_refused(#[case] text: &str, #[case] why: Option<&str>) {
    let world = World::strict();
    let old = kafka("kafka-1", "1.0.0");
    let asked = [
        world.merge(&idle(json!({})), json!({"metadata": with(json!({"metadata": {}}), text)["metadata"]})),
        world.ask(
            WebhookEndpoint::Validate,
            &review("UPDATE", "OperatorVersion", with(old.clone(), text), old),
        ),
    ];
    for said in asked {
        match why {
            None => said.assert_allowed(),
            Some(why) => said.assert_refused("request-unknown", why),
        }
    }
}

#[test]
fn what_was_there_before_may_stay() {
    let old = with(idle(json!({})), "soon");
    World::strict().merge(&old, json!({"metadata": {"annotations": {"other": "1"}}})).assert_allowed();
}
