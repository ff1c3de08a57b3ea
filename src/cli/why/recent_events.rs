//! The history of an object, and of its Instance or DataPlane.

use interlock_core::api::condition::Condition;
use interlock_core::api::meta;
use interlock_core::api::object::meta_str;
use interlock_kudo::instance::change::history;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use super::answer::{RecentEvent, one_line, read_instance};
use super::data_plane::is_data_plane;
use super::facts;
use super::facts::ClusterFacts;

/// Ended runs, changed conditions and Events, in no order.
pub(super) fn all(facts: &ClusterFacts) -> Vec<RecentEvent> {
    let mut events = Vec::new();
    if let Some(instance) = facts.instance().and_then(read_instance) {
        let whose = if facts::is_instance(&facts.object) {
            String::new()
        } else {
            format!("Instance {}: ", instance.metadata.name.as_deref().unwrap_or_default())
        };
        let annotations = instance.metadata.annotations.as_ref();
        let annotation = annotations.and_then(|all| all.get(meta::HISTORY)).map(String::as_str);
        for run in history::read(annotation) {
            let request: String = run.asked.iter().map(request).collect();
            let what = format!("{whose}plan {} ended {}{request}", run.plan, run.result);
            events.extend(run.end.map(|at| RecentEvent { at, what }));
        }
        let conditions = instance.status.iter().flat_map(|status| &status.conditions);
        events.extend(conditions.map(|condition| RecentEvent {
            at: condition.last_transition_time.0,
            what: format!("{whose}{} became {} ({})", condition.type_, condition.status, condition.reason),
        }));
    }
    events.extend(facts.data_plane().into_iter().flat_map(|data_plane| of_data_plane(data_plane, facts)));
    events.extend(facts.events.iter().flatten().filter_map(event));
    events
}

/// Changed conditions of a DataPlane and of its rollout.
fn of_data_plane(data_plane: &Value, facts: &ClusterFacts) -> Vec<RecentEvent> {
    let name = meta_str(data_plane, "name").unwrap_or_default();
    let whose = if is_data_plane(&facts.object) { String::new() } else { format!("DataPlane {name}: ") };
    let status = &data_plane["status"];
    let all = [&status["conditions"], &status["rollout"]["conditions"]];
    let all = all.into_iter().flat_map(|listed| listed.as_array().into_iter().flatten());
    let all = all.filter_map(|condition| Condition::deserialize(condition).ok());
    let all = all.filter(|condition| condition.type_ != meta::condition::LIVE_SPEC_RECORDED);
    all.map(|condition| RecentEvent {
        at: condition.last_transition_time.0,
        what: format!("{whose}{} became {} ({})", condition.type_, condition.status, condition.reason),
    })
    .collect()
}

fn request(request: &history::CarriedOutRequest) -> String {
    let who = if request.who.is_empty() { "somebody" } else { &request.who };
    format!("; {who} asked for {}: {}", request.verb, one_line(&request.reason))
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
