//! The content of a status, and when it changes.

use interlock_core::api::interlock::{Labels, Rules};
use jiff::Timestamp;
use rstest::rstest;
use serde_json::json;

use super::policy_binding::left_out;
use super::status::{self, Managed, StatusInput};
use super::*;
use crate::cluster::crds::Absence;
use crate::cluster::supervisor::{
    ApiVerb, CapabilityPhase, CapabilityStatus, Epoch, KindStatus, Missing, Mode, NotReadyReason,
    RefusedKind, UnavailableAnswer, WatchState as Seeing,
};

const SINCE: i64 = 1_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn standing(name: &'static str, state: CapabilityPhase) -> CapabilityStatus {
    CapabilityStatus {
        name,
        state,
        mode: Mode::Auto,
        since: at(SINCE),
        answer: UnavailableAnswer::Judge,
        kinds: Vec::new(),
    }
}

fn snapshot(instances: CapabilityPhase, routes: CapabilityPhase) -> CapabilitySnapshot {
    CapabilitySnapshot { capabilities: vec![standing("instances", instances), standing("routes", routes)] }
}

fn object(generation: i64) -> Interlock {
    let mut object = Interlock::new("default", interlock::InterlockSpec::default());
    object.metadata.generation = Some(generation);
    object
}

fn told(snapshot: &CapabilitySnapshot, now: i64) -> StatusInput<'_> {
    StatusInput {
        snapshot,
        settable: &["instances", "routes"],
        essential: &["instances"],
        finalizes: "instances",
        instances: 3,
        problems: &[],
        lagging: None,
        managed: Managed { instances: 3, to_reconcile: 1 },
        now: at(now),
    }
}

/// `type status reason` of every condition.
fn said(status: &InterlockStatus) -> Vec<String> {
    status.conditions.iter().map(|c| format!("{} {} {}", c.type_, c.status, c.reason)).collect()
}

fn message<'a>(status: &'a InterlockStatus, type_: &str) -> &'a str {
    &status.conditions.iter().find(|c| c.type_ == type_).unwrap().message
}

fn running() -> CapabilityPhase {
    CapabilityPhase::Running(Epoch(1))
}

fn missing() -> CapabilityPhase {
    CapabilityPhase::Waiting(vec![Missing {
        name: "instances.kudo.dev".to_owned(),
        why: NotReadyReason::Absent(Absence::Missing),
    }])
}

#[rstest]
#[case::all_run(running(), running(), ["Ready True Running", "InstancesReady True Running", "RoutesReady True Running"])]
#[case::off(
    running(),
    CapabilityPhase::Disabled,
    ["Ready True Running", "InstancesReady True Running", "RoutesReady False Disabled"]
)]
#[case::missing(
    missing(),
    running(),
    ["Ready False CRDMissing", "InstancesReady False CRDMissing", "RoutesReady True Running"]
)]
#[case::forbidden(
    CapabilityPhase::Forbidden(RefusedKind { name: "instances.kudo.dev".to_owned(), verb: ApiVerb::List }),
    running(),
    ["Ready False Forbidden", "InstancesReady False Forbidden", "RoutesReady True Running"]
)]
#[case::starting(
    CapabilityPhase::Starting(Epoch(2)),
    running(),
    ["Ready Unknown Syncing", "InstancesReady Unknown Syncing", "RoutesReady True Running"]
)]
#[case::unknown(
    CapabilityPhase::Unknown(None),
    running(),
    ["Ready Unknown DiscoveryUnknown", "InstancesReady Unknown DiscoveryUnknown", "RoutesReady True Running"]
)]
fn every_capability_has_a_condition(
    #[case] instances: CapabilityPhase,
    #[case] routes: CapabilityPhase,
    #[case] want: [&str; 3],
) {
    let snapshot = snapshot(instances, routes);
    let status = status::honoured(&object(3), &told(&snapshot, SINCE + 60)).status;
    let found = said(&status);
    assert_eq!([&found[0], &found[3], &found[4]], want);
    assert_eq!(found[1..3], ["Accepted True Accepted", "RulesApplied True Applied"]);
    assert_eq!(status.observed_generation, Some(3));
    assert!(status.conditions.iter().all(|c| c.observed_generation == Some(3) && !c.message.is_empty()));
}

