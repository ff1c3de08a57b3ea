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
    let found = cluster.ancestors("rlp-4");
    assert_eq!(found.iter().filter(|own| own.contains(" Accepted ")).count(), 16, "{found:#?}");
    assert!(found.contains(&"Gateway/more-15 Aggregated True Aggregated".to_owned()), "{found:#?}");
}

/// Kuadrant's definition prunes them, and a policy comes to rest all the same.
#[test]
fn what_a_definition_prunes_is_not_written_again_and_again() {
    let mut cluster = example();
    cluster.prunes_ancestors = true;
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", limits(&["other"])));
    cluster.settle();
    assert!(cluster.ancestors("rlp-2").is_empty());
    cluster.written.clear();
    cluster.wake("RateLimitPolicy", "rlp-2");
    assert!(cluster.written.is_empty(), "{:?}", cluster.written);
}
