//! The AuthConfig of an effective policy (`authorino.kuadrant.io/v1beta3`).

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{EffectivePolicy, EffectiveRule, Index, NodeKey, PolicyId};
use serde_json::{Value, json};

use crate::policies::enforcement::left_out::LeftOut;
use crate::policies::enforcement::names;

/// Bytes of the rules of one AuthConfig.
const BYTES: usize = 64 << 10;

/// Where rules stand: how their keys begin, and the way in an AuthConfig.
const PLACES: [(&str, &[&str]); 6] = [
    ("authentication.", &["authentication"]),
    ("metadata.", &["metadata"]),
    ("authorization.", &["authorization"]),
    ("callbacks.", &["callbacks"]),
    ("response.success.headers.", &["response", "success", "headers"]),
    ("response.success.filters.", &["response", "success", "dynamicMetadata"]),
];
/// The keys of rules that exist once.
const SINGLE: [&str; 2] = ["response.unauthenticated", "response.unauthorized"];
/// Lists of conditions, whose members may refer to a named pattern.
const CONDITIONS: [&str; 4] = ["when", "all", "any", "patterns"];
/// Fields that name Secrets.
const SECRETS: [&str; 4] = ["sharedSecretRef", "clientSecretRef", "credentialsRef", "signingKeyRefs"];
/// Ways of authentication that select Secrets.
const SELECTING: [&str; 2] = ["apiKey", "x509"];

/// The way of authentication of requests that no predicate holds for.
const UNGUARDED: &str = "interlock-unguarded";
/// How the rules are named that refuse requests for which a predicate of a rule of authorization fails.
const DECIDED: &str = "interlock-decided";

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::policies::enforcement) struct AuthConfig {
    /// The Gateway on whose paths it decides.
    pub(in crate::policies::enforcement) gateway: NodeKey,
    /// The policies on the paths that it decides about.
    pub(in crate::policies::enforcement) policies: Vec<PolicyId>,
    /// Its `spec`.
    pub(in crate::policies::enforcement) spec: Value,
    /// The hash of that.
    pub(in crate::policies::enforcement) hash: String,
}

/// By which the proxies of a Gateway name the AuthConfig of an effective policy. An edit of a policy leaves it as it is.
pub(in crate::policies::enforcement) fn host(gateway: &NodeKey, effective: &EffectivePolicy) -> String {
    let mut text = gateway.to_string();
    for policy in &effective.policies {
        text.push('\n');
        text.push_str(&policy.qualified_name());
    }
    format!("interlock-{}", names::digest(&text, 16))
}

/// The AuthConfig of an effective policy, which decides about requests for a host.
pub(in crate::policies::enforcement) fn auth_config(
    index: &Index,
    gateway: &NodeKey,
    host: &str,
    effective: &EffectivePolicy,
) -> Result<AuthConfig, Vec<LeftOut>> {
    let mut spec = json!({"hosts": [host]});
    let mut left_out = Vec::new();
    for (key, rule) in &effective.rules {
        let Some(way) = way(key) else { continue };
        match translated(index, gateway, rule) {
            Ok(value) => {
                let place = way.into_iter().fold(&mut spec, |at, part| &mut at[part]);
                *place = value;
            }
            Err(why) => {
                left_out.push(LeftOut { policy: rule.source.clone(), rule: key.clone(), why, gateway: None });
            }
        }
    }
    add_predicates(index, effective, &mut spec);
    if left_out.is_empty() && spec.to_string().len() > BYTES {
        let why = format!("the rules of one path have more than {} KiB; write fewer", BYTES >> 10);
        let rule = |policy: &PolicyId| LeftOut {
            policy: policy.clone(),
            rule: "rules".into(),
            why: why.clone(),
            gateway: None,
        };
        left_out.extend(effective.sources().into_iter().map(rule));
    }
    if !left_out.is_empty() {
        return Err(left_out);
    }
    let hash = names::hash(&spec);
    Ok(AuthConfig { gateway: gateway.clone(), policies: effective.policies.clone(), spec, hash })
}