#[test]
fn names_and_verbs_are_exact() {
    let forbidden = CapabilityPhase::Forbidden(RefusedKind {
        name: "instances.kudo.dev".to_owned(),
        verb: ApiVerb::Watch,
    });
    let mut snapshot = snapshot(forbidden, running());
    snapshot.capabilities[1].kinds = vec![KindStatus {
        name: "httproutes.gateway.networking.k8s.io".to_owned(),
        required: false,
        terminating: false,
        watch_state: Seeing::Absent(Absence::Missing),
    }];
    let status = status::honoured(&object(1), &told(&snapshot, SINCE)).status;
    assert!(message(&status, "InstancesReady").contains("may not watch instances.kudo.dev"));
    assert!(message(&status, "Ready").starts_with("InstancesReady: "));
    assert!(message(&status, "RoutesReady").ends_with("httproutes.gateway.networking.k8s.io"));
}

#[rstest]
#[case::watched(Seeing::Synced, "")]
#[case::missing(Seeing::Absent(Absence::Missing), "; not served, and not needed: a.io")]
#[case::not_established(
    Seeing::Absent(Absence::NotEstablished("names are taken".to_owned())),
    "; a.io is not established: names are taken"
)]
#[case::other_versions(
    Seeing::Absent(Absence::NotServed { wanted: vec!["v1".to_owned()], served: vec!["v2".to_owned()] }),
    "; a.io serves v2, not v1"
)]
#[case::other_scope(Seeing::Absent(Absence::OtherScope), "; a.io has the wrong scope")]
#[case::refused(Seeing::Forbidden(ApiVerb::Watch), "; this process may not watch a.io")]
#[case::broken(Seeing::Broken("500".to_owned()), "; a.io cannot be read: 500")]
#[case::listing(Seeing::Listing, "; a.io is being listed")]
fn what_a_capability_goes_without_is_told(#[case] watch_state: Seeing, #[case] text: &str) {
    let mut snapshot = snapshot(running(), running());
    snapshot.capabilities[1].kinds =
        vec![KindStatus { name: "a.io".to_owned(), required: false, terminating: false, watch_state }];
    let status = status::honoured(&object(1), &told(&snapshot, SINCE + 60)).status;
    assert_eq!(message(&status, "RoutesReady"), format!("it runs{text}"));
}

/// It requires none of its kinds, so it runs at once, and lists them all.
#[test]
fn a_restart_of_what_needs_nothing_flips_nothing() {
    let mut object = object(1);
    object.status = Some(status::honoured(&object, &told(&snapshot(running(), running()), SINCE)).status);
    let mut restarted = snapshot(running(), running());
    let kind = KindStatus {
        name: "a.io".to_owned(),
        required: false,
        terminating: false,
        watch_state: Seeing::Listing,
    };
    restarted.capabilities[1].kinds = vec![kind];
    let look = status::honoured(&object, &told(&restarted, SINCE + 1));
    assert_eq!((Some(look.status), look.again), (object.status, Some(at(SINCE + 5))));
}

/// Switched off by the user: no fault.
#[test]
fn what_is_switched_off_is_not_waited_for() {
    let mut snapshot = snapshot(CapabilityPhase::Disabled, running());
    snapshot.capabilities[0].mode = Mode::Off;
    let status = status::honoured(&object(1), &told(&snapshot, SINCE)).status;
    assert_eq!(said(&status)[0], "Ready True Running");
    assert!(message(&status, "InstancesReady").contains("spec.capabilities.instances.mode is off"));
}

