//! The definition of RateLimitPolicies, for clusters that have none of Kuadrant's, which is served as well as this one.
//!
//! It takes what Kuadrant's takes (v1, `config/crd/bases/kuadrant.io_ratelimitpolicies.yaml`). Its status also has the
//! conditions by ancestor (GEP-713), which Kuadrant's prunes.

use gateway_policies::limits;
use serde_json::{Value, json};

use super::known::POLICY_LABEL;
use crate::names::{GATEWAY_API, KUADRANT};

const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const GROUP: &str = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const KIND: &str = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
const WINDOW: &str = "^([0-9]{1,5}(h|m|s|ms)){1,4}$";
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// The CustomResourceDefinition.
pub fn rate_limit_policies() -> Value {
    let column = |name: &str, description: &str, path: &str| {
        json!({
            "name": name, "type": "string", "description": description, "jsonPath": path, "priority": 2,
        })
    };
    let condition = |of: &str| format!(".status.conditions[?(@.type==\"{of}\")].status");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("ratelimitpolicies.{KUADRANT}"), "labels": {POLICY_LABEL: "inherited"}},
        "spec": {
            "group": KUADRANT,
            "names": {
                "kind": "RateLimitPolicy", "listKind": "RateLimitPolicyList",
                "plural": "ratelimitpolicies", "singular": "ratelimitpolicy",
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    column("Accepted", "Whether it is valid, and its target exists.", &condition("Accepted")),
                    column("Enforced", "Whether its limits are carried out.", &condition("Enforced")),
                    column("TargetKind", "The kind of its target.", ".spec.targetRef.kind"),
                    column("TargetName", "The name of its target.", ".spec.targetRef.name"),
                    column("TargetSection", "The section of its target.", ".spec.targetRef.sectionName"),
                    json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "Limits of the requests to a Gateway, a listener, a route, or a rule of one.",
                    "properties": {
                        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                        "spec": spec(), "status": status(),
                    },
                }},
            }],
        },
    })
}

fn spec() -> Value {
    let defaults = "Limits that hold unless a policy of what is below the target has its own.";
    let overrides = "Limits that hold in place of those of policies below the target.";
    let rule = |message: &str, rule: &str| json!({"message": message, "rule": rule});
    json!({
        "type": "object",
        "required": ["targetRef"],
        "properties": {
            "targetRef": target(),
            "limits": limits_by_name(),
            "when": predicates("Conditions of all limits of the policy."),
            "defaults": block(defaults),
            "overrides": block(overrides),
        },
        "x-kubernetes-validations": [
            rule("Implicit and explicit defaults are mutually exclusive", "!(has(self.defaults) && has(self.limits))"),
            rule("Overrides and explicit defaults are mutually exclusive", "!(has(self.defaults) && has(self.overrides))"),
            rule("Overrides and implicit defaults are mutually exclusive", "!(has(self.overrides) && has(self.limits))"),
            rule(
                "At least one spec.limits must be defined",
                "!(has(self.overrides) || has(self.defaults)) ? has(self.limits) && size(self.limits) > 0 : true",
            ),
            rule(
                "At least one spec.overrides.limits must be defined",
                "has(self.overrides) ? has(self.overrides.limits) && size(self.overrides.limits) > 0 : true",
            ),
            rule(
                "At least one spec.defaults.limits must be defined",
                "has(self.defaults) ? has(self.defaults.limits) && size(self.defaults.limits) > 0 : true",
            ),
        ],
    })
}

fn target() -> Value {
    json!({
        "type": "object",
        "description": "The Gateway or route that the limits are for.",
        "required": ["group", "kind", "name"],
        "properties": {
            "group": {"type": "string", "maxLength": 253, "pattern": GROUP},
            "kind": {"type": "string", "minLength": 1, "maxLength": 63, "pattern": KIND},
            "name": {"type": "string", "minLength": 1, "maxLength": 253},
            "sectionName": {
                "type": "string", "minLength": 1, "maxLength": 253, "pattern": SUBDOMAIN,
                "description": "The listener of the Gateway, or the rule of the route.",
            },
        },
        "x-kubernetes-validations": [
            {
                "message": format!("Invalid targetRef.group. The only supported value is '{GATEWAY_API}'"),
                "rule": format!("self.group == '{GATEWAY_API}'"),
            },
            {
                "message": "Invalid targetRef.kind. The only supported values are 'HTTPRoute', 'GRPCRoute' and 'Gateway'",
                "rule": "self.kind == 'HTTPRoute' || self.kind == 'GRPCRoute' || self.kind == 'Gateway'",
            },
        ],
    })
}

fn block(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "strategy": {
                "type": "string", "enum": ["atomic", "merge"], "default": "atomic",
                "description": "Whether policies replace each other whole, or limit by limit.",
            },
            "when": predicates("Conditions of all limits of the block."),
            "limits": limits_by_name(),
        },
    })
}

