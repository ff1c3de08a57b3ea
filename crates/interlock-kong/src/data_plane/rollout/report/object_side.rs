//! Which side of a DataPlane one of its objects is of: by its selector, as the name of nothing says so, and by the
//! labels that its Deployments and Services have.

use std::borrow::Cow;

use interlock_core::api::object::meta_str;
use interlock_core::kinds::fact;
use interlock_core::topology::schema::{Fact, ReadDepth};
use serde_json::Value;

use crate::api::labels;
use crate::api::stamp::StatusSelectors;
use crate::data_plane::rollout::side::{Colour, SideState, deployment_name};

/// The colour of a child.
pub(in crate::data_plane::rollout) const COLOUR: Fact =
    Fact { name: fact::COLOUR, read: ReadDepth::Word(colour_word) };
/// Whether a child is live or of the preview.
pub(in crate::data_plane::rollout) const SIDE: Fact =
    Fact { name: fact::SIDE, read: ReadDepth::Word(side_word) };
/// Pods of a Deployment that are ready.
pub(in crate::data_plane::rollout) const READY: Fact = Fact {
    name: fact::READY_REPLICAS,
    read: ReadDepth::Mark(|object| count(&object["status"]["readyReplicas"])),
};
/// Pods that a Deployment asks for.
pub(in crate::data_plane::rollout) const WANTED: Fact =
    Fact { name: fact::REPLICAS, read: ReadDepth::Mark(|object| count(&object["spec"]["replicas"])) };

/// The side that an object is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectSide {
    /// Its colour; `None` for what Interlock did not make, and for Services with a selector of their own.
    pub colour: Option<Colour>,
    /// Whether it is live or of the preview, where that is known.
    pub state: Option<SideState>,
}

impl ObjectSide {
    /// The side of an object of a DataPlane: a Deployment, a Service, an autoscaler, a disruption budget, a
    /// ReplicaSet or a pod.
    pub fn of(object: &Value, data_plane: &Value) -> Self {
        let text = |field| meta_str(data_plane, field).unwrap_or_default();
        let selector = selector(object);
        let StatusSelectors { live, preview } = StatusSelectors::of(&data_plane["status"]);
        let is = |known: Option<String>| selector.is_some() && known.as_deref() == selector;
        Self {
            colour: colour(object, text("name"), text("uid")),
            state: match labelled(object) {
                Some(state) => Some(state),
                None if is(live) => Some(SideState::Live),
                None if is(preview) => Some(SideState::Preview),
                None => None,
            },
        }
    }

    /// `the live side (blue)`, for people; `None` where nothing is known.
    pub fn text(self) -> Option<String> {
        let colour = self.colour.map(Colour::as_str);
        match (self.state, colour) {
            (Some(SideState::Live), Some(colour)) => Some(format!("the live side ({colour})")),
            (Some(SideState::Live), None) => Some("the live side".to_owned()),
            (Some(SideState::Preview), Some(colour)) => Some(format!("the preview ({colour})")),
            (Some(SideState::Preview), None) => Some("the preview".to_owned()),
            (None, Some(colour)) => Some(format!("the {colour} side")),
            (None, None) => None,
        }
    }
}

/// Value of the label that selects the pods of a side, as an object selects them or has it.
fn selector(object: &Value) -> Option<&str> {
    let spec = &object["spec"]["selector"];
    let holders = [&spec["matchLabels"], spec, &object["metadata"]["labels"]];
    holders.into_iter().find_map(|holder| holder[labels::SELECTOR].as_str())
}

fn colour(object: &Value, name: &str, uid: &str) -> Option<Colour> {
    if let Some(target) = object["spec"]["scaleTargetRef"]["name"].as_str() {
        return [Colour::Blue, Colour::Green]
            .into_iter()
            .find(|colour| deployment_name(name, *colour) == target);
    }
    Colour::of_selector(uid, selector(object)?)
}