/// The count stays from when the Instances were known; no read repeats it.
#[test]
fn what_is_switched_off_says_what_it_holds() {
    let mut known = snapshot(CapabilityPhase::Disabled, CapabilityPhase::Disabled);
    let instances = |watch_state| KindStatus {
        name: "instances.kudo.dev".to_owned(),
        required: true,
        terminating: false,
        watch_state,
    };
    known.capabilities[0].kinds = vec![instances(Seeing::Synced)];
    let mut forgotten = known.clone();
    forgotten.capabilities[0].kinds = vec![instances(Seeing::Listing)];
    let mut object = object(1);
    let first = status::honoured(&object, &told(&forgotten, SINCE + 60)).status;
    let held = "with the finalizer kudo.dev.instance.cleanup stay when they are deleted, until it is auto again or \
                their definition is deleted";
    let off = |name: &str| format!("spec.capabilities.{name}.mode is off");
    assert_eq!(message(&first, "InstancesReady"), format!("{}; Instances {held}", off("instances")));
    assert_eq!(message(&first, "RoutesReady"), off("routes"));
    object.status = Some(status::honoured(&object, &told(&known, SINCE + 60)).status);
    let counted = format!("{}; of 3 Instances those {held}", off("instances"));
    assert_eq!(message(object.status.as_ref().unwrap(), "InstancesReady"), counted);
    let later =
        status::honoured(&object, &StatusInput { instances: 0, ..told(&forgotten, SINCE + 600) }).status;
    assert_eq!(message(&later, "InstancesReady"), counted);
}

/// A restart of the process, or of a watch, changes no condition.
#[test]
fn what_passes_is_told_when_it_lasts() {
    let calm = snapshot(running(), running());
    let mut object = object(1);
    let first = status::honoured(&object, &told(&calm, SINCE + 60));
    assert_eq!(first.again, None);
    object.status = Some(first.status.clone());
    let restarted = snapshot(CapabilityPhase::Starting(Epoch(9)), CapabilityPhase::Unknown(None));
    let look = status::honoured(&object, &told(&restarted, SINCE + 1));
    assert_eq!(look.status, first.status, "no write");
    assert_eq!(look.again, Some(at(SINCE + 5)));
    let look = status::honoured(&object, &told(&restarted, SINCE + 5));
    assert_eq!(look.again, None);
    assert_eq!(said(&look.status)[0], "Ready Unknown Syncing");
}

/// Transition times change only with the status.
#[test]
fn transition_times() {
    let times = |status: &InterlockStatus| -> Vec<i64> {
        status.conditions.iter().map(|c| c.last_transition_time.0.as_second()).collect()
    };
    let mut object = object(1);
    let first = status::honoured(&object, &told(&snapshot(running(), missing()), 2_000)).status;
    assert_eq!(times(&first), [2_000; 5]);
    object.status = Some(first.clone());
    let again = status::honoured(&object, &told(&snapshot(running(), missing()), 3_000)).status;
    assert_eq!(again, first, "nothing new, nothing written");
    let off = status::honoured(&object, &told(&snapshot(running(), CapabilityPhase::Disabled), 3_000)).status;
    assert_eq!(times(&off), [2_000; 5], "another reason of the same status");
    let runs = status::honoured(&object, &told(&snapshot(running(), running()), 3_000)).status;
    assert_eq!(times(&runs), [2_000, 2_000, 2_000, 2_000, 3_000]);
}

#[test]
fn conditions_of_others_stay_and_old_ones_of_ours_go() {
    let mut object = object(1);
    let other = json!({
        "type": "Reviewed", "status": "True", "reason": "ByHand", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
    });
    let mut gone = other.clone();
    gone["type"] = json!("PoliciesReady");
    object.status = serde_json::from_value(json!({"conditions": [other, gone]})).unwrap();
    let status = status::honoured(&object, &told(&snapshot(running(), running()), 2_000)).status;
    let types: Vec<&str> = status.conditions.iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "Accepted", "RulesApplied", "InstancesReady", "RoutesReady", "Reviewed"]);
}

