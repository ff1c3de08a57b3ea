//! The table of moves, and a walk along whole changes.

use interlock_core::api::meta;
use interlock_core::api::stamp::SpecHash;
use rstest::rstest;
use serde_json::{Value, json};

use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::Flavor::{Expressions as EX, Traditional as T, TraditionalCompatible as TC};
use crate::data_plane::flavor::sources::Nothing;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::flavor_change::facts::{FlavorChangeFacts, StagedFlavor};
use crate::data_plane::rollout::flavor_change::next_move::{
    AwaitedState, FlavorHop, FlavorMove, is_stopped_in_vain, next_move,
};
use crate::data_plane::rollout::flavor_change::producer::ProducerState;
use crate::data_plane::rollout::flavor_change::refusal::FlavorChangeRefusal;
use crate::data_plane::rollout::report::RolloutPhase;
use crate::data_plane::rollout::staged_hash;

const READY: ProducerState = ProducerState::Running { is_ready: true, is_stale: false };

fn hop(from: Flavor, to: Flavor) -> FlavorHop {
    FlavorHop { from, to }
}

fn staged(flavor: Flavor) -> StagedFlavor {
    StagedFlavor::Flavor(flavor)
}

fn other() -> StagedFlavor {
    StagedFlavor::Other("spec.x".to_owned())
}

/// From `live` to `to`.
fn facts(live: Flavor, to: Flavor, staged: StagedFlavor, phase: RolloutPhase) -> FlavorChangeFacts {
    let message = "no".to_owned();
    FlavorChangeFacts {
        to,
        live,
        staged,
        phase,
        message,
        requested: false,
        producer: ProducerState::NotGiven,
    }
}

fn requested(facts: FlavorChangeFacts) -> FlavorChangeFacts {
    FlavorChangeFacts { requested: true, ..facts }
}

fn with(producer: ProducerState, facts: FlavorChangeFacts) -> FlavorChangeFacts {
    FlavorChangeFacts { producer, ..facts }
}

use FlavorMove::{Await, Promote, Refuse, Stage};
use RolloutPhase::{
    AwaitingPromotion, Grace as GracePeriod, Idle as Rests, Promoting, Staging, Unreported as Unseen,
};
use StagedFlavor::Nothing as NOTHING;

