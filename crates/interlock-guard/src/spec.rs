//! A guard as people write it, checked and compiled.

use thiserror::Error;

use crate::api::{GuardSpec, MatchSpec, Operation, ResourceRule};
use crate::busy::BusyRules;
use crate::judgement::Guard;
use crate::paths::GuardedPaths;
use crate::presets::{generic, named, of_kind};

/// Bytes of all expressions of a guard: the API server evaluates them for each change of what it guards.
const BYTES: usize = 4 << 10;
/// Groups that no guard may name: what guards itself, and what would lock the API server.
const NEVER: [&str; 4] = ["interlock.dev", "kudo.dev", "admissionregistration.k8s.io", "coordination.k8s.io"];
/// What is changed by others than people.
const NOT_GUARDED: [&str; 2] = ["metadata", "status"];

/// What is wrong with a field of a guard.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("spec.{field} {problem}")]
pub struct SpecError {
    /// The field, such as `match.resourceRules[0].resources`.
    pub field: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

fn wrong(field: impl Into<String>, problem: impl Into<String>) -> SpecError {
    SpecError { field: field.into(), problem: problem.into() }
}

impl Guard {
    /// The guard of a spec.
    ///
    /// # Errors
    /// All fields that are wrong.
    pub fn of_spec(spec: &GuardSpec) -> Result<Self, Vec<SpecError>> {
        let mut errors = Vec::new();
        let rules = spec.matches.resource_rules.iter().enumerate();
        rules.for_each(|(n, rule)| check_rule(&format!("match.resourceRules[{n}]"), rule, &mut errors));
        if spec.matches.resource_rules.is_empty() {
            errors.push(wrong("match.resourceRules", "is empty; name the resources that are guarded"));
        }
        let preset = spec.preset.as_deref().map(|name| (name, named(name)));
        if let Some((name, None)) = preset {
            errors.push(wrong(
                "preset",
                format!("is {name:?}, which is none; `interlock guard presets` lists them"),
            ));
        }
        let is_generic = spec.preset.is_none() && spec.busy_when.is_empty();
        let preset = preset.and_then(|(_, own)| own).or_else(|| generic().filter(|_| is_generic));
        let busy = compiled(spec, preset.map_or(&[], |own| &own.busy), &mut errors);
        let or_preset = |own: &[String], of_preset: Option<&Vec<String>>| match of_preset {
            Some(of_preset) if own.is_empty() => of_preset.clone(),
            _ => own.to_vec(),
        };
        let mut paths = or_preset(&spec.paths, preset.map(|own| &own.paths));
        if paths.is_empty() {
            paths.push("spec".to_owned());
        }
        // What a preset never guards stays so where a guard names paths of its own.
        let mut except = spec.except.clone();
        except.extend(preset.into_iter().flat_map(|own| own.except.iter().cloned()));
        check_paths(spec, &mut errors);
        let paths = GuardedPaths::read(&paths, &except).map_err(|error| wrong("paths", error.to_string()));
        match (paths, busy) {
            (Ok(paths), Some(rules)) if errors.is_empty() => {
                Ok(Self { rules, paths, includes_owned: spec.matches.include_owned, action: spec.action })
            }
            (Err(error), _) => {
                errors.push(error);
                Err(errors)
            }
            _ => Err(errors),
        }
    }
}

impl MatchSpec {
    /// Whether updates of a kind are guarded, of which no definition is at hand: its plural is that of its preset, or as
    /// English has it.
    pub fn names(&self, group: &str, kind: &str) -> bool {
        let of_preset = of_kind(group, kind).and_then(|own| own.resource(group, kind));
        let resource = of_preset.map_or_else(|| plural(kind), str::to_owned);
        let names = |values: &[String], value: &str| values.iter().any(|own| own == value);
        let mut rules = self.resource_rules.iter();
        let is_of_updates =
            |own: &ResourceRule| own.operations.is_empty() || own.operations.contains(&Operation::Update);
        rules.any(|own| {
            is_of_updates(own) && names(&own.api_groups, group) && names(&own.resources, &resource)
        })
    }
}

/// As code generators of Kubernetes make it.
fn plural(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    match kind.char_indices().last() {
        Some((at, 'y')) if !kind.ends_with("ay") && !kind.ends_with("ey") => format!("{}ies", &kind[..at]),
        Some((_, 's' | 'x')) => format!("{kind}es"),
        _ if kind.ends_with("ch") || kind.ends_with("sh") => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

fn compiled(
    spec: &GuardSpec,
    of_preset: &[crate::api::BusyWhen],
    errors: &mut Vec<SpecError>,
) -> Option<BusyRules> {
    let texts = spec.busy_when.iter().flat_map(|own| {
        [Some(&own.expression), own.message_expression.as_ref(), own.since.as_ref()].into_iter().flatten()
    });
    let bytes: usize = texts.map(String::len).sum();
    if bytes > BYTES {
        errors.push(wrong(
            "busyWhen",
            format!("has {bytes} bytes of CEL; a guard may have {BYTES}, as each change pays for them"),
        ));
        return None;
    }
    let all: Vec<_> = spec.busy_when.iter().chain(of_preset).cloned().collect();
    match BusyRules::compile(&all) {
        Ok(rules) => Some(rules),
        Err(found) => {
            errors.extend(
                found
                    .into_iter()
                    .map(|own| wrong(format!("busyWhen[{}].{}", own.index, own.field), own.problem)),
            );
            None
        }
    }
}

fn check_rule(at: &str, rule: &ResourceRule, errors: &mut Vec<SpecError>) {
    let lists = [
        ("apiGroups", &rule.api_groups),
        ("apiVersions", &rule.api_versions),
        ("resources", &rule.resources),
    ];
    for (field, values) in lists {
        let field = format!("{at}.{field}");
        if values.is_empty() {
            errors.push(wrong(&field, "is empty; name what is guarded"));
        } else if values.iter().any(|own| own.contains('*')) {
            errors
                .push(wrong(&field, "has a *; name each, as a guard of all kinds would hold up the cluster"));
        }
    }
    if rule.api_versions.len() > 1 {
        let problem = "names several; write a rule for each, as expressions are written for one version";
        errors.push(wrong(format!("{at}.apiVersions"), problem));
    }
    if let Some(group) = rule.api_groups.iter().find(|own| NEVER.contains(&own.as_str())) {
        let problem = format!("names {group}, whose objects are never guarded by a ChangeGuard");
        errors.push(wrong(format!("{at}.apiGroups"), problem));
    }
}

fn check_paths(spec: &GuardSpec, errors: &mut Vec<SpecError>) {
    for (field, paths) in [("paths", &spec.paths), ("except", &spec.except)] {
        for (n, path) in paths.iter().enumerate() {
            let first = path.split('.').next().unwrap_or_default();
            if NOT_GUARDED.contains(&first) {
                let problem = format!("is {path:?}; {first} is never guarded");
                errors.push(wrong(format!("{field}[{n}]"), problem));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::judgement::Verdict;

    fn guard(change: Value) -> Result<Guard, String> {
        let mut spec = json!({"match": {"resourceRules": [
            {"apiGroups": ["example.org"], "apiVersions": ["v1"], "resources": ["caches"]},
        ]}});
        json_patch::merge(&mut spec, &change);
        let spec: GuardSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
        let joined =
            |errors: Vec<SpecError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        Guard::of_spec(&spec).map_err(joined)
    }

    fn busy_when(expression: &str) -> Value {
        json!({"busyWhen": [{"name": "moving", "expression": expression, "message": "data is being moved"}]})
    }

    #[rstest]
    #[case::star(json!({"match": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["a"]}]}}),
        "spec.match.resourceRules[0].apiGroups has a *")]
    #[case::versions(json!({"match": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1", "v2"], "resources": ["a"]}]}}),
        "spec.match.resourceRules[0].apiVersions names several")]
    #[case::own_kinds(json!({"match": {"resourceRules": [{"apiGroups": ["kudo.dev"], "apiVersions": ["v1"], "resources": ["a"]}]}}),
        "names kudo.dev")]
    #[case::no_rules(json!({"match": {"resourceRules": []}}), "spec.match.resourceRules is empty")]
    #[case::preset(json!({"preset": "deploiment"}), "spec.preset is \"deploiment\", which is none")]
    #[case::no_cel(busy_when("oldObject.status ="), "spec.busyWhen[0].expression does not parse")]
    #[case::variable(
        busy_when("object.spec == 5"),
        "spec.busyWhen[0].expression uses object; it may use oldObject"
    )]
    #[case::function(busy_when("oldObject.a.matches('x')"), "spec.busyWhen[0].expression uses matches()")]
    #[case::no_message(json!({"busyWhen": [{"name": "a", "expression": "true"}]}), "spec.busyWhen[0].message is absent")]
    #[case::long(busy_when(&format!("oldObject.a == '{}'", "x".repeat(4096))), "spec.busyWhen has ")]
    #[case::path(json!({"paths": ["spec..a"]}), "spec.paths \"spec..a\" is no path")]
    #[case::metadata(json!({"paths": ["metadata.labels"]}), "spec.paths[0] is \"metadata.labels\"; metadata is never guarded")]
    #[case::unknown(json!({"pathz": []}), "unknown field `pathz`")]
    #[case::action(json!({"action": "Refuse"}), "unknown variant `Refuse`")]
    fn what_is_wrong_with_a_guard_is_named(#[case] change: Value, #[case] said: &str) {
        let error = guard(change).unwrap_err();
        assert!(error.contains(said), "{error}");
    }

    #[rstest]
    #[case::moving(json!({}), json!({"moving": true}), Verdict::Deny)]
    #[case::at_rest(json!({}), json!({"moving": false}), Verdict::Allow)]
    #[case::warned_of(json!({"action": "Warn"}), json!({"moving": true}), Verdict::Warn)]
    #[case::of_another_path(json!({"paths": ["spec.other"]}), json!({"moving": true}), Verdict::Allow)]
    #[case::but_for(json!({"except": ["spec.size"]}), json!({"moving": true}), Verdict::Allow)]
    fn a_guard_of_ones_own_decides(#[case] change: Value, #[case] status: Value, #[case] verdict: Verdict) {
        let mut spec = busy_when("has(oldObject.status.moving) && oldObject.status.moving");
        json_patch::merge(&mut spec, &change);
        let guard = guard(spec).unwrap();
        let cache = |size: u64| json!({"metadata": {"name": "a"}, "spec": {"size": size}, "status": status});
        assert_eq!(guard.judge(&cache(1), &cache(2)).verdict, verdict);
    }
}