#[test]
fn what_is_not_honoured_is_named() {
    let problems =
        [SettingProblem { field: "spec.rules[0].group".to_owned(), problem: "is no group".to_owned() }];
    let snapshot = snapshot(running(), running());
    let told = StatusInput { problems: &problems, lagging: Some("may not"), ..told(&snapshot, 2_000) };
    let status = status::honoured(&object(1), &told).status;
    assert_eq!(
        said(&status)[..3],
        ["Ready True Running", "Accepted False Invalid", "RulesApplied False PolicyNotWritten"]
    );
    assert!(message(&status, "Accepted").contains("spec.rules[0].group: is no group"));
    let mut other = object(1);
    other.metadata.name = Some("mine".to_owned());
    let status = status::ignored(&other, at(2_000));
    assert_eq!(
        said(&status),
        ["Ready False NotHonoured", "Accepted False NotHonoured", "Stalled True NotHonoured"]
    );
    assert!(message(&status, "Ready").contains("delete mine"));
}

fn waiting(why: NotReadyReason) -> CapabilityPhase {
    CapabilityPhase::Waiting(vec![Missing { name: "instances.kudo.dev".to_owned(), why }])
}

fn refused() -> CapabilityPhase {
    CapabilityPhase::Forbidden(RefusedKind { name: "instances.kudo.dev".to_owned(), verb: ApiVerb::List })
}

/// `Reconciling` or `Stalled`, which kstatus reads as InProgress and Failed; Current without either.
#[rstest]
#[case::runs(running(), None)]
#[case::lists(CapabilityPhase::Starting(Epoch(2)), Some("Reconciling True Syncing"))]
#[case::drains(CapabilityPhase::Draining(Epoch(2)), Some("Reconciling True Draining"))]
#[case::unknown(CapabilityPhase::Unknown(None), Some("Reconciling True DiscoveryUnknown"))]
#[case::definition_goes(waiting(NotReadyReason::Terminating), Some("Reconciling True CRDTerminating"))]
#[case::no_definition(missing(), Some("Stalled True CRDMissing"))]
#[case::by_hand(waiting(NotReadyReason::Manual), Some("Stalled True Manual"))]
#[case::forbidden(refused(), Some("Stalled True Forbidden"))]
#[case::slow(CapabilityPhase::Degraded(Epoch(2), "it was not listed".to_owned()), Some("Stalled True SyncTimeout"))]
#[case::old(
    CapabilityPhase::Outdated(Epoch(2), "apply the definitions".to_owned()),
    Some("Stalled True DefinitionOutdated")
)]
fn a_required_capability_is_waited_for_or_needs_a_person(
    #[case] instances: CapabilityPhase,
    #[case] want: Option<&str>,
) {
    let snapshot = snapshot(instances, refused());
    let status = status::honoured(&object(1), &told(&snapshot, SINCE + 60)).status;
    let found: Vec<String> = said(&status)
        .into_iter()
        .filter(|said| said.starts_with("Reconciling") || said.starts_with("Stalled"))
        .collect();
    assert_eq!(found, Vec::from_iter(want.map(str::to_owned)));
    let type_ = want.and_then(|want| want.split(' ').next());
    if let Some(type_) = type_ {
        assert_eq!(message(&status, type_), message(&status, "Ready"));
    }
}

#[test]
fn settings_that_are_not_honoured_need_a_person() {
    let problems =
        [SettingProblem { field: "spec.rules[0].group".to_owned(), problem: "is no group".to_owned() }];
    let snapshot = snapshot(CapabilityPhase::Starting(Epoch(2)), running());
    let told = StatusInput { problems: &problems, lagging: Some("may not"), ..told(&snapshot, 2_000) };
    let status = status::honoured(&object(1), &told).status;
    assert_eq!(said(&status).last().unwrap(), "Stalled True Invalid");
    assert!(message(&status, "Stalled").contains("spec.rules[0].group: is no group"));
    let mut going = object(1);
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(1_500)));
    let status = status::honoured(&going, &told).status;
    assert!(!said(&status).iter().any(|said| said.starts_with("Stalled")), "kstatus reads Terminating");
}

