//! Properties of every gateway and change. `tests/hostile` compares the resolver with a second reading.

use proptest::prelude::*;
use serde_json::json;

use super::world::{Case, data_plane, plane, read};

const FLAVOR: &str = "KONG_ROUTER_FLAVOR";

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any environment and any change of it can be validated.
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
        // An invalid stored object stays editable: existing problems are not repeated.
        let kept = Case::change(&stored, &stored).judge();
        prop_assert_eq!(kept, Default::default());
        // Every sentence is one line.
        for finding in case(&new).judge().denied {
            prop_assert!(!finding.text.contains('\n'));
        }
    }
}
