//! What the graph keeps of a rollout for the page and the metrics, as `interlock rollout status` has it: the phase, since
//! when, and the next step. Metrics say how many DataPlanes are in each phase. Pure, by the rows of the graph.

use std::collections::BTreeMap;

use interlock_core::api::object::meta_str;
use interlock_core::kinds::fact;
use interlock_core::kinds::gauge::Gauge;
use interlock_core::topology::ObjectRow;
use interlock_core::topology::schema::{Fact, ReadDepth};
use jiff::Timestamp;
use serde_json::Value;

use crate::data_plane::rollout::report::next_step::NextStep;
use crate::data_plane::rollout::report::summary::{phase_of, step_of};
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};

/// The phase of a rollout.
pub(crate) const PHASE: Fact =
    Fact { name: fact::PHASE, read: ReadDepth::Word(|object| phase_of(object).as_str().into()) };

/// Since when it is in that phase.
pub(crate) const PHASE_SINCE: Fact = Fact { name: fact::PHASE_SINCE, read: ReadDepth::Mark(since) };

/// What a person can do about it: the number of a [`NextStep`], 0 where nothing is to do.
pub(crate) const NEXT_STEP: Fact =
    Fact { name: "nextStep", read: ReadDepth::Mark(|object| step_of(object).map_or(0, NextStep::number)) };

/// What metrics say of all DataPlanes: by their rows, whatever the size of the objects.
pub(crate) fn gauges(rows: &mut dyn Iterator<Item = ObjectRow<'_>>, now: u64) -> Vec<Gauge> {
    let phases = totals(rows);
    let total = |phase: RolloutPhase| phases.get(phase.as_str()).copied().unwrap_or_default();
    let waiting = RolloutPhase::ALL.into_iter().filter(|phase| !phase.is_at_rest());
    let age = |phase| total(phase).oldest.map_or(0, |since| now.saturating_sub(since));
    vec![
        Gauge::by(
            ("dataplane_rollouts", "phase"),
            "DataPlanes by the phase of their rollout, as this replica has them",
            RolloutPhase::ALL.map(|phase| (phase.as_str(), total(phase).count)),
        ),
        Gauge::by(
            ("dataplane_rollout_oldest_seconds", "phase"),
            "Seconds that the oldest DataPlane in a phase has been in it; 0 without one",
            waiting.map(|phase| (phase.as_str(), age(phase))),
        ),
    ]
}

/// The DataPlanes in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PhaseTotal {
    /// How many there are.
    count: u64,
    /// When the one that has been there longest came into it, in Unix seconds; `None` where nothing is waited for.
    oldest: Option<u64>,
}

fn totals<'g>(rows: impl Iterator<Item = ObjectRow<'g>>) -> BTreeMap<&'static str, PhaseTotal> {
    let mut phases = BTreeMap::<&'static str, PhaseTotal>::new();
    for row in rows {
        let phase = RolloutPhase::named(row.word(fact::PHASE).unwrap_or_default());
        let total = phases.entry(phase.as_str()).or_default();
        total.count += 1;
        let since = row.number(fact::PHASE_SINCE).filter(|since| *since > 0 && !phase.is_at_rest());
        total.oldest = [total.oldest, since].into_iter().flatten().min();
    }
    phases
}