/// A write is repeated for two minutes before a person is asked for help.
#[test]
fn policies_that_lag_for_long_need_a_person() {
    let snapshot = snapshot(running(), running());
    let lags = |now: i64| StatusInput { lagging: Some("may not patch"), ..told(&snapshot, now) };
    let mut object = object(1);
    let mut look = |now: i64, lags: StatusInput<'_>| {
        let look = status::honoured(&object, &lags);
        object.status = Some(look.status.clone());
        (said(&look.status).last().unwrap().clone(), look.again, now)
    };
    let reconciling = "Reconciling True PolicyNotWritten".to_owned();
    assert_eq!(look(2_000, lags(2_000)), (reconciling.clone(), Some(at(2_120)), 2_000));
    assert_eq!(look(2_119, lags(2_119)), (reconciling, Some(at(2_120)), 2_119));
    assert_eq!(look(2_120, lags(2_120)), ("Stalled True PolicyNotWritten".to_owned(), None, 2_120));
    assert_eq!(look(2_130, told(&snapshot, 2_130)), ("RoutesReady True Running".to_owned(), None, 2_130));
}

/// From its deletion on, its settings no longer apply, however long it remains.
#[test]
fn what_goes_on_without_a_deleted_object_is_told() {
    let mut object = object(1);
    object.spec.rules = serde_json::from_value(json!([{"group": "freeze", "action": "Warn"}])).unwrap();
    let settings =
        |object: &Interlock| read(Some(&KnownInterlock::Read(Arc::new(object.clone()))), crate::kinds::all());
    assert!(!settings(&object).rules.is_empty());
    object.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(1_500)));
    assert!(settings(&object).rules.is_empty());
    let snapshot = snapshot(running(), running());
    let status = status::honoured(&object, &told(&snapshot, 2_000)).status;
    assert_eq!(
        said(&status)[..4],
        [
            "Ready True Running",
            "Accepted False Deleting",
            "RulesApplied True Applied",
            "Deleting True StillManaged"
        ]
    );
    let text = message(&status, "Deleting");
    assert!(text.starts_with("3 Instances are still managed, of which 1 have something to do"), "{text}");
    assert!(text.contains("go on with the defaults: every rule denies again"), "{text}");
    let told = StatusInput { managed: Managed { instances: 0, to_reconcile: 0 }, ..told(&snapshot, 2_000) };
    let status = status::honoured(&object, &told).status;
    assert_eq!(said(&status)[3], "Deleting True NothingManaged");
}

#[test]
fn the_second_layer_leaves_out_what_does_not_deny() {
    let labels = |tier: &str| Labels::from([("tier".to_owned(), tier.to_owned())]);
    let namespaces = [("a".to_owned(), labels("dev")), ("b".to_owned(), labels("prod"))];
    let left_out = |rules: serde_json::Value| {
        let (rules, problems) = Rules::read(&serde_json::from_value::<Vec<_>>(rules).unwrap());
        assert_eq!(problems, []);
        left_out(&rules, namespaces.iter().map(|(name, labels)| (name, labels)))
    };
    let dev = json!({"matchLabels": {"tier": "dev"}});
    let named =
        |names: &[&str]| ExcludedNamespaces::Named(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(left_out(json!([])), named(&[]));
    assert_eq!(
        left_out(json!([{"group": "freeze", "action": "Warn", "namespaceSelector": dev}])),
        named(&["a"])
    );
    assert_eq!(left_out(json!([{"group": "parameters", "action": "Off"}])), named(&[]));
    assert_eq!(left_out(json!([{"group": "freeze", "action": "Off"}])), ExcludedNamespaces::All);
    let but_dev = json!([
        {"group": "freeze", "action": "Deny", "namespaceSelector": dev}, {"group": "freeze", "action": "Warn"},
    ]);
    assert_eq!(left_out(but_dev), named(&["b"]));
}
