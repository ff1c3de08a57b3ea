//! The resolver against a second, simple reading of the environment, and what holds for every
//! change.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Case, config_map, data_plane, plane, read};
use crate::rollout::flavor::Flavor;
use crate::rollout::flavor::reading::Effective;

const FLAVOR: &str = "KONG_ROUTER_FLAVOR";

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "traditional",
            "traditional_compatible",
            "expressions",
            " expressions",
            "x",
            "$(A)",
            "$(A)$(B)",
            "$$(A)",
            "$(KONG_ROUTER_FLAVOR)",
            "expre$(B)",
            "{vault://x}",
        ])
        .prop_map(str::to_owned),
        "[$()AB ]{0,6}",
    ]
}

fn entry() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![FLAVOR, FLAVOR, "A", "B"]);
    let key = prop::sample::select(vec!["FLAVOR", "A", "lost"]);
    let object = prop::sample::select(vec!["one", "two"]);
    (name, value(), prop::option::weighted(0.3, (object, key, any::<bool>()))).prop_map(
        |(name, value, from)| match from {
            None => json!({"name": name, "value": value}),
            Some((object, key, optional)) => json!({
                "name": name,
                "valueFrom": {"configMapKeyRef": {"name": object, "key": key, "optional": optional}},
            }),
        },
    )
}

fn import() -> impl Strategy<Value = Value> {
    let prefix = prop::sample::select(vec!["", "KONG_", "KONG_ROUTER_", "X_"]);
    let object = prop::sample::select(vec!["one", "two"]);
    (prefix, object).prop_map(|(prefix, object)| json!({"prefix": prefix, "configMapRef": {"name": object}}))
}

type Data = BTreeMap<String, String>;

fn data() -> impl Strategy<Value = Data> {
    let key = prop::sample::select(vec!["FLAVOR", "ROUTER_FLAVOR", FLAVOR, "A", "B"]).prop_map(str::to_owned);
    prop::collection::btree_map(key, value(), 0..4)
}

/// As the kubelet does it: everything, in order. `None` where the pod cannot start.
fn environment(env: &[Value], imports: &[Value], objects: &BTreeMap<&str, Data>) -> Option<Data> {
    let mut all = Data::new();
    for import in imports {
        for (key, value) in &objects[import["configMapRef"]["name"].as_str()?] {
            all.insert(format!("{}{key}", import["prefix"].as_str()?), value.clone());
        }
    }
    for entry in env {
        let name = entry["name"].as_str()?.to_owned();
        let value = entry["value"].as_str().unwrap_or_default();
        let reference = &entry["valueFrom"]["configMapKeyRef"];
        if !value.is_empty() || reference.is_null() {
            let expanded = expand(value, &all);
            all.insert(name, expanded);
            continue;
        }
        match objects[reference["name"].as_str()?].get(reference["key"].as_str()?) {
            Some(value) => all.insert(name, value.clone()),
            None if reference["optional"] == true => continue,
            None => return None,
        };
    }
    Some(all)
}

/// Character by character.
fn expand(value: &str, all: &Data) -> String {
    let chars: Vec<char> = value.chars().collect();
    let (mut out, mut i) = (String::new(), 0);
    while i < chars.len() {
        let next = chars.get(i + 1);
        if chars[i] != '$' || next.is_none() {
            out.push(chars[i]);
            i += 1;
        } else if next == Some(&'$') {
            out.push('$');
            i += 2;
        } else if next == Some(&'(') && chars[i + 2..].contains(&')') {
            let name: String = chars[i + 2..].iter().take_while(|c| **c != ')').collect();
            out.push_str(&all.get(&name).cloned().unwrap_or_else(|| format!("$({name})")));
            i += 3 + name.chars().count();
        } else {
            out.push('$');
            i += 1;
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Where pods start, both readings agree; where they do not, no flavor rests on what is missing.
    #[test]
    fn as_a_simple_reading_of_the_environment(
        env in prop::collection::vec(entry(), 0..6),
        imports in prop::collection::vec(import(), 0..3),
        one in data(),
        two in data(),
    ) {
        let container = json!({"name": "proxy", "image": "kong:3.9", "env": env, "envFrom": imports});
        let objects = [config_map("one", json!(one)), config_map("two", json!(two))];
        let found = read(&data_plane(container, false), &objects).spec.reading.effective;
        let Some(all) = environment(&env, &imports, &BTreeMap::from([("one", one), ("two", two)])) else {
            return Ok(());
        };
        match all.get(FLAVOR).map(|value| value.trim()) {
            None => prop_assert_eq!(found, Effective::Known(Flavor::TraditionalCompatible)),
            Some(value) if value.starts_with("{vault://") => {
                prop_assert!(matches!(found, Effective::Unknown(_)), "{found}")
            }
            Some(value) => match Flavor::ALL.into_iter().find(|flavor| flavor.as_str() == value) {
                Some(flavor) => prop_assert_eq!(found, Effective::Known(flavor)),
                None => prop_assert!(matches!(found, Effective::Invalid(_)), "{found}"),
            },
        }
    }

    /// Whatever the environment holds, and whatever it is changed to.
    #[test]
    fn anything_can_be_judged(
        values in prop::collection::vec("\\PC{0,30}", 4),
        images in prop::collection::vec("\\PC{0,12}|kong:[0-9.v-]{0,8}", 2),
        words in prop::collection::vec("\\PC{0,12}|-c|kong|/etc[a-z/.]{0,9}", 3),
    ) {
        let container = |image: &str, value: &str| json!({
            "name": "proxy", "image": image, "args": words,
            "env": [{"name": "A", "value": values[2]}, {"name": FLAVOR, "value": value}],
            "envFrom": [{"prefix": values[3], "secretRef": {"name": "s"}}],
            "volumeMounts": [{"mountPath": words[0]}],
        });
        let old = read(&data_plane(container(&images[0], &values[0]), true), &[]);
        let new = read(&data_plane(container(&images[1], &values[1]), false), &[]);
        let _ = Case::change(&old, &new).judge();
        prop_assert_eq!(Case::change(&new, &new).judge(), Default::default());
    }
}

fn any_plane() -> impl Strategy<Value = (String, Option<&'static str>, bool)> {
    let flavors = [None, Some("traditional"), Some("traditional_compatible"), Some("expressions"), Some("x")];
    let images =
        ["kong:2.8", "kong:3.0.0", "kong:3.1", "kong:3.3", "kong:3.4", "kong:3.6", "kong:3.9", "kong"];
    (prop::sample::select(images.to_vec()), prop::sample::select(flavors.to_vec()), any::<bool>())
        .prop_map(|(image, flavor, staged)| (image.to_owned(), flavor, staged))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_holds_for_every_change(live in any_plane(), stored in any_plane(), new in any_plane()) {
        let make = |(image, flavor, staged): &(String, Option<&str>, bool)| plane(image, *flavor, *staged);
        let (live, stored, new) = (make(&live), make(&stored), make(&new));
        let case = |new| Case { stored: Some(stored.clone()), ..Case::change(&live, new) };

        // The live spec can always be restored.
        if live.spec.reading.effective.known().is_some() {
            prop_assert_eq!(case(&live).judge().denied, vec![]);
        }
        // A bad stored object stays editable: what was wrong is not said again.
        let kept = Case::change(&stored, &stored).judge();
        prop_assert_eq!(kept, Default::default());
        // Every sentence is one line.
        for finding in case(&new).judge().denied {
            prop_assert!(!finding.text.contains('\n'));
        }
    }
}