/// Since when a DataPlane is in its phase, in Unix seconds: from the condition of its rollout, without one from its
/// creation; 0 where neither is a time, and where the condition reports another phase: that of an earlier spec.
fn since(object: &Value) -> u64 {
    let reported = ReportedRollout::of(object);
    if reported.as_ref().is_some_and(|rollout| rollout.phase().as_str() != phase_of(object).as_str()) {
        return 0;
    }
    let since = reported.and_then(|rollout| rollout.since).or_else(|| meta_str(object, "creationTimestamp"));
    let since = since.and_then(|text| text.parse::<Timestamp>().ok());
    since.and_then(|since| u64::try_from(since.as_second()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use interlock_core::api::meta;
    use interlock_core::api::stamp::SpecHash;
    use interlock_core::topology::{Epoch, Graph, GraphChange, KindId};
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::api;
    use crate::data_plane::live_spec;
    use crate::data_plane::rollout::report::summary::RolloutSummary;

    fn data_plane(name: &str, blue_green: bool, status: Value) -> Value {
        let rollout = if blue_green { json!({"strategy": {"blueGreen": {}}}) } else { Value::Null };
        json!({
            "apiVersion": api::API_VERSION, "kind": "DataPlane",
            "metadata": {
                "namespace": "kong", "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:05Z",
            },
            "spec": {"deployment": {"rollout": rollout}}, "status": status,
        })
    }

    fn rolled_out(reason: &str, second: u32) -> Value {
        let since = format!("2026-01-01T00:00:{second:02}Z");
        json!({"rollout": {"conditions": [{"type": "RolledOut", "reason": reason, "lastTransitionTime": since}]}})
    }

    const MIDNIGHT: u64 = 1_767_225_600;

    fn graph(objects: &[Value]) -> (Graph, KindId) {
        let mut graph = interlock_core::kinds::graph(crate::all());
        let kind = graph.kind(api::GROUP, "DataPlane");
        graph.kind_available(kind, Epoch(1));
        for object in objects {
            graph.apply(kind, Epoch(1), GraphChange::Applied(object));
        }
        (graph, kind)
    }

    fn counted(objects: &[Value]) -> BTreeMap<&'static str, PhaseTotal> {
        let (graph, kind) = graph(objects);
        totals(graph.rows(kind))
    }

    #[test]
    fn rollouts_have_counts_and_ages_by_phase() {
        let (graph, kind) = graph(&[
            data_plane("a", true, rolled_out("AwaitingPromotion", 20)),
            data_plane("b", true, rolled_out("AwaitingPromotion", 10)),
            data_plane("c", true, rolled_out("WaitingForChange", 1)),
        ]);
        let gauges = gauges(&mut graph.rows(kind), MIDNIGHT + 310);
        let [counts, ages] = &gauges[..] else { panic!("two gauges") };
        let value = |gauge: &Gauge, phase: &str| {
            gauge.values.iter().find(|(word, _)| *word == phase).map(|(_, value)| *value)
        };
        assert_eq!((counts.name, counts.label), ("dataplane_rollouts", Some("phase")));
        assert_eq!((ages.name, ages.label), ("dataplane_rollout_oldest_seconds", Some("phase")));
        let counted = ["AwaitingPromotion", "Idle", "Failed"].map(|phase| value(counts, phase));
        assert_eq!(counted, [Some(2), Some(1), Some(0)]);
        // An idle one waits for nothing.
        let aged = ["AwaitingPromotion", "Failed", "Idle"].map(|phase| value(ages, phase));
        assert_eq!(aged, [Some(300), Some(0), None]);
    }

    #[test]
    fn data_planes_are_counted_by_phase_with_the_oldest() {
        let found = counted(&[
            data_plane("a", true, rolled_out("AwaitingPromotion", 20)),
            data_plane("b", true, rolled_out("AwaitingPromotion", 10)),
            data_plane("c", true, rolled_out("WaitingForChange", 1)),
            data_plane("d", false, json!({})),
        ]);
        let expected = BTreeMap::from([
            ("AwaitingPromotion", PhaseTotal { count: 2, oldest: Some(MIDNIGHT + 10) }),
            ("Idle", PhaseTotal { count: 1, oldest: None }),
            ("InPlace", PhaseTotal { count: 1, oldest: None }),
        ]);
        assert_eq!(found, expected);
    }

    /// An edit that the controller has not seen yet is on its way, whatever was reported of the spec before; the page says
    /// what `interlock rollout status` says, which is a function of the same.
    #[rstest]
    #[case::idle("WaitingForChange")]
    #[case::that_awaited_another_promotion("AwaitingPromotion")]
    fn an_edit_that_is_not_seen_yet_is_being_staged(#[case] reason: &str) {
        let spec = |image: &str| json!({"deployment": {"rollout": {"strategy": {"blueGreen": {}}}, "podTemplateSpec": {"image": image}}});
        let live = live_spec::after(None, &spec("a")).to_string();
        let stamp = format!("{{\"v\":1,\"hash\":\"{}\",\"spec\":{live},\"uid\":\"a\"}}", SpecHash::of(&live));
        let mut object = data_plane("a", true, rolled_out(reason, 7));
        object["metadata"]["annotations"] = json!({meta::LAST_APPLIED_SPEC: stamp});
        object["metadata"]["generation"] = json!(3);
        object["status"]["rollout"]["conditions"][0]["observedGeneration"] = json!(2);
        object["spec"] = spec("b");
        let (graph, kind) = graph(std::slice::from_ref(&object));
        let row = graph.row(kind, "kong", "a").expect("its row");
        assert_eq!(row.word(fact::PHASE), Some("Staging"));
        assert_eq!(
            row.number(fact::PHASE_SINCE),
            Some(0),
            "that of the spec before says nothing of this one"
        );
        assert_eq!(row.number(NEXT_STEP.name), Some(NextStep::PromoteAhead.number()));
        assert_eq!(RolloutSummary::of(&object, None).phase, RolloutPhase::Staging);
        object["spec"] = spec("a");
        let (graph, kind) = self::graph(&[object]);
        assert_eq!(graph.row(kind, "kong", "a").and_then(|row| row.number(NEXT_STEP.name)), Some(0));
    }

    #[rstest]
    #[case::not_reported(json!({}), "Unreported", 5)]
    #[case::never_ready(json!({"conditions": [{"type": "Ready", "message": "m"}]}), "Starting", 5)]
    #[case::failed(rolled_out("Failed", 7), "Failed", 7)]
    #[case::of_a_later_version(rolled_out("SomethingNew", 7), "Unknown", 7)]
    #[case::forged(json!({"rollout": {"conditions": "x"}, "conditions": 1}), "Unreported", 5)]
    fn a_phase_that_waits_has_its_start(#[case] status: Value, #[case] phase: &str, #[case] second: u64) {
        let found = counted(&[data_plane("a", true, status)]);
        let total = PhaseTotal { count: 1, oldest: Some(MIDNIGHT + second) };
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [(phase, total)]);
    }
}