#[rstest]
// One hop at a time, there and back.
#[case::first(facts(T, EX, NOTHING, Rests), Stage(hop(T, TC)))]
#[case::second(facts(TC, EX, NOTHING, Rests), Stage(hop(TC, EX)))]
#[case::back(facts(EX, T, NOTHING, Rests), Stage(hop(EX, TC)))]
#[case::there(facts(EX, EX, NOTHING, Rests), FlavorMove::Done)]
#[case::there_in_the_grace_period(facts(EX, EX, NOTHING, GracePeriod), FlavorMove::Done)]
#[case::former_pods(facts(TC, EX, NOTHING, GracePeriod), Await(AwaitedState::GracePeriod))]
// Not before the controller has reported on this spec, also where the wanted flavor is live.
#[case::unseen(facts(T, EX, NOTHING, Unseen), Await(AwaitedState::Report))]
#[case::unseen_at_the_end(facts(EX, EX, NOTHING, Unseen), Await(AwaitedState::Report))]
#[case::staging_given_up(facts(T, EX, NOTHING, Staging), Await(AwaitedState::Report))]
// A staged hop is waited for, then promoted, then waited for.
#[case::staged_unseen(facts(T, EX, staged(TC), Unseen), Await(AwaitedState::Preview(hop(T, TC))))]
#[case::staged_at_rest(facts(T, EX, staged(TC), Rests), Await(AwaitedState::Preview(hop(T, TC))))]
#[case::staging(facts(T, EX, staged(TC), Staging), Await(AwaitedState::Preview(hop(T, TC))))]
#[case::staging_and_requested(
    requested(facts(T, EX, staged(TC), Staging)),
    Await(AwaitedState::Preview(hop(T, TC)))
)]
#[case::ready(facts(T, EX, staged(TC), AwaitingPromotion), Promote(hop(T, TC)))]
#[case::requested(requested(facts(T, EX, staged(TC), AwaitingPromotion)), Await(AwaitedState::Promotion))]
#[case::promoting(requested(facts(T, EX, staged(TC), Promoting)), Await(AwaitedState::Promotion))]
#[case::committed(facts(TC, EX, NOTHING, Promoting), Await(AwaitedState::Promotion))]
#[case::committed_at_the_end(facts(EX, EX, NOTHING, Promoting), Await(AwaitedState::Promotion))]
// What another user has staged stops it, whatever the flavor.
#[case::other(facts(T, EX, other(), Staging), Refuse(FlavorChangeRefusal::OtherStaged("spec.x".to_owned())))]
#[case::other_at_the_end(facts(EX, EX, other(), AwaitingPromotion), Refuse(FlavorChangeRefusal::OtherStaged("spec.x".to_owned())))]
#[case::skips(facts(T, EX, staged(EX), Staging), Refuse(FlavorChangeRefusal::OtherFlavor(EX)))]
#[case::away(facts(TC, EX, staged(T), AwaitingPromotion), Refuse(FlavorChangeRefusal::OtherFlavor(T)))]
#[case::away_from_the_end(facts(TC, TC, staged(EX), Staging), Refuse(FlavorChangeRefusal::OtherFlavor(EX)))]
#[case::failed(
    facts(T, EX, staged(TC), RolloutPhase::Failed),
    Refuse(FlavorChangeRefusal::Failed("no".to_owned()))
)]
#[case::in_place(facts(T, EX, NOTHING, RolloutPhase::InPlace), Refuse(FlavorChangeRefusal::InPlace))]
#[case::in_place_there(facts(EX, EX, NOTHING, RolloutPhase::InPlace), FlavorMove::Done)]
// The producer: only where the dialect changes.
#[case::same_dialect(with(READY, facts(T, EX, staged(TC), AwaitingPromotion)), Promote(hop(T, TC)))]
#[case::stopped_first(with(READY, facts(TC, EX, staged(EX), AwaitingPromotion)), FlavorMove::StopProducer)]
#[case::stopped_first_back(
    with(READY, facts(EX, T, staged(TC), AwaitingPromotion)),
    FlavorMove::StopProducer
)]
#[case::not_before_the_preview_is_ready(
    with(READY, facts(TC, EX, staged(EX), Staging)),
    Await(AwaitedState::Preview(hop(TC, EX)))
)]
#[case::started_for_a_preview_that_lacks_something_again(
    with(ProducerState::Stopped, requested(facts(TC, EX, staged(EX), Staging))),
    FlavorMove::StartProducer
)]
#[case::stopping(
    with(ProducerState::Stopping, facts(TC, EX, staged(EX), AwaitingPromotion)),
    Await(AwaitedState::ProducerStopped)
)]
#[case::stopped(
    with(ProducerState::Stopped, facts(TC, EX, staged(EX), AwaitingPromotion)),
    Promote(hop(TC, EX))
)]
#[case::stopped_and_requested(
    requested(with(ProducerState::Stopped, facts(TC, EX, staged(EX), AwaitingPromotion))),
    Await(AwaitedState::Promotion)
)]
#[case::not_while_promoting(
    with(ProducerState::Stopped, facts(EX, EX, NOTHING, Promoting)),
    Await(AwaitedState::Promotion)
)]
#[case::started_after_it(
    with(ProducerState::Stopped, facts(EX, EX, NOTHING, GracePeriod)),
    FlavorMove::StartProducer
)]
#[case::started_where_it_was_left(
    with(ProducerState::Stopped, facts(TC, EX, NOTHING, Rests)),
    FlavorMove::StartProducer
)]
#[case::left_stopping(
    with(ProducerState::Stopping, facts(EX, EX, NOTHING, Rests)),
    Await(AwaitedState::ProducerStopped)
)]
#[case::promoted_by_others(
    with(ProducerState::Running { is_ready: true, is_stale: true }, facts(EX, EX, NOTHING, GracePeriod)),
    FlavorMove::RestartProducer
)]
#[case::not_ready(
    with(ProducerState::Running { is_ready: false, is_stale: false }, facts(EX, EX, NOTHING, Rests)),
    Await(AwaitedState::ProducerReady)
)]
#[case::ready_at_the_end(with(READY, facts(EX, EX, NOTHING, Rests)), FlavorMove::Done)]
#[case::absent(
    with(ProducerState::Absent, facts(TC, EX, NOTHING, Rests)),
    Refuse(FlavorChangeRefusal::ProducerAbsent)
)]
#[case::taken(
    with(ProducerState::Taken("a/b".to_owned()), facts(TC, EX, staged(EX), AwaitingPromotion)),
    Refuse(FlavorChangeRefusal::ProducerTaken("a/b".to_owned()))
)]
fn the_next_move(#[case] facts: FlavorChangeFacts, #[case] wanted: FlavorMove) {
    assert_eq!(next_move(&facts), wanted);
}