/// A merge patch that takes away what an AuthConfig has beyond what is wanted, and an apply would leave: what others added.
pub(in crate::policies::enforcement) fn without_others(present: &Value, wanted: &Value) -> Option<Value> {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => {
            let surplus = present.iter().filter_map(|(name, own)| {
                let patch = match wanted.get(name) {
                    Some(wanted) => without_others(own, wanted)?,
                    None if is_default(name, own) => return None,
                    None => Value::Null,
                };
                Some((name.clone(), patch))
            });
            let surplus: serde_json::Map<String, Value> = surplus.collect();
            (!surplus.is_empty()).then_some(Value::Object(surplus))
        }
        (Value::Array(present), Value::Array(members)) => {
            let has_others = |(own, wanted): (&Value, &Value)| without_others(own, wanted).is_some();
            present.iter().zip(members).any(has_others).then(|| wanted.clone())
        }
        _ => None,
    }
}

/// Whether the stock definition fills a field in so.
fn is_default(name: &str, value: &Value) -> bool {
    match name {
        "allNamespaces" | "allValues" | "metrics" => *value == false,
        "cache" => *value == true,
        "contentType" => *value == "application/x-www-form-urlencoded",
        "method" => *value == "GET",
        "priority" => *value == 0,
        "ttl" => *value == 60,
        "version" => *value == "v0",
        _ => false,
    }
}

/// The way to a rule; none for what guards nothing by itself.
fn way(key: &str) -> Option<Vec<&str>> {
    if SINGLE.contains(&key) {
        return Some(key.split('.').collect());
    }
    PLACES.iter().find_map(|(prefix, way)| {
        let name = key.strip_prefix(prefix)?;
        Some(way.iter().copied().chain([name]).collect())
    })
}

/// A rule, with the named patterns of its policy in place of references to them.
fn translated(index: &Index, gateway: &NodeKey, rule: &EffectiveRule) -> Result<Value, String> {
    let (source, value) = (&rule.source, &*rule.value);
    if let Some(way) = SELECTING.into_iter().find(|way| value[way]["allNamespaces"] == true) {
        return Err(format!("{way}.allNamespaces reaches the Secrets of all namespaces; leave it out"));
    }
    if source.namespace != gateway.namespace {
        let selecting = SELECTING.into_iter().find(|way| !value[way]["selector"].is_null());
        if let Some(field) = selecting.or_else(|| secret(value)) {
            return Err(format!(
                "{field} names Secrets, which are looked for in the namespace of the Gateway, {}; only policies of that \
                 namespace may name them",
                gateway.namespace
            ));
        }
    }
    inlined(value, &|name| pattern(index, source, name))
}

/// A field that names a Secret.
fn secret(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(fields) => {
            let named = SECRETS.into_iter().find(|field| fields.contains_key(*field));
            named.or_else(|| fields.values().find_map(secret))
        }
        Value::Array(members) => members.iter().find_map(secret),
        _ => None,
    }
}

/// The conditions of a named pattern of a policy.
fn pattern(index: &Index, policy: &PolicyId, name: &str) -> Result<Value, String> {
    let block = index.policy(policy).and_then(|own| own.block.as_ref());
    let found = block.and_then(|block| block.rules.get(format!("patterns.{name}").as_str()));
    match found.map(|own| &own["allOf"]) {
        Some(all @ Value::Array(_)) => Ok(json!({"all": all})),
        _ => Err(format!(
            "patternRef {name:?} is none of the patterns of its policy, {}; define it there",
            policy.qualified_name()
        )),
    }
}

