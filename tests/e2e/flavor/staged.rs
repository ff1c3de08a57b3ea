//! Changes that are staged: judged by what is live, which the stamp tells.

use serde_json::{Value, json};

use super::{TC, data_plane, define_data_planes, env, goldens, meets};
use crate::support::Interlock;

fn plane(name: &str, flavor: &str, staged: bool) -> Value {
    data_plane(name, &env("kong:3.9", flavor), staged)
}

fn stopped(mut plane: Value) -> Value {
    plane["spec"]["deployment"]["replicas"] = json!(0);
    plane
}

/// A change after others that were accepted.
#[test]
fn what_is_staged_is_nothing_to_go_on_from() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("flavor");
    let user = ns.user("alice");
    let (t, ex) = ("traditional", "expressions");
    let sequences = [
        ("RF06", vec![plane("rf06", t, true), plane("rf06", TC, true)], plane("rf06", ex, true)),
        ("RF07", vec![plane("rf07", t, true), plane("rf07", TC, true)], plane("rf07", TC, false)),
        ("restored", vec![plane("back", t, true), plane("back", TC, true)], plane("back", t, true)),
        (
            "RF03 after it",
            vec![plane("after", t, true), plane("after", TC, true), plane("after", t, true)],
            plane("after", ex, true),
        ),
        ("RF19", vec![stopped(plane("rf19", ex, false))], stopped(plane("rf19", t, false))),
    ];
    let mut met = Vec::new();
    for (title, before, after) in sequences {
        before.iter().for_each(|object| drop(user.apply(&object.to_string())));
        met.push((title.to_owned(), meets(&user, ns.name(), &after)));
    }
    goldens("flavor-staged.txt", ns.name(), &met);
}