#[rstest]
#[case::before_the_request(with(ProducerState::Stopped, facts(TC, EX, staged(EX), AwaitingPromotion)), true)]
#[case::requested(
    requested(with(ProducerState::Stopped, facts(TC, EX, staged(EX), AwaitingPromotion))),
    false
)]
#[case::promoting(with(ProducerState::Stopped, facts(TC, EX, staged(EX), Promoting)), false)]
#[case::replaced(with(ProducerState::Stopping, facts(TC, EX, other(), Staging)), true)]
#[case::running(with(READY, facts(TC, EX, staged(EX), AwaitingPromotion)), false)]
fn a_producer_that_was_stopped_in_vain(#[case] facts: FlavorChangeFacts, #[case] wanted: bool) {
    assert_eq!(is_stopped_in_vain(&facts), wanted);
}

/// Whatever holds, a change moves, waits for something that others bring about, or stops with a remedy: carried out by
/// a controller that answers each move, every change ends with the wanted flavor, and stages one hop at a time.
#[test]
fn every_change_ends() {
    for (from, to) in Flavor::ALL.into_iter().flat_map(|from| Flavor::ALL.map(|to| (from, to))) {
        for producer in [ProducerState::NotGiven, READY] {
            let mut at = facts(from, to, NOTHING, Unseen);
            at.producer = producer;
            let mut moves = Vec::new();
            while moves.last() != Some(&FlavorMove::Done) {
                assert!(moves.len() < 40, "{from} -> {to}: {moves:?}");
                moves.push(next_move(&at));
                answered(&mut at, moves.last().unwrap());
            }
            assert_eq!((at.live, &at.staged), (to, &NOTHING));
            let stops = moves.iter().filter(|made| **made == FlavorMove::StopProducer).count();
            let crosses = (from.dialect() != to.dialect()) && at.producer != ProducerState::NotGiven;
            assert_eq!(stops, usize::from(crosses), "{from} -> {to}: {moves:?}");
        }
    }
}

/// What the controllers make of a move.
fn answered(at: &mut FlavorChangeFacts, made: &FlavorMove) {
    match made {
        FlavorMove::Done => {}
        Refuse(why) => panic!("{why}"),
        Stage(hop) => {
            assert_eq!(hop.from, at.live);
            (at.staged, at.phase) = (staged(hop.to), Unseen);
        }
        Promote(_) => at.requested = true,
        FlavorMove::StopProducer => at.producer = ProducerState::Stopping,
        FlavorMove::StartProducer => {
            at.producer = ProducerState::Running { is_ready: false, is_stale: false }
        }
        FlavorMove::RestartProducer => panic!("it was stopped before the promotion"),
        Await(AwaitedState::ProducerStopped) => at.producer = ProducerState::Stopped,
        Await(AwaitedState::ProducerReady) => at.producer = READY,
        Await(AwaitedState::Report | AwaitedState::GracePeriod) => at.phase = Rests,
        Await(AwaitedState::Preview(_)) => {
            at.phase = if at.phase == Unseen { Staging } else { AwaitingPromotion };
        }
        Await(AwaitedState::Promotion) => match (at.staged.clone(), at.phase) {
            (StagedFlavor::Flavor(flavor), Promoting) => {
                assert!(
                    !matches!(at.producer, ProducerState::Running { .. })
                        || flavor.dialect() == at.live.dialect()
                );
                (at.live, at.staged, at.requested) = (flavor, NOTHING, false);
            }
            (NOTHING, Promoting) => at.phase = GracePeriod,
            _ => at.phase = Promoting,
        },
    }
}

