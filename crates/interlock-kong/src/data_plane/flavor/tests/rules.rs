use interlock_core::api::stamp::SpecHash;
use rstest::rstest;
use serde_json::{Value, json};

use super::world::{Case, config_map, data_plane, http_route, lines, plane, proxy, read, served};
use crate::data_plane::flavor::compatibility::ProducerConfiguration;
use crate::data_plane::flavor::flavor_override::{ChangeId, FlavorOverride};
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::routes::Inventory;

const NEW: &str = "kong:3.9";
const OLD: &str = "kong:3.6";

fn deployment(image: &str, flavor: &str) -> Gateway {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kong", "name": "edge"},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [proxy(image, Some(flavor))]}}},
    });
    read(&object, &[])
}

const RF03_STAGED: &str = "denied [RF03] router flavor change traditional -> expressions skips a step; change to traditional_compatible first, promote it, then change to expressions (this isolates regex-engine failures from route-format failures)";
const RF03: &str = "denied [RF03] router flavor change traditional -> expressions skips a step; change to traditional_compatible first, roll it out, then change to expressions (this isolates regex-engine failures from route-format failures)";
const RF09: &str = "warned [RF09] traditional_compatible uses Rust regular expressions: look-around and backreferences are not supported and path_handling v1 is ignored; check the preview before promoting";
const RF09_AT_ONCE: &str = "warned [RF09] traditional_compatible uses Rust regular expressions: look-around and backreferences are not supported and path_handling v1 is ignored; check the first new pod";
const RF13: &str = "warned [RF13] router flavor traditional is deprecated and will be removed in the next major release of Kong";
const RF17: &str = "warned [RF17] after all pods run expressions, restart the ingress controller so that it starts producing expression routes";
const RF04_IGNORED: &str = "denied [RF04] router flavor expressions on Kong 2.8.4 has no effect, as Kong before 3.0 has no router flavors; use Kong >= 3.4";
const RF04_UNTOLD: &str = "warned [RF04] router flavor expressions needs Kong >= 3.4, and the image does not tell its version; name it in the tag, such as kong:3.9";
const RF20_EX: &str = "warned [RF20] staged: promote to expressions only when every preview pod reports router_flavor=expressions and has received a configuration; run a separate ingress controller against the preview's admin Service";
const RF20_TC: &str = "warned [RF20] staged: promote to traditional_compatible only when every preview pod reports router_flavor=traditional_compatible and has received a configuration; run a separate ingress controller against the preview's admin Service";

#[rstest]
#[case::t_tc(NEW, "traditional", "traditional_compatible", false, &[RF09_AT_ONCE])]
#[case::t_tc_3_0("kong:3.0.0", "traditional", "traditional_compatible", false, &["denied [RF02] router flavor change traditional -> traditional_compatible cannot be applied in place on Kong 3.0: one regular expression that Rust does not know breaks the whole router of a new pod; set spec.deployment.rollout.strategy.blueGreen and follow the flavor change plan, or upgrade to Kong >= 3.2 first", RF09_AT_ONCE])]
#[case::t_tc_staged(NEW, "traditional", "traditional_compatible", true, &[RF09])]
#[case::tc_t(NEW, "traditional_compatible", "traditional", false, &[RF13])]
#[case::tc_ex_3_2("kong:3.2", "traditional_compatible", "expressions", true, &["denied [RF04] router flavor expressions on Kong 3.2 cannot route TCP, UDP, TLS or gRPC and has no HTTPS redirect; use Kong >= 3.4"])]
#[case::tc_ex_3_6(OLD, "traditional_compatible", "expressions", false, &["denied [RF02] router flavor change traditional_compatible -> expressions cannot be applied in place on Kong 3.6: new pods reject the routes that running pods use (\"paths: unknown field\") and the rollout deadlocks; set spec.deployment.rollout.strategy.blueGreen and follow the flavor change plan, or upgrade to Kong >= 3.7 first"])]
#[case::tc_ex_3_6_staged(OLD, "traditional_compatible", "expressions", true, &[RF20_EX])]
#[case::tc_ex(NEW, "traditional_compatible", "expressions", false, &[RF17])]
#[case::tc_ex_staged(NEW, "traditional_compatible", "expressions", true, &[RF17])]
#[case::ex_tc(NEW, "expressions", "traditional_compatible", false, &["denied [RF02] router flavor change expressions -> traditional_compatible cannot be applied in place on Kong 3.9: new pods reject the routes that running pods use (\"expression: unknown field\") and the rollout deadlocks; set spec.deployment.rollout.strategy.blueGreen and follow the flavor change plan"])]
#[case::ex_tc_staged(NEW, "expressions", "traditional_compatible", true, &[RF20_TC])]
#[case::t_ex(NEW, "traditional", "expressions", false, &[RF03, RF09_AT_ONCE])]
#[case::t_ex_staged(NEW, "traditional", "expressions", true, &[RF03_STAGED, RF09])]
#[case::no_version("kong:latest", "traditional_compatible", "expressions", false, &["denied [RF02] router flavor change traditional_compatible -> expressions cannot be applied in place on a Kong whose version its image does not tell: new pods reject the routes that running pods use (\"paths: unknown field\") and the rollout deadlocks; set spec.deployment.rollout.strategy.blueGreen and follow the flavor change plan, or upgrade to Kong >= 3.7 first", RF04_UNTOLD])]
#[case::no_version_staged("kong@sha256:0123", "traditional_compatible", "expressions", true, &[RF04_UNTOLD, RF20_EX])]
#[case::same(NEW, "expressions", "expressions", false, &[])]
#[case::not_a_flavor(NEW, "traditional", "expression", false, &["denied [RF01] spec.deployment.podTemplateSpec: container \"proxy\": KONG_ROUTER_FLAVOR=\"expression\" is not a Kong router flavor (traditional, traditional_compatible, expressions); Kong would not start"])]
#[case::bad_stays_editable(NEW, "expression", "expression", false, &[])]
fn changes(
    #[case] image: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] staged: bool,
    #[case] said: &[&str],
) {
    let case = Case::change(&plane(image, Some(from), staged), &plane(image, Some(to), staged));
    assert_eq!(lines(&case.judge()), said);
}

