//! The history of an object, and of those that it belongs to.

use interlock_core::kinds::story::{Subject, Told, one_line};
use jiff::Timestamp;
use serde_json::Value;

use super::answer::RecentEvent;
use super::facts::ClusterFacts;

/// What the stories and Events say, in no order.
pub(super) fn all(facts: &ClusterFacts, told: &[(Subject<'_>, Told)]) -> Vec<RecentEvent> {
    let happened = told.iter().flat_map(|(_, told)| told.happened.clone());
    let happened = happened.map(|(at, what)| RecentEvent { at, what });
    happened.chain(facts.events.iter().flatten().filter_map(event)).collect()
}

fn event(event: &Value) -> Option<RecentEvent> {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let at = time(&event["series"]["lastObservedTime"])
        .or_else(|| time(&event["eventTime"]))
        .or_else(|| time(&event["deprecatedLastTimestamp"]))
        .or_else(|| time(&event["metadata"]["creationTimestamp"]))?;
    let regarding = &event["regarding"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let warning = if event["type"] == "Warning" { "Warning " } else { "" };
    let what = format!(
        "{warning}{} on {} {}: {}",
        word(&event["reason"]),
        word(&regarding["kind"]),
        word(&regarding["name"]),
        one_line(&word(&event["note"])),
    );
    Some(RecentEvent { at, what })
}