fn spec(flavor: Option<&str>, image: &str) -> Value {
    let mut proxy = json!({"name": "proxy", "image": image});
    if let Some(flavor) = flavor {
        proxy["env"] = json!([{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]);
    }
    json!({"deployment": {"rollout": {"strategy": {"blueGreen": {}}}, "replicas": 2,
        "podTemplateSpec": {"spec": {"containers": [proxy]}}}})
}

/// A DataPlane that runs one spec, with another one written.
fn plane(live: &Value, written: Value, reason: &str, observed: i64) -> Value {
    let live = live_spec::after(None, live);
    let stamp = json!({"v": 1, "hash": SpecHash::of(&live.to_string()), "spec": live});
    let asked = staged_hash(&written);
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "spec": written,
        "metadata": {"name": "edge", "namespace": "kong", "generation": 2, "annotations": {
            meta::LAST_APPLIED_SPEC: stamp.to_string(), meta::PROMOTE_WHEN_READY: asked}},
        "status": {"rollout": {"conditions": [{"type": "RolledOut", "reason": reason, "message": "m",
            "observedGeneration": observed}]}},
    })
}

fn read(object: &Value) -> Result<FlavorChangeFacts, FlavorChangeRefusal> {
    FlavorChangeFacts::of(object, None, EX, &Nothing, ProducerState::NotGiven)
}

#[rstest]
#[case::nothing(spec(None, "kong:3.9"), TC, NOTHING)]
#[case::scaled({ let mut it = spec(None, "kong:3.9"); it["deployment"]["replicas"] = json!(9); it }, TC, NOTHING)]
#[case::flavor(spec(Some("expressions"), "kong:3.9"), TC, staged(EX))]
#[case::flavor_and_image(spec(Some("expressions"), "kong:3.8"), TC, StagedFlavor::Other(
    "spec.deployment.podTemplateSpec.spec.containers[proxy].env, spec.deployment.podTemplateSpec.spec.containers[proxy].image".to_owned()
))]
#[case::the_default_in_words(spec(Some("traditional_compatible"), "kong:3.9"), TC, StagedFlavor::Other(
    "spec.deployment.podTemplateSpec.spec.containers[proxy].env".to_owned()
))]
#[case::in_place({ let mut it = spec(Some("expressions"), "kong:3.9"); it["deployment"]["rollout"] = json!(null); it }, TC, NOTHING)]
fn what_is_read(#[case] written: Value, #[case] live: Flavor, #[case] staged: StagedFlavor) {
    let found = read(&plane(&spec(None, "kong:3.9"), written, "Progressing", 2)).unwrap();
    let found_staged = match &found.staged {
        StagedFlavor::Other(fields) => {
            StagedFlavor::Other(fields.replace("[KONG_ROUTER_FLAVOR]", "").replace(".env.value", ".env"))
        }
        other => other.clone(),
    };
    assert_eq!((found.live, found_staged), (live, staged), "{found:?}");
    assert!(found.requested);
}

#[rstest]
#[case("WaitingForChange", 2, Rests)]
#[case("PromotionDone", 2, GracePeriod)]
#[case("AwaitingPromotion", 2, AwaitingPromotion)]
#[case("AwaitingPromotion", 1, Unseen)]
#[case("Progressing", 2, Staging)]
#[case("PromotionInProgress", 1, Promoting)]
#[case("Failed", 2, RolloutPhase::Failed)]
#[case("PromotionFailed", 1, Unseen)]
fn stages(#[case] reason: &str, #[case] observed: i64, #[case] phase: RolloutPhase) {
    let object = plane(&spec(None, "kong:3.9"), spec(None, "kong:3.9"), reason, observed);
    let found = read(&object).unwrap();
    assert_eq!((found.phase, found.message.as_str()), (phase, if phase == Unseen { "" } else { "m" }));
}

#[test]
fn what_is_not_known_stops_it() {
    let live = spec(Some("atc"), "kong:3.9");
    let unknown = read(&plane(&live, live.clone(), "WaitingForChange", 2)).unwrap_err();
    assert!(matches!(unknown, FlavorChangeRefusal::UnknownLive(_)), "{unknown}");
    let mut object = plane(&spec(None, "kong:3.9"), spec(Some("expressions"), "kong:3.9"), "Progressing", 2);
    let stamp =
        json!({"v": 1, "hash": SpecHash::of("x"), "ref": "ControllerRevision", "flavor": "traditional"});
    object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
    let unread = read(&object).unwrap_err();
    assert!(matches!(unread, FlavorChangeRefusal::UnknownSpec(_)), "{unread}");
    assert!(unread.remedy("edge -n kong").contains("`interlock rollout status edge -n kong`"));
}
