//! Conditions by ancestor (GEP-713).

use super::*;

#[test]
fn each_gateway_of_a_policy_has_its_conditions() {
    let mut cluster = example();
    let of = |name: &str| format!("Gateway/{name} Accepted True Accepted");
    let programmed = |name: &str, how: &str| format!("Gateway/{name} Programmed {how}");
    assert_eq!(cluster.ancestors("rlp-1"), [of("gw-1"), programmed("gw-1", "True PartiallyProgrammed")]);
    let both = [
        of("gw-1"),
        programmed("gw-1", "True Programmed"),
        of("gw-2"),
        programmed("gw-2", "True Programmed"),
    ];
    assert_eq!(cluster.ancestors("rlp-3"), both);
    // A route that moves takes its policies along.
    cluster.put(route("route-4", &["gw-1"]));
    cluster.settle();
    assert_eq!(cluster.ancestors("rlp-4"), [of("gw-1"), programmed("gw-1", "True Programmed")]);
    // What one Gateway lacks is said of it alone.
    cluster.put(policy("rlp-9", "HTTPRoute/none", limits(&["own"])));
    cluster.settle();
    assert_eq!(cluster.ancestors("rlp-9"), ["HTTPRoute/none Accepted False TargetNotFound"]);
    let lacks = json!({"limits": {"own": {"rates": [{"limit": 5, "window": "1m"}], "when": [
        {"predicate": "request.host.lowerAscii() == 'a'"},
    ]}}});
    cluster.put(policy("rlp-4", "HTTPRoute/route-4", lacks));
    cluster.settle();
    assert_eq!(cluster.ancestors("rlp-4"), [of("gw-1"), programmed("gw-1", "False Unsupported")]);
}

/// Entries of other controllers stay; there is room for sixteen.
#[test]
fn entries_of_others_stay() {
    let mut cluster = example();
    let theirs = json!({"ancestorRef": {"kind": "Gateway", "name": "other"}, "controllerName": "example.org/a", "conditions": []});
    let theirs_alone = json!([theirs]);
    cluster.edit("RateLimitPolicy rlp-2", |object| object["status"]["ancestors"] = theirs_alone);
    cluster.settle();
    assert_eq!(cluster.ancestors("rlp-2").len(), 2);
    cluster.edit("RateLimitPolicy rlp-2", |object| {
        let all = object["status"]["ancestors"].as_array().unwrap();
        assert_eq!((all.len(), &all[0]), (2, &theirs), "{all:#?}");
    });
    for n in 0..20 {
        cluster.put(gateway(&format!("more-{n:02}")));
    }
    let names: Vec<String> = (0..20).map(|n| format!("more-{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    cluster.put(route("route-4", &names));
    cluster.settle();
    let count = |cluster: &Cluster, what: &str| {
        cluster.ancestors("rlp-4").iter().filter(|own| own.contains(what)).count()
    };
    assert_eq!((count(&cluster, " Accepted "), count(&cluster, "more-15 Aggregated ")), (16, 1));
    // There is room for one less; in whatever order they stand, they are written once.
    cluster.edit("RateLimitPolicy rlp-4", |object| {
        object["status"]["ancestors"].as_array_mut().unwrap().push(theirs.clone());
    });
    cluster.settle();
    assert_eq!((count(&cluster, " Accepted "), count(&cluster, "more-14 Aggregated ")), (15, 1));
    cluster.edit("RateLimitPolicy rlp-4", |object| {
        object["status"]["ancestors"].as_array_mut().unwrap().rotate_left(1);
    });
    cluster.written.clear();
    cluster.wake("RateLimitPolicy", "rlp-4");
    assert!(cluster.written.is_empty(), "{:?}", cluster.written);
}

/// A Gateway whose outputs are on their way holds nothing up of what is said of another one.
#[test]
fn a_gateway_that_waits_is_waited_for_alone() {
    let mut cluster = example();
    cluster.put(json!({
        "apiVersion": "limitador.kuadrant.io/v1alpha1", "kind": "Limitador",
        "metadata": {"namespace": "system", "name": "own"}, "spec": {},
    }));
    let gateways = json!([{"namespace": "shop", "name": "gw-2"}]);
    cluster.put(settings(json!([
        {"namespace": "system", "configMap": "limits", "host": "limitador.system"},
        {"namespace": "system", "limitador": "own", "gateways": gateways},
    ])));
    cluster.put(policy("rlp-1", "Gateway/gw-1", json!({"overrides": limits(&["all"])})));
    cluster.settle();
    let found = cluster.ancestors("rlp-3");
    for own in ["Gateway/gw-1 Programmed False Overridden", "Gateway/gw-2 Programmed True Programmed"] {
        assert!(found.contains(&own.to_owned()), "{found:#?}");
    }
}

/// Of what is not read, nothing is known.
#[test]
fn a_kind_that_is_not_read_takes_no_entry_away() {
    let mut cluster = example();
    let before = cluster.ancestors("rlp-2");
    cluster.unread = Some("GatewayClass");
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", limits(&["other"])));
    cluster.settle();
    assert!(cluster.condition("rlp-2", "Enforced").contains("to sync: ["));
    assert_eq!(cluster.ancestors("rlp-2"), before);
}

/// Kuadrant's definition prunes them, and a policy comes to rest all the same.
#[test]
fn what_a_definition_prunes_is_not_written_again_and_again() {
    let mut cluster = example();
    cluster.prunes_ancestors = true;
    let strip = |cluster: &mut Cluster, name: &str| {
        cluster.edit(&format!("RateLimitPolicy {name}"), |object| {
            object["status"].as_object_mut().unwrap().remove("ancestors");
        });
    };
    // It prunes what is read, too.
    (1..=4).for_each(|n| strip(&mut cluster, &format!("rlp-{n}")));
    cluster.settle();
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", limits(&["other"])));
    cluster.settle();
    assert!(cluster.ancestors("rlp-2").is_empty());
    cluster.written.clear();
    (1..=4).for_each(|n| cluster.wake("RateLimitPolicy", &format!("rlp-{n}")));
    assert!(cluster.written.is_empty(), "{:?}", cluster.written);

    // Another definition comes: who changes shows it, and the others follow.
    cluster.prunes_ancestors = false;
    cluster.put(policy("rlp-4", "HTTPRoute/route-4", limits(&["other"])));
    cluster.settle();
    cluster.wake("RateLimitPolicy", "rlp-2");
    assert_eq!(cluster.ancestors("rlp-2").len(), 2);
    // What others take away is put back.
    strip(&mut cluster, "rlp-2");
    cluster.wake("RateLimitPolicy", "rlp-2");
    assert_eq!(cluster.ancestors("rlp-2").len(), 2);
}
