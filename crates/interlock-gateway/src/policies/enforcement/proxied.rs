//! What of its EnvoyPatchPolicies a proxy has taken, by its own configuration.
//!
//! Envoy Gateway says `Programmed` when it has translated them; what Envoy refuses is in no status (its issue 9198).

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{NodeKey, ObjectKind};
use interlock_core::api::object::meta_str;
use serde_json::Value;

use super::names::{self, Patched};
use super::patches::{CLUSTER, LISTENER, MAPS, ROUTE_CONFIGURATION};
use super::xds;
use crate::names::ENVOY_GATEWAY;

/// Characters of a reason that Envoy gives.
const REASON: usize = 300;

/// The configuration of a proxy, as `/config_dump` of its administration port prints it.
#[derive(Debug, Default)]
pub struct ProxyConfig {
    /// The filters that all managers of a listener have.
    listeners: BTreeMap<String, BTreeSet<String>>,
    clusters: BTreeSet<String>,
    /// What route configurations have for filters.
    routes: BTreeMap<String, Value>,
    /// What Envoy refused, and why.
    refused: Vec<String>,
}

/// The rules of routes that are asked about.
#[derive(Clone, Debug)]
pub enum Proxied {
    /// All of a Gateway.
    All,
    /// Some, by the beginnings of their names in the proxy.
    Rules(BTreeSet<String>),
}

impl Proxied {
    /// The rules of routes at these positions.
    pub fn rules<'a>(rules: impl IntoIterator<Item = (&'a NodeKey, usize)>) -> Self {
        Self::Rules(rules.into_iter().map(|(route, rule)| xds::route_prefix(route, rule)).collect())
    }

    fn has(&self, prefix: &str) -> bool {
        match self {
            Self::All => true,
            Self::Rules(rules) => rules.contains(prefix),
        }
    }
}

/// What a proxy has of what is written for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Rules of routes that it has as they are written.
    pub rules: BTreeSet<String>,
    /// What it lacks, has in another version, or refused.
    pub lacks: Vec<String>,
}

impl ProxyConfig {
    /// Reads a dump; what it does not have is empty.
    pub fn read(dump: &Value) -> Self {
        let mut found = Self::default();
        for part in dump["configs"].as_array().into_iter().flatten() {
            let items = |name: &str| part[name].as_array().into_iter().flatten();
            for own in items("dynamic_listeners") {
                found.refusal(&own["error_state"]);
                let listener = &own["active_state"]["listener"];
                if let Some(name) = listener["name"].as_str() {
                    found.listeners.insert(name.to_owned(), filters(listener));
                }
            }
            for own in items("dynamic_active_clusters").chain(items("dynamic_warming_clusters")) {
                found.refusal(&own["error_state"]);
                found.clusters.extend(own["cluster"]["name"].as_str().map(str::to_owned));
            }
            for own in items("dynamic_route_configs") {
                found.refusal(&own["error_state"]);
                let configuration = &own["route_config"];
                if let Some(name) = configuration["name"].as_str() {
                    found.routes.insert(name.to_owned(), configuration["typed_per_filter_config"].clone());
                }
            }
        }
        found
    }

    fn refusal(&mut self, error: &Value) {
        if let Some(details) = error["details"].as_str() {
            self.refused.push(format!("Envoy refuses: {}", details.chars().take(REASON).collect::<String>()));
        }
    }