fn limits_by_name() -> Value {
    let expression = json!({"type": "string", "minLength": 1});
    let counter =
        json!({"type": "object", "required": ["expression"], "properties": {"expression": expression}});
    let rate = json!({
        "type": "object",
        "required": ["limit", "window"],
        "properties": {
            "limit": {"type": "integer", "description": "Requests."},
            "window": {"type": "string", "pattern": WINDOW, "description": "The time that they are counted for, such as 1m."},
        },
    });
    let limit = json!({
        "type": "object",
        "properties": {
            "rates": {"type": "array", "items": rate},
            "when": predicates("The limit counts a request for which all of these hold."),
            "counters": {
                "type": "array", "items": counter,
                "description": "CEL expressions; requests are counted apart by their values.",
            },
        },
    });
    json!({"type": "object", "description": "Limits by name.", "additionalProperties": limit})
}

fn predicates(description: &str) -> Value {
    let predicate =
        json!({"type": "string", "minLength": 1, "description": "A CEL expression of true or false."});
    let item = json!({"type": "object", "required": ["predicate"], "properties": {"predicate": predicate}});
    json!({"type": "array", "description": description, "items": item})
}

fn status() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "conditions": conditions(),
            "ancestors": {
                "type": "array",
                "maxItems": limits::ANCESTORS,
                "x-kubernetes-list-type": "atomic",
                "description": "The conditions for each Gateway that requests reach the target through.",
                "items": {
                    "type": "object",
                    "required": ["ancestorRef", "controllerName", "conditions"],
                    "properties": {
                        "ancestorRef": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"group": text, "kind": text, "namespace": text, "name": text, "sectionName": text},
                        },
                        "controllerName": text,
                        "conditions": conditions(),
                    },
                },
            },
        },
    })
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {"type": "string", "maxLength": 316},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": REASON},
                "message": {"type": "string", "maxLength": 32768},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            },
        },
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads the stock definition")]
mod tests {
    use go_template::yaml;

    use super::*;

    /// Our definition of RateLimitPolicies takes and refuses what Kuadrant's takes and refuses.
    #[test]
    fn our_definition_decides_as_kuadrants() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../shared/crds/kuadrant_ratelimitpolicies.yaml");
        let Ok(text) = std::fs::read_to_string(&file) else {
            println!("skipped: {} is not there", file.display());
            return;
        };
        let stock = yaml::documents(&text).unwrap().swap_remove(0);
        let definitions =
            [stock, rate_limit_policies()].map(|own| crd_schema::Definition::read(&own).unwrap());
        let limit = json!({"rates": [{"limit": 5, "window": "1m"}]});
        let limits = json!({"a": limit});
        let target = |kind: &str| json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": "api"});
        let with = |field: &str, value: Value| {
            let mut limit = limit.clone();
            limit[field] = value;
            json!({"targetRef": target("Gateway"), "limits": {"a": limit}})
        };
        let specs = [
            json!({"targetRef": target("HTTPRoute"), "limits": limits}),
            json!({"targetRef": target("GRPCRoute"), "limits": limits, "when": [{"predicate": "true"}]}),
            json!({"targetRef": target("Gateway"), "defaults": {"limits": limits, "strategy": "merge"}}),
            json!({"targetRef": target("Gateway"), "overrides": {"limits": limits, "when": [{"predicate": "true"}]}}),
            with("counters", json!([{"expression": "request.host"}])),
            with("rates", json!([])),
            // Refused.
            json!({"limits": limits}),
            json!({"targetRef": target("TCPRoute"), "limits": limits}),
            json!({"targetRef": {"group": "", "kind": "Gateway", "name": "gw"}, "limits": limits}),
            json!({"targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": ""}, "limits": limits}),
            json!({"targetRef": target("Gateway")}),
            json!({"targetRef": target("Gateway"), "limits": {}}),
            json!({"targetRef": target("Gateway"), "limits": limits, "defaults": {"limits": limits}}),
            json!({"targetRef": target("Gateway"), "limits": limits, "overrides": {"limits": limits}}),
            json!({"targetRef": target("Gateway"), "defaults": {"limits": limits}, "overrides": {"limits": limits}}),
            json!({"targetRef": target("Gateway"), "defaults": {}}),
            json!({"targetRef": target("Gateway"), "overrides": {"limits": {}}}),
            json!({"targetRef": target("Gateway"), "defaults": {"limits": limits, "strategy": "patch"}}),
            with("counters", json!([{"expression": ""}])),
            with("counters", json!(["request.host"])),
            with("when", json!([{}])),
            with("rates", json!([{"limit": "5", "window": "1m"}])),
            with("rates", json!([{"limit": 5, "window": "1 m"}])),
            with("rates", json!([{"limit": 5}])),
            with("unknown", json!(1)),
        ];
        for spec in specs {
            let decide = |definition: &crd_schema::Definition| {
                let mut object = json!({
                    "apiVersion": "kuadrant.io/v1", "kind": "RateLimitPolicy",
                    "metadata": {"name": "x", "namespace": "shop"}, "spec": spec,
                });
                let version = definition.versions.iter().find(|own| own.name == "v1").unwrap();
                let mut errors = version.decode(&mut object).errors;
                let object = version.written(object, None);
                errors.extend(version.validate(definition, &object, None).errors);
                let errors: Vec<String> =
                    errors.iter().map(|own| format!("{}: {}", own.path, own.message)).collect();
                (errors, object)
            };
            assert_eq!(decide(&definitions[0]), decide(&definitions[1]), "{spec}");
        }
    }
}