/// The state by the labels of Deployments and Services; autoscalers and disruption budgets are of the live side.
fn labelled(object: &Value) -> Option<SideState> {
    let all = &object["metadata"]["labels"];
    let label = all[labels::DEPLOYMENT_STATE].as_str().or(all[labels::SERVICE_STATE].as_str());
    match label {
        Some(label) => {
            [SideState::Live, SideState::Preview].into_iter().find(|state| state.as_str() == label)
        }
        None if object["kind"] == "HorizontalPodAutoscaler" || object["kind"] == "PodDisruptionBudget" => {
            Some(SideState::Live)
        }
        None => None,
    }
}

fn colour_word(object: &Value) -> Cow<'_, str> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.into_iter().find(|owner| owner["controller"] == true && owner["kind"] == "DataPlane");
    let text = |field: &str| owner.and_then(|owner| owner[field].as_str()).unwrap_or_default();
    colour(object, text("name"), text("uid")).map_or("", Colour::as_str).into()
}

fn side_word(object: &Value) -> Cow<'_, str> {
    labelled(object).map_or("", SideState::as_str).into()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn data_plane() -> Value {
        json!({
            "metadata": {"name": "edge", "uid": "u-1"},
            "status": {
                "selector": Colour::Green.selector("u-1"),
                "rollout": {"deployment": {"selector": Colour::Blue.selector("u-1")}},
            },
        })
    }

    fn owned(kind: &str, labels: Value, spec: Value) -> Value {
        let owner = json!({"kind": "DataPlane", "name": "edge", "uid": "u-1", "controller": true});
        json!({"kind": kind, "metadata": {"labels": labels, "ownerReferences": [owner]}, "spec": spec})
    }

    fn by(colour: Colour) -> Value {
        json!({"app": "edge", labels::SELECTOR: colour.selector("u-1")})
    }

    fn deployment(state: &str) -> Value {
        owned(
            "Deployment",
            json!({labels::DEPLOYMENT_STATE: state}),
            json!({"selector": {"matchLabels": by(Colour::Blue)}}),
        )
    }

    fn service(selector: Value) -> Value {
        owned("Service", json!({labels::SERVICE_STATE: "live"}), json!({ "selector": selector }))
    }

    fn autoscaler() -> Value {
        owned(
            "HorizontalPodAutoscaler",
            json!({}),
            json!({"scaleTargetRef": {"name": "dataplane-edge-green"}}),
        )
    }

    #[rstest]
    #[case::a_deployment(deployment("preview"), "the preview (blue)")]
    #[case::a_service(service(by(Colour::Green)), "the live side (green)")]
    #[case::a_selector_of_others(service(json!({"app": "x"})), "the live side")]
    #[case::an_autoscaler(autoscaler(), "the live side (green)")]
    #[case::a_budget(owned("PodDisruptionBudget", by(Colour::Green), json!({})), "the live side (green)")]
    #[case::a_live_pod(json!({"kind": "Pod", "metadata": {"labels": by(Colour::Green)}}), "the live side (green)")]
    #[case::a_pod_of_the_preview(json!({"kind": "Pod", "metadata": {"labels": by(Colour::Blue)}}), "the preview (blue)")]
    #[case::of_neither(json!({"kind": "Pod", "metadata": {"labels": {"app": "edge"}}}), "")]
    #[case::forged(json!({"kind": 1, "metadata": [], "spec": {"selector": 2}}), "")]
    fn an_object_is_of_a_side(#[case] object: Value, #[case] text: &str) {
        assert_eq!(ObjectSide::of(&object, &data_plane()).text().unwrap_or_default(), text);
    }

    /// The graph knows the owner by its reference alone.
    #[rstest]
    #[case::a_deployment(deployment("live"), "blue", "live")]
    #[case::a_preview(deployment("preview"), "blue", "preview")]
    #[case::a_service(service(by(Colour::Green)), "green", "live")]
    #[case::an_autoscaler(autoscaler(), "green", "live")]
    #[case::without_marks(json!({"kind": "Service", "spec": {"selector": by(Colour::Green)}}), "", "")]
    fn a_child_has_its_words(#[case] object: Value, #[case] colour: &str, #[case] state: &str) {
        assert_eq!((&*colour_word(&object), &*side_word(&object)), (colour, state));
    }
}