fn inlined(value: &Value, pattern: &dyn Fn(&str) -> Result<Value, String>) -> Result<Value, String> {
    let Some(fields) = value.as_object() else { return Ok(value.clone()) };
    let one = |(field, value): (&String, &Value)| {
        let value = match value {
            Value::Array(members) if CONDITIONS.contains(&field.as_str()) => {
                let member = |own: &Value| match own["patternRef"].as_str() {
                    Some(name) => pattern(name),
                    None => Ok(decided(inlined(own, pattern)?)),
                };
                Value::Array(members.iter().map(member).collect::<Result<_, _>>()?)
            }
            // As a value of another type would.
            Value::String(url) if field == "urlExpression" => format!("string({url}\n)").into(),
            value => inlined(value, pattern)?,
        };
        Ok((field.clone(), value))
    };
    fields.iter().map(one).collect::<Result<_, _>>().map(Value::Object)
}

/// A condition whose predicate is true, false or an error: a value of another type ends the process of Authorino.
fn decided(mut condition: Value) -> Value {
    if let Some(predicate) = condition["predicate"].as_str().filter(|own| !own.is_empty()) {
        condition["predicate"] = format!("({predicate}\n) ? true : false").into();
    }
    condition
}

/// Adds what keeps a request out whose predicates fail, and lets one in that no policy wants authenticated.
///
/// Each rule has the predicates of its policy. Authorino leaves a rule out whose predicates fail as it does one whose
/// predicates do not hold, and refuses a request that no way of authentication is left for.
fn add_predicates(index: &Index, effective: &EffectivePolicy, spec: &mut Value) {
    let of_rules = |prefix: &'static str| -> BTreeSet<&PolicyId> {
        let rules = effective.rules.iter().filter(move |(key, _)| key.starts_with(prefix));
        rules.map(|(_, rule)| &rule.source).collect()
    };
    let authenticating: Vec<String> =
        of_rules("authentication.").into_iter().map(|own| predicate(index, own)).collect();
    if !authenticating.is_empty() && authenticating.iter().all(|own| !own.is_empty()) {
        let when: Vec<Value> =
            authenticating.iter().map(|own| json!({"predicate": format!("!({own})")})).collect();
        spec["authentication"][UNGUARDED] = json!({"anonymous": {}, "when": when});
    }
    // By priority, as what a rule finds out is known to those after it.
    let mut predicates: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
    for (_, rule) in spec["authorization"].as_object().into_iter().flatten() {
        add_all(&rule["when"], predicates.entry(rule["priority"].as_i64().unwrap_or_default()).or_default());
    }
    let is_decided = |own: &str| json!({"predicate": format!("({own}) || !({own})")});
    let decided: Vec<(String, Value)> = predicates
        .into_iter()
        .filter(|(_, own)| !own.is_empty())
        .map(|(priority, own)| {
            let patterns: Vec<Value> = own.into_iter().map(is_decided).collect();
            let rule = json!({"patternMatching": {"patterns": patterns}, "priority": priority});
            (format!("{DECIDED}-{priority}"), rule)
        })
        .collect();
    for (name, rule) in decided {
        spec["authorization"][name] = rule;
    }
}

/// Adds the predicates of conditions, also those in `any` and `all`.
fn add_all<'a>(conditions: &'a Value, found: &mut BTreeSet<&'a str>) {
    for own in conditions.as_array().into_iter().flatten() {
        found.extend(own["predicate"].as_str().filter(|own| !own.is_empty()));
        add_all(&own["any"], found);
        add_all(&own["all"], found);
    }
}

/// The predicates of a whole policy as one; empty where it has none. A comment ends with its line.
fn predicate(index: &Index, policy: &PolicyId) -> String {
    let conditions = index.policy(policy).and_then(|own| own.block.as_ref()).map(|own| &own.conditions);
    let predicates = conditions.into_iter().flatten().filter_map(|own| own["predicate"].as_str());
    predicates.map(|own| format!("(({own}\n) ? true : false)")).collect::<Vec<_>>().join(" && ")
}