/// The typical accident: three replicas, one variable edited.
#[test]
fn the_classic_accident() {
    let case = Case::change(&deployment(NEW, "expressions"), &deployment(NEW, "traditional"));
    assert_eq!(
        lines(&case.judge()),
        [
            "denied [RF03] router flavor change expressions -> traditional skips a step; change to \
             traditional_compatible first, roll it out, then change to traditional (this isolates regex-engine \
             failures from route-format failures)",
            RF13
        ]
    );
}

#[rstest]
#[case::implicit("kong:2.8.4", None, NEW, None, &["warned [RF12] moving to Kong 3.x changes the router from the pre-3.0 engine to traditional_compatible; set KONG_ROUTER_FLAVOR=traditional to keep it"])]
#[case::kept("kong:2.8.4", None, NEW, Some("traditional"), &[])]
#[case::said("kong:2.8.4", None, NEW, Some("traditional_compatible"), &[RF09_AT_ONCE])]
#[case::down(NEW, Some("expressions"), OLD, Some("expressions"), &["warned [RF08] Kong 3.6 with expressions does not accept traditional route fields; configuration accepted by 3.9 may be rejected"])]
#[case::header_case("kong:3.5", Some("expressions"), NEW, Some("expressions"), &["warned [RF12] from Kong 3.6 on, expressions compare header values case-sensitively; check the routes that match headers"])]
#[case::path_priority("kong:3.2", None, NEW, None, &["warned [RF12] from Kong 3.3 on, each path of a route has its own priority under traditional_compatible; check routes with several paths"])]
#[case::both_versions_must_be_able(OLD, Some("traditional_compatible"), NEW, Some("expressions"), &["denied [RF02] router flavor change traditional_compatible -> expressions cannot be applied in place on Kong 3.6: new pods reject the routes that running pods use (\"paths: unknown field\") and the rollout deadlocks; set spec.deployment.rollout.strategy.blueGreen and follow the flavor change plan, or upgrade to Kong >= 3.7 first"])]
#[case::default_said(NEW, None, NEW, Some("traditional_compatible"), &[])]
#[case::to_latest(NEW, Some("expressions"), "kong:latest", Some("expressions"), &[RF04_UNTOLD])]
#[case::on_2_x("kong:2.8.4", None, "kong:2.8.4", Some("expressions"), &[RF04_IGNORED])]
#[case::another_2_x("kong:2.8.3", Some("expressions"), "kong:2.8.4", Some("expressions"), &[])]
#[case::other_on_2_x("kong:2.8.4", None, "kong:2.8.4", Some("traditional_compatible"), &[])]
#[case::to_2_x(NEW, Some("expressions"), "kong:2.8.4", Some("expressions"), &[RF04_IGNORED, "denied [RF03] router flavor change expressions -> traditional skips a step; change to traditional_compatible first, roll it out, then change to traditional (this isolates regex-engine failures from route-format failures)"])]
fn versions(
    #[case] before: &str,
    #[case] from: Option<&str>,
    #[case] after: &str,
    #[case] to: Option<&str>,
    #[case] said: &[&str],
) {
    assert_eq!(lines(&Case::change(&plane(before, from, false), &plane(after, to, false)).judge()), said);
}

