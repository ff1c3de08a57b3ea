//! What is live of a DataPlane and what is staged: the fields in which the written spec differs from the live one.
//!
//! Values that may be secrets are not shown: those of environment variables but the router flavor, of
//! arguments, commands and annotations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use interlock_core::api::display::display;
use interlock_core::api::stamp::SpecHash;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::stamp::{LiveStamp, NoStamp};
use crate::data_plane::flavor::reading::VARIABLE;
use crate::data_plane::live_spec;

/// How many fields are listed; the others are counted.
const LISTED: usize = 20;
/// Longest value and longest part of a path that are shown.
const SHOWN: usize = 80;
/// Members below which values may be secrets.
const SECRETIVE: [&str; 7] =
    ["env", "args", "command", "annotations", "httpHeaders", "volumeAttributes", "options"];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedChanges {
    /// The first fields, by their paths.
    pub fields: Vec<StagedField>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// A field that a promotion changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedField {
    /// Its path; elements of lists by their names, where they have any.
    pub path: String,
    /// What becomes of it.
    pub change: FieldChange,
    /// Its live value, where that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// Its staged value, where that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged: Option<String>,
}

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FieldChange {
    /// It is not live yet.
    Added,
    /// It has another value.
    Changed,
    /// It is live still.
    Removed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl StagedChanges {
    /// The differences between the live spec and the written one, without immediate fields.
    pub fn between(live: &Value, written: &Value) -> Self {
        let mut found = Self::default();
        // What the written spec makes live at once is no difference.
        let mut before = live_spec::restored(live, written);
        if let Some(deployment) = before.get_mut("deployment").and_then(Value::as_object_mut) {
            deployment.remove("rollout");
        }
        let after = live_spec::after(None, written);
        found.walk(&mut vec!["spec".to_owned()], Some(&before), Some(&after));
        found
    }

    /// Whether nothing is staged.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The paths of the first fields, for a sentence.
    pub fn paths(&self, most: usize) -> String {
        let shown: Vec<&str> = self.fields.iter().take(most).map(|field| field.path.as_str()).collect();
        let more = self.fields.len().saturating_sub(most) + self.more;
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{rest}", shown.join(", "))
    }

    fn walk(&mut self, path: &mut Vec<String>, live: Option<&Value>, staged: Option<&Value>) {
        if live == staged {
            return;
        }
        let empty = Map::new();
        match (live, staged) {
            (Some(Value::Object(live)), Some(Value::Object(staged))) => {
                let members: BTreeSet<&String> = live.keys().chain(staged.keys()).collect();
                for member in members {
                    self.step(path, format!(".{member}"), live.get(member), staged.get(member));
                }
            }
            (Some(Value::Array(_)) | None, Some(Value::Array(_))) | (Some(Value::Array(_)), None) => {
                self.lists(path, live, staged);
            }
            // The variables of a new container are listed like those of an existing one.
            (Some(Value::Object(gone)), None) if gone.contains_key("env") => {
                self.leaf(path, live, staged);
                self.step(path, ".env".to_owned(), gone.get("env"), empty.get("env"));
            }
            (None, Some(Value::Object(new))) if new.contains_key("env") => {
                self.leaf(path, live, staged);
                self.step(path, ".env".to_owned(), empty.get("env"), new.get("env"));
            }
            _ => self.leaf(path, live, staged),
        }
    }

    fn lists(&mut self, path: &mut Vec<String>, live: Option<&Value>, staged: Option<&Value>) {
        let elements = |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
        let (live_list, staged_list) = (elements(live), elements(staged));
        let (Some(before), Some(after)) = (by_name(&live_list), by_name(&staged_list)) else {
            if live.is_none() || staged.is_none() {
                return self.leaf(path, live, staged);
            }
            for index in 0..live_list.len().max(staged_list.len()) {
                self.step(path, format!("[{index}]"), live_list.get(index), staged_list.get(index));
            }
            return;
        };
        let counted = self.fields.len() + self.more;
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        for name in names {
            self.step(path, format!("[{name}]"), before.get(name).copied(), after.get(name).copied());
        }
        if self.fields.len() + self.more == counted {
            // The same elements in another order.
            self.leaf(path, live, staged);
        }
    }

    fn step(&mut self, path: &mut Vec<String>, part: String, live: Option<&Value>, staged: Option<&Value>) {
        path.push(part);
        self.walk(path, live, staged);
        path.pop();
    }

    fn leaf(&mut self, path: &[String], live: Option<&Value>, staged: Option<&Value>) {
        if self.fields.len() == LISTED {
            self.more += 1;
            return;
        }
        let change = match (live, staged) {
            (None, _) => FieldChange::Added,
            (_, None) => FieldChange::Removed,
            _ => FieldChange::Changed,
        };
        let shown = |value: Option<&Value>| value.filter(|_| is_shown(path)).and_then(scalar);
        let parts: Vec<String> = path.iter().map(|part| display(part, SHOWN)).collect();
        self.fields.push(StagedField {
            path: parts.concat(),
            change,
            live: shown(live),
            staged: shown(staged),
        });
    }
}

/// The elements of a list by their names, where each has one of its own.
fn by_name(list: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let named: BTreeMap<&str, &Value> =
        list.iter().filter_map(|element| Some((element.get("name")?.as_str()?, element))).collect();
    (named.len() == list.len()).then_some(named)
}

fn is_shown(path: &[String]) -> bool {
    let secretive =
        path.iter().any(|part| part.strip_prefix('.').is_some_and(|member| SECRETIVE.contains(&member)));
    let flavor = format!("[{VARIABLE}]");
    !secretive
        || matches!(path, [.., env, name, value] if env == ".env" && *name == flavor && value == ".value")
}

/// A value without members, as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(display(text, SHOWN)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl fmt::Display for StagedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, change, live, staged } = self;
        match (change, live, staged) {
            (_, Some(live), Some(staged)) => write!(f, "{path}: {live} -> {staged}"),
            (FieldChange::Added, _, Some(staged)) => write!(f, "{path}: added, {staged}"),
            (FieldChange::Added, _, None) => write!(f, "{path}: added"),
            (FieldChange::Removed, Some(live), _) => write!(f, "{path}: removed, was {live}"),
            (FieldChange::Removed, None, _) => write!(f, "{path}: removed"),
            (FieldChange::Changed, _, _) => write!(f, "{path}: changed"),
        }
    }
}