    /// What it has of the EnvoyPatchPolicies that are written for it, as far as they are about these rules.
    pub fn taken<'v>(&self, patches: impl IntoIterator<Item = &'v Value>, of: &Proxied) -> Taken {
        let mut taken = Taken { lacks: self.refused.clone(), ..Taken::default() };
        for patch in patches.into_iter().filter(|own| is_needed(own)) {
            for own in patch["spec"]["jsonPatches"].as_array().into_iter().flatten() {
                let name = own["name"].as_str().unwrap_or_default();
                match own["type"].as_str() {
                    Some(CLUSTER) if !self.clusters.contains(name) => {
                        taken.lacks.push(format!("it has no cluster {name}"));
                    }
                    Some(LISTENER) => taken.lacks.extend(self.listener_lacks(name, &own["operation"])),
                    Some(ROUTE_CONFIGURATION) => self.add_rules(name, &own["operation"], of, &mut taken),
                    _ => {}
                }
            }
        }
        // Each listener has several filters.
        taken.lacks.dedup();
        taken
    }

    fn listener_lacks(&self, name: &str, operation: &Value) -> Option<String> {
        let filter = operation["value"]["name"].as_str().unwrap_or_default();
        match self.listeners.get(name) {
            None => Some(format!("it has no listener {name}")),
            Some(filters) if filters.contains(filter) => None,
            Some(_) => Some(format!("its listener {name} has no filter {filter}")),
        }
    }

    fn add_rules(&self, name: &str, operation: &Value, of: &Proxied, taken: &mut Taken) {
        let path = operation["path"].as_str().unwrap_or_default();
        let Some(path) = path.strip_prefix(MAPS) else { return };
        // A map that goes on is a matcher of its own below the one before.
        let here = self.routes.get(name).and_then(|own| own.pointer(path));
        let map = |at: &Value| at["matcher"]["matcher_tree"]["prefix_match_map"]["map"].clone();
        let (wanted, here) = (map(&operation["value"]), here.map(map).unwrap_or_default());
        let wanted = wanted.as_object().into_iter().flatten().filter(|(prefix, _)| of.has(prefix));
        for (prefix, action) in wanted {
            let rule = prefix.trim_end_matches("/match/");
            match &here[prefix] {
                Value::Null => {
                    taken.lacks.push(format!("its route configuration {name} has nothing for {rule}"))
                }
                own if texts(own) == texts(action) => {
                    taken.rules.extend(rule.contains("/rule/").then(|| rule.to_owned()));
                }
                _ => {
                    taken.lacks.push(format!("its route configuration {name} has another version for {rule}"))
                }
            }
        }
    }
}

/// Whether an EnvoyPatchPolicy is ours and has to be in the proxy: what stands by may not.
fn is_needed(patch: &Value) -> bool {
    let name = meta_str(patch, "name").unwrap_or_default();
    let own = name.strip_suffix(names::OF_CLASS).map_or(name, |own| own.trim_end_matches('-'));
    Patched::of_name(name).is_some() && !own.ends_with(names::STANDBY)
}

/// Whether an object is one of the EnvoyPatchPolicies that Interlock writes for a Gateway, or for a GatewayClass.
pub fn is_for(object: &Value, target: &NodeKey) -> bool {
    let is_patch = object["kind"] == "EnvoyPatchPolicy"
        && object["apiVersion"].as_str().is_some_and(|own| own.starts_with(ENVOY_GATEWAY));
    let reference = &object["spec"]["targetRef"];
    let is_near =
        target.kind == ObjectKind::GatewayClass || meta_str(object, "namespace") == Some(&*target.namespace);
    is_patch
        && is_near
        && reference["kind"] == target.kind.name()
        && reference["name"] == *target.name
        && Patched::of_name(meta_str(object, "name").unwrap_or_default()).is_some()
}

/// The filters that all HTTP connection managers of a listener have.
fn filters(listener: &Value) -> BTreeSet<String> {
    let mut found = Vec::new();
    gather(listener, &mut found);
    let common = found.into_iter().reduce(|common, own| common.intersection(&own).cloned().collect());
    common.unwrap_or_default()
}

fn gather(value: &Value, found: &mut Vec<BTreeSet<String>>) {
    match value {
        Value::Object(fields) => {
            if let Some(filters) = fields.get("http_filters").and_then(Value::as_array) {
                let names = filters.iter().filter_map(|own| own["name"].as_str());
                found.push(names.map(str::to_owned).collect());
            }
            fields.values().for_each(|own| gather(own, found));
        }
        Value::Array(items) => items.iter().for_each(|own| gather(own, found)),
        _ => {}
    }
}

/// What an action is about: Envoy prints defaults and durations in its own way, and these as they are written.
fn texts(action: &Value) -> Vec<String> {
    const FIELDS: [&str; 6] = ["cluster_name", "descriptor_key", "domain", "suffix", "text", "value"];
    fn add(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, own) in fields {
                    match own.as_str().filter(|_| FIELDS.contains(&name.as_str())) {
                        Some(text) => found.push(format!("{name} {text}")),
                        None => add(own, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|own| add(own, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    add(action, &mut found);
    found.sort();
    found
}