/// No flavor is set before nor after: what a hop between flavors would be refused for is refused here too.
#[rstest]
#[case::look_around(
    "/~/a(?!b)",
    "denied [RF09] moving to Kong 3.x: 1 path does not compile as a Rust regular expression: Ingress kong/web rules[0].http.paths[0] (path /a(?!b): look-around)"
)]
#[case::fine("/~/a+", "warned [RF12] ")]
fn routes_of_kong_before_3_0(#[case] path: &str, #[case] said: &str) {
    let route = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"namespace": "kong", "name": "web"},
        "spec": {"rules": [{"http": {"paths": [{"path": path, "pathType": "ImplementationSpecific"}]}}]},
    });
    let case = Case {
        routes: served(&[route]),
        ..Case::change(&plane("kong:2.8.4", None, false), &plane(NEW, None, false))
    };
    let lines = lines(&case.judge());
    assert!(lines[0].starts_with(said), "{lines:?}");
}

#[rstest]
#[case::another_hop("expressions", true, &["denied [RF06] a router flavor change traditional -> traditional_compatible is staged and not promoted yet; promote it or restore the live spec before changing the flavor again"])]
#[case::set_loose("traditional_compatible", false, &["denied [RF07] removing spec.deployment.rollout now would apply the staged router flavor (traditional_compatible) directly to live pods running traditional; promote or revert first"])]
#[case::other_field("traditional_compatible", true, &[])]
#[case::restored("traditional", true, &[])]
#[case::restored_and_no_longer_staged("traditional", false, &[])]
fn staged_hops(#[case] to: &str, #[case] staged: bool, #[case] said: &[&str]) {
    let case = Case {
        stored: Some(plane(NEW, Some("traditional_compatible"), true)),
        ..Case::change(&plane(NEW, Some("traditional"), true), &plane(NEW, Some(to), staged))
    };
    assert_eq!(lines(&case.judge()), said);
}

fn routes() -> Inventory {
    let query = json!({"queryParams": [{"name": "q", "value": "x"}]});
    let pattern = json!({"path": {"type": "RegularExpression", "value": "/a(?!b)"}});
    let tls = json!({
        "apiVersion": "gateway.networking.k8s.io/v1alpha2", "kind": "TLSRoute",
        "metadata": {"namespace": "kong", "name": "tls"}, "spec": {"hostnames": ["a.io", "*.b.io"]},
    });
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"namespace": "kong", "name": "web", "annotations": {"konghq.com/path-handling": "v1"}},
        "spec": {"rules": [{"http": {"paths": [
            {"path": "/~/x\\d+$", "pathType": "ImplementationSpecific"},
            {"path": "/~/(a)\\1", "pathType": "ImplementationSpecific"},
            {"path": "/~/(", "pathType": "Prefix"},
        ]}}]},
    });
    let objects = [
        http_route("kong", "search", query.clone()),
        http_route("shop", "search", query),
        http_route("shop", "pattern", pattern),
        tls,
        ingress,
        http_route("kong", "plain", json!({"path": {"type": "PathPrefix", "value": "/"}})),
    ];
    served(&objects)
}

#[rstest]
#[case::leaving_expressions("expressions", "traditional_compatible", true, &["denied [RF05] router flavor change expressions -> traditional_compatible would drop 2 routes that need expressions: HTTPRoute kong/search rules[0].matches[0] (queryParams), and 1 more", RF20_TC])]
#[case::leaving_pcre("traditional", "traditional_compatible", false, &["denied [RF09] router flavor change traditional -> traditional_compatible: 2 paths do not compile as a Rust regular expression: Ingress kong/web rules[0].http.paths[1] (path /(a)\\1: backreferences are not supported), and 1 more"])]
#[case::to_pcre("traditional_compatible", "traditional", false, &["denied [RF05] router flavor change traditional_compatible -> traditional: traditional does not take wildcard SNIs: TLSRoute kong/tls hostnames[1] (wildcard SNI)", RF13])]
#[case::to_pcre_staged("traditional_compatible", "traditional", true, &[RF13, "warned [RF05] router flavor change traditional_compatible -> traditional: traditional does not take wildcard SNIs: TLSRoute kong/tls hostnames[1] (wildcard SNI)"])]
#[case::entering_expressions("traditional_compatible", "expressions", false, &[RF17, "warned [RF05] router flavor change traditional_compatible -> expressions: annotations that are ignored under expressions: Ingress kong/web (konghq.com/path-handling)", "warned [RF05] router flavor change traditional_compatible -> expressions: Kong may reject (Kong/kong#14252): TLSRoute kong/tls hostnames[1] (wildcard host)"])]
fn routes_that_exist(#[case] from: &str, #[case] to: &str, #[case] staged: bool, #[case] said: &[&str]) {
    let case = Case {
        routes: routes(),
        ..Case::change(&plane(NEW, Some(from), staged), &plane(NEW, Some(to), staged))
    };
    assert_eq!(lines(&case.judge()), said);
}