/// The live spec of a DataPlane, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveSpec {
    /// The whole spec.
    Known(Value),
    /// Its hash: the ControllerRevision that keeps it was not read.
    Referenced(SpecHash),
    /// It is not recorded.
    Unrecorded(NoStamp),
}

impl LiveSpec {
    /// That of an object; `kept` is the spec of its ControllerRevision, where that was read.
    pub fn of(object: &Value, kept: Option<&Value>) -> Self {
        let stamp = match LiveStamp::of_object(object) {
            Ok(stamp) => live_spec::without_unrecorded(stamp, &object["status"]),
            // Another operator has made the stored spec live.
            Err(NoStamp::Superseded) => return Self::Known(live_spec::after(None, &object["spec"])),
            Err(why) => return Self::Unrecorded(why),
        };
        if let Some(spec) = stamp.live_spec().and_then(|text| serde_json::from_str(text).ok()) {
            return Self::Known(spec);
        }
        let stored = live_spec::after(None, &object["spec"]);
        match kept {
            _ if SpecHash::of(&stored.to_string()) == stamp.hash => Self::Known(stored),
            Some(kept) if SpecHash::of(&kept.to_string()) == stamp.hash => Self::Known(kept.clone()),
            _ => Self::Referenced(stamp.hash),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StagedState {
    Nothing,
    Fields(StagedChanges),
    /// Something; the live spec was not read.
    Something,
    /// What is live is not recorded.
    Unknown(NoStamp),
}

impl StagedState {
    pub fn of(live: &LiveSpec, written: &Value) -> Self {
        if !live_spec::is_staged(written) {
            return Self::Nothing;
        }
        match live {
            LiveSpec::Known(live) if !live_spec::is_changed(live, written) => Self::Nothing,
            LiveSpec::Known(live) => Self::Fields(StagedChanges::between(live, written)),
            LiveSpec::Referenced(hash) if live_spec::hash(written) == *hash => Self::Nothing,
            LiveSpec::Referenced(_) => Self::Something,
            LiveSpec::Unrecorded(why) => Self::Unknown(*why),
        }
    }

    /// That of an object, without the fields: only whether something is staged.
    pub fn of_object(object: &Value) -> Self {
        let spec = &object["spec"];
        if !live_spec::is_staged(spec) {
            return Self::Nothing;
        }
        match LiveSpec::of(object, None) {
            LiveSpec::Known(live) if live_spec::is_changed(&live, spec) => Self::Something,
            LiveSpec::Known(_) => Self::Nothing,
            live => Self::of(&live, spec),
        }
    }

    /// Whether something is known to be staged.
    pub fn is_something(&self) -> bool {
        matches!(self, Self::Fields(_) | Self::Something)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn containers(containers: &Value) -> Value {
        json!({"deployment": {"replicas": 3, "podTemplateSpec": {"spec": {"containers": containers}}}})
    }

    fn proxy(patch: Value) -> Value {
        let mut proxy = json!({"name": "proxy", "image": "kong:3.8", "env": [
            {"name": "KONG_ROUTER_FLAVOR", "value": "traditional"}, {"name": "TOKEN", "value": "s3cret"}]});
        json_patch::merge(&mut proxy, &patch);
        containers(&json!([proxy]))
    }

    const PROXY: &str = "spec.deployment.podTemplateSpec.spec.containers[proxy]";

    #[rstest]
    #[case::image(proxy(json!({"image": "kong:3.9"})), &[".image: kong:3.8 -> kong:3.9"])]
    #[case::flavor(
        proxy(json!({"env": [{"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}, {"name": "TOKEN", "value": "s3cret"}]})),
        &[".env[KONG_ROUTER_FLAVOR].value: traditional -> expressions"]
    )]
    #[case::secret(
        proxy(json!({"env": [{"name": "KONG_ROUTER_FLAVOR", "value": "traditional"}, {"name": "TOKEN", "value": "n3w"}, {"name": "MORE", "value": "x"}]})),
        &[".env[MORE]: added", ".env[TOKEN].value: changed"]
    )]
    #[case::all_variables_gone(proxy(json!({"env": null})), &[".env[KONG_ROUTER_FLAVOR]: removed", ".env[TOKEN]: removed"])]
    #[case::order(
        proxy(json!({"env": [{"name": "TOKEN", "value": "s3cret"}, {"name": "KONG_ROUTER_FLAVOR", "value": "traditional"}]})),
        &[".env: changed"]
    )]
    #[case::arguments(proxy(json!({"args": ["--password=x"]})), &[".args: added"])]
    #[case::escapes(proxy(json!({"image": "a\u{1b}[2Kb"})), &[".image: kong:3.8 -> a\\u001b[2Kb"])]
    #[case::nothing(proxy(json!({})), &[])]
    fn fields_of_a_container(#[case] staged: Value, #[case] said: &[&str]) {
        let found = StagedChanges::between(&proxy(json!({})), &staged);
        let lines: Vec<String> = found.fields.iter().map(ToString::to_string).collect();
        let expected: Vec<String> = said.iter().map(|rest| format!("{PROXY}{rest}")).collect();
        assert_eq!(lines, expected);
        assert_eq!(found.is_empty(), said.is_empty());
    }

    #[test]
    fn immediate_fields_and_the_rollout_are_not_staged() {
        let mut written = proxy(json!({}));
        written["deployment"]["replicas"] = json!(9);
        written["deployment"]["rollout"] = json!({"strategy": {"blueGreen": {}}});
        written["resources"] = json!({"podDisruptionBudget": {"spec": {"minAvailable": 1}}});
        assert_eq!(StagedChanges::between(&proxy(json!({})), &written), StagedChanges::default());
        written["extensions"] = json!([{"kind": "KonnectExtension", "name": "x"}]);
        written["deployment"]["hardened"] = json!("enabled");
        let found = StagedChanges::between(&proxy(json!({})), &written);
        let lines: Vec<String> = found.fields.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["spec.deployment.hardened: added, enabled", "spec.extensions[x]: added"]);
    }

    #[test]
    fn a_list_of_many_fields_is_cut() {
        let env: Vec<Value> = (0..50).map(|i| json!({"name": format!("V{i:02}"), "value": "x"})).collect();
        let found = StagedChanges::between(&proxy(json!({"env": null})), &proxy(json!({ "env": env })));
        assert_eq!((found.fields.len(), found.more), (LISTED, 30));
        assert_eq!(found.paths(2), format!("{PROXY}.env[V00], {PROXY}.env[V01] and 48 more"));
    }

    #[test]
    fn a_new_container_names_its_variables() {
        let live = containers(&json!([]));
        let found = StagedChanges::between(&live, &proxy(json!({})));
        let lines: Vec<String> = found.fields.iter().map(ToString::to_string).collect();
        let at = |rest: &str| format!("{PROXY}{rest}");
        assert_eq!(lines, [at(": added"), at(".env[KONG_ROUTER_FLAVOR]: added"), at(".env[TOKEN]: added")]);
    }
}
