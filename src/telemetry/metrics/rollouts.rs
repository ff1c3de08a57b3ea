//! Metrics of the rollouts of DataPlanes.

use interlock_core::effect::HealCause;
use interlock_kong::data_plane::rollout::report::ReportedPhase;
use interlock_kong::data_plane::rollout::totals::RolloutTotals;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{HealedChild, Labels};

/// What is known of rollouts.
#[derive(Default)]
pub(super) struct RolloutMetrics {
    by_phase: Family<Labels<1>, Gauge>,
    oldest: Family<Labels<1>, Gauge>,
    healed: Family<HealedChild, Counter>,
    left_out: Gauge,
    kept_bytes: Gauge,
}

impl RolloutMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "DataPlanes by the phase of their rollout, as this replica has them";
        registry.register("dataplane_rollouts", help, self.by_phase.clone());
        let help = "Seconds that the oldest DataPlane in a phase has been in it; 0 without one";
        registry.register("dataplane_rollout_oldest_seconds", help, self.oldest.clone());
        let help = "Children of live sides that this process restored, by kind and cause";
        registry.register("dataplane_healed", help, self.healed.clone());
        let help =
            "Objects of DataPlanes over the memory budget of their namespace: they are read by request";
        registry.register("kept_objects_left_out", help, self.left_out.clone());
        let help = "Bytes of the objects of DataPlanes that are kept for reconcilers, as text";
        registry.register("kept_objects_bytes", help, self.kept_bytes.clone());
    }

    pub(super) fn set(&self, totals: &RolloutTotals, now: u64) {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for of in ReportedPhase::ALL {
            let phase = of.as_str();
            let total = totals.phases.get(phase).copied().unwrap_or_default();
            self.by_phase.get_or_create(&[("phase", phase)]).set(number(total.count));
            if !of.is_at_rest() {
                let age = total.oldest.map_or(0, |since| now.saturating_sub(since));
                self.oldest.get_or_create(&[("phase", phase)]).set(number(age));
            }
        }
    }

    pub(super) fn kept(&self, left_out: usize, bytes: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.left_out.set(number(left_out));
        self.kept_bytes.set(number(bytes));
    }

    pub(super) fn healed(&self, kind: &str, cause: HealCause) {
        self.healed.get_or_create(&HealedChild { kind: kind.to_owned(), cause: cause.as_str() }).inc();
    }
}

#[cfg(test)]
mod tests {
    use interlock_kong::data_plane::rollout::totals::PhaseTotal;

    use super::*;
    use crate::telemetry::metrics::Metrics;

    #[test]
    fn rollouts_have_counts_and_ages_by_phase() {
        let metrics = Metrics::new();
        let waiting = PhaseTotal { count: 2, oldest: Some(100) };
        let idle = PhaseTotal { count: 3, oldest: None };
        let totals = RolloutTotals { phases: [("AwaitingPromotion", waiting), ("Idle", idle)].into() };
        metrics.rollouts(&totals, 400);
        metrics.healed("Deployment", HealCause::Deleted);
        let text = metrics.encode(0);
        for line in [
            "interlock_dataplane_rollouts{phase=\"AwaitingPromotion\"} 2",
            "interlock_dataplane_rollouts{phase=\"Idle\"} 3",
            "interlock_dataplane_rollouts{phase=\"Failed\"} 0",
            "interlock_dataplane_rollout_oldest_seconds{phase=\"AwaitingPromotion\"} 300",
            "interlock_dataplane_rollout_oldest_seconds{phase=\"Failed\"} 0",
            "interlock_dataplane_healed_total{kind=\"Deployment\",cause=\"deleted\"} 1",
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
        assert!(!text.contains("rollout_oldest_seconds{phase=\"Idle\"}"), "an idle one waits for nothing");
        // What left a phase is not there any more.
        metrics.rollouts(&RolloutTotals::default(), 400);
        let text = metrics.encode(0);
        assert!(text.contains("interlock_dataplane_rollouts{phase=\"AwaitingPromotion\"} 0"), "{text}");
        assert!(text.contains("oldest_seconds{phase=\"AwaitingPromotion\"} 0"), "{text}");
    }
}