#[rstest]
#[case::hidden(
    served(&[]).with_unlisted(vec!["HTTPRoute (forbidden)".to_owned()]),
    "warned [RF05] router flavor change traditional -> traditional_compatible: not judged by what is not seen here: HTTPRoute (forbidden)"
)]
#[case::too_large(
    served(&[http_route("kong", "huge", json!({"path": {"type": "RegularExpression", "value": "/(\\w{200}){200}"}}))]),
    "warned [RF09] 1 regular expression of routes is too large or too many to be compiled here: HTTPRoute kong/huge rules[0].matches[0] (15 bytes)"
)]
fn what_routes_are_not_judged_by_is_said(#[case] routes: Inventory, #[case] text: &str) {
    let case = Case {
        routes,
        ..Case::change(
            &plane(NEW, Some("traditional"), false),
            &plane(NEW, Some("traditional_compatible"), false),
        )
    };
    let said = lines(&case.judge());
    assert!(said.contains(&text.to_owned()), "{said:?}");
}

/// Users who may change the gateway need not see the routes of other namespaces.
#[test]
fn routes_of_other_namespaces_are_counted() {
    let query = json!({"queryParams": [{"name": "q"}]});
    let routes = served(&[http_route("shop", "secret-name", query)]);
    let case = Case {
        routes,
        ..Case::change(
            &plane(NEW, Some("expressions"), true),
            &plane(NEW, Some("traditional_compatible"), true),
        )
    };
    assert_eq!(
        lines(&case.judge())[0],
        "denied [RF05] router flavor change expressions -> traditional_compatible would drop 1 route that needs \
         expressions: 1 in other namespaces"
    );
}

fn with_env(env: Value) -> Gateway {
    let objects = [config_map("router", json!({"flavor": "expressions"}))];
    read(&data_plane(json!({"name": "proxy", "image": NEW, "env": env}), false), &objects)
}

const FLAVOR: &str = "KONG_ROUTER_FLAVOR";

#[rstest]
#[case::by_config_map(json!([{"name": FLAVOR, "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}]), &[])]
#[case::no_key(json!([{"name": FLAVOR, "valueFrom": {"configMapKeyRef": {"name": "router", "key": "lost"}}}]), &["denied [RF10] cannot determine KONG_ROUTER_FLAVOR: ConfigMap kong/router key \"lost\" not found"])]
#[case::pod_field(json!([{"name": FLAVOR, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), &["warned [RF10] cannot determine KONG_ROUTER_FLAVOR: it comes from fieldRef metadata.name; verify it on the first new pod (`GET /` of its Admin API)"])]
#[case::twice(json!([{"name": FLAVOR, "value": "traditional"}, {"name": FLAVOR, "value": "expressions"}]), &["warned [RF16] KONG_ROUTER_FLAVOR is set more than once, to different values; the last entry counts"])]
#[case::file_too(json!([{"name": FLAVOR, "value": "expressions"}, {"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/x"}]), &["denied [RF15] KONG_ROUTER_FLAVOR and KONG_ROUTER_FLAVOR_FILE are exclusive; the Kong image exits"])]
fn forms(#[case] env: Value, #[case] said: &[&str]) {
    let new = with_env(env);
    assert_eq!(lines(&Case::change(&plane(NEW, Some("expressions"), false), &new).judge()), said);
    assert_eq!(lines(&Case::change(&new, &new).judge()), [""; 0]);
}

#[test]
fn an_outage_lets_through_what_would_deadlock() {
    let case = Case {
        stopped: true,
        ..Case::change(&deployment(NEW, "expressions"), &deployment(NEW, "traditional"))
    };
    assert_eq!(
        lines(&case.judge()),
        [
            RF13,
            "warned [RF19] expressions -> traditional (RF03) is allowed as no pod runs; start the configuration \
             producer again only when all pods run traditional"
        ]
    );
}

#[test]
fn an_outage_does_not_save_routes() {
    let case = Case {
        routes: routes(),
        stopped: true,
        ..Case::change(&deployment(NEW, "expressions"), &deployment(NEW, "traditional_compatible"))
    };
    assert!(lines(&case.judge())[0].starts_with("denied [RF05]"));
}

#[test]
fn a_configuration_without_expressions_may_leave_them() {
    let case = Case {
        configuration: ProducerConfiguration::FieldsOnly,
        ..Case::change(
            &plane(NEW, Some("expressions"), false),
            &plane(NEW, Some("traditional_compatible"), false),
        )
    };
    assert_eq!(lines(&case.judge()), [""; 0]);
}

fn change_id() -> ChangeId {
    ChangeId::of("uid", "1", &SpecHash::of("{}"))
}

fn allowance(text: &str) -> Option<FlavorOverride> {
    FlavorOverride::read(Some(&text.replace("CHANGE", &change_id().to_string())), change_id)
}

const RF03_BACK: &str = "[RF03] router flavor change expressions -> traditional skips a step; change to traditional_compatible first, roll it out, then change to traditional (this isolates regex-engine failures from route-format failures)";

#[rstest]
#[case::exact(
    "expressions->traditional@CHANGE",
    "warned",
    "warned [RF19] expressions -> traditional (RF03) is allowed by annotation interlock.dev/allow-router-flavor-change; expect downtime"
)]
#[case::used_up(
    "expressions->traditional@0123456789ab",
    "denied",
    "warned [RF19] annotation interlock.dev/allow-router-flavor-change is for another change; write \"expressions->traditional@CHANGE\" for this change"
)]
#[case::malformed(
    "yes",
    "denied",
    "warned [RF19] annotation interlock.dev/allow-router-flavor-change is FROM->TO@CHANGE, with router flavors as FROM and TO; write \"expressions->traditional@CHANGE\" for this change"
)]
fn an_override_lets_one_change_through(#[case] text: &str, #[case] verdict: &str, #[case] last: &str) {
    let case = Case {
        allowance: allowance(text),
        ..Case::change(&deployment(NEW, "expressions"), &deployment(NEW, "traditional"))
    };
    let mut said = lines(&case.judge());
    said.sort();
    let mut wanted = vec![
        format!("{verdict} {RF03_BACK}"),
        RF13.to_owned(),
        last.replace("traditional@CHANGE", &format!("traditional@{}", change_id())),
    ];
    wanted.sort();
    assert_eq!(said, wanted);
}

#[test]
fn an_override_that_nobody_guards_lets_nothing_through() {
    let exact = allowance("expressions->traditional@CHANGE").unwrap();
    let case = Case {
        allowance: Some(exact.guarded(Err("its policy is not there".to_owned()))),
        ..Case::change(&deployment(NEW, "expressions"), &deployment(NEW, "traditional"))
    };
    let said = lines(&case.judge());
    assert!(said[0].starts_with("denied [RF03]"), "{said:?}");
    let why = "warned [RF19] annotation interlock.dev/allow-router-flavor-change counts for nothing now: its policy is not there";
    assert!(said.contains(&why.to_owned()), "{said:?}");
}

/// A pod that would not start, or a change that is allowed anyway, needs no override.
#[rstest]
#[case::no_flavor("traditional", "x", &["denied [RF01]"])]
#[case::allowed("traditional", "traditional_compatible", &["warned [RF09]"])]
fn an_override_is_silent_elsewhere(#[case] from: &str, #[case] to: &str, #[case] said: &[&str]) {
    let case = Case {
        allowance: allowance("traditional->expressions@CHANGE"),
        ..Case::change(&plane(NEW, Some(from), false), &plane(NEW, Some(to), false))
    };
    let found = lines(&case.judge());
    assert_eq!(found.len(), said.len(), "{found:?}");
    assert!(found.iter().zip(said).all(|(found, said)| found.starts_with(said)), "{found:?}");
}

/// An override may apply a staged flavor to live pods, or stage a second hop.
#[rstest]
#[case::another_hop("expressions", true, "traditional->expressions@CHANGE", &["RF06", "RF19"])]
#[case::set_loose("traditional_compatible", false, "traditional->traditional_compatible@CHANGE", &["RF07", "RF19"])]
fn an_override_of_what_is_staged(
    #[case] to: &str,
    #[case] staged: bool,
    #[case] text: &str,
    #[case] warned: &[&str],
) {
    let case = Case {
        stored: Some(plane(NEW, Some("traditional_compatible"), true)),
        allowance: allowance(text),
        ..Case::change(&plane(NEW, Some("traditional"), true), &plane(NEW, Some(to), staged))
    };
    let findings = case.judge();
    assert_eq!(findings.denied, []);
    let ids: Vec<&str> = findings.warned.iter().map(|finding| finding.rule.id()).collect();
    assert_eq!(ids, warned);
}
