//! Metrics, by explicit registry: code that counts holds an `Arc<Metrics>`.
//!
//! Labels come from closed sets only: never the name of a user's object, a namespace or a uid, and no value
//! that an unauthenticated caller could choose.

mod kinds;
mod labels;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use interlock_core::effect::HealCause;
use interlock_core::kinds::gauge::Gauge as KindGauge;
use labels::{HealedChild, Installed, KindLabel, Labels, PlanResult, RestCall, WebhookCode};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::build;
use kinds::KindGauges;
pub use labels::{Cap, DecisionLabels, Hindrance};

/// Content type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the process.
#[derive(Default)]
pub struct Metrics {
    decisions: Family<DecisionLabels, Counter>,
    admitted: Family<Labels<2>, Counter>,
    answers: Family<WebhookCode, Counter>,
    in_flight: Gauge,
    in_flight_bytes: Gauge,
    connections: Gauge,
    refused: Family<Labels<1>, Counter>,
    panics: Counter,
    controller_panics: Counter,
    reconciler_stuck: Gauge,
    render_waits: Counter,
    request_waits: Family<Labels<1>, Counter>,
    certificate_not_after: AtomicU64,
    seconds: Seconds,
    reconciles: Family<Labels<2>, Counter>,
    plans: Family<PlanResult, Counter>,
    queue_depth: Family<Labels<1>, Gauge>,
    leader: Family<Labels<1>, Gauge>,
    rest_calls: Family<RestCall, Counter>,
    capability_state: Family<Labels<2>, Gauge>,
    capability_epoch: Family<Labels<1>, Gauge>,
    watch_starts: Counter,
    lists: Family<KindLabel, Counter>,
    last_event: Gauge,
    guard_intact: Family<Installed, Gauge>,
    kinds: KindGauges,
    healed: Family<HealedChild, Counter>,
    kept_left_out: Gauge,
    kept_bytes: Gauge,
}

/// Times from beginning to end.
struct Seconds {
    answers: Histograms,
    reconciles: Histograms,
}

impl Default for Seconds {
    fn default() -> Self {
        let answers = Histograms::new_with_constructor(from_50_microseconds);
        Self { answers, reconciles: Histograms::new_with_constructor(from_1_millisecond) }
    }
}

/// Decisions take tens of microseconds; the webhook's own timeout is seconds.
fn from_50_microseconds() -> Histogram {
    Histogram::new([
        0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0,
    ])
}

/// A reconcile makes a few calls to the API server.
fn from_1_millisecond() -> Histogram {
    Histogram::new([0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

type Histograms = Family<Labels<1>, Histogram, fn() -> Histogram>;

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Self {
        Self::default()
    }

    fn add_own_names(&self, r: &mut Registry, now: u64) {
        let build = Info::new(vec![
            ("version", build::VERSION),
            ("commit", build::COMMIT),
            ("rustc", build::RUSTC),
            ("kubernetes_types", build::KUBERNETES_TYPES),
        ]);
        r.register("build", "Version, commit and compiler of this process", build);
        r.register("admission_decisions", "Decisions by rule and verdict", self.decisions.clone());
        r.register(
            "admission_admitted",
            "Requests that a rule would have refused, let through by the settings; dry runs excluded",
            self.admitted.clone(),
        );
        r.register("admission_duration_seconds", "Time from body to answer", self.seconds.answers.clone());
        r.register("admission_in_flight", "Reviews being answered", self.in_flight.clone());
        r.register("admission_in_flight_bytes", "Bytes of bodies in memory", self.in_flight_bytes.clone());
        r.register("connections", "Open connections", self.connections.clone());
        r.register("refused", "Connections and requests refused, by the limit", self.refused.clone());
        r.register("panics", "Requests that panicked", self.panics.clone());
        let help = "Controllers that panicked as a whole and were restarted";
        r.register("controller_panics", help, self.controller_panics.clone());
        let help = "1 while the controllers are stuck; this process then does not lead";
        r.register("reconciler_stuck", help, self.reconciler_stuck.clone());
        let help =
            "Renderings delayed because the rendering threads or the share of their namespace were in use";
        r.register("render_put_off", help, self.render_waits.clone());
        let help = "Requests to the API server that waited, by reason";
        r.register("requests_put_off", help, self.request_waits.clone());
        let not_after = self.certificate_not_after.load(std::sync::atomic::Ordering::Relaxed);
        let certificate_expiry = Gauge::<f64, AtomicU64>::default();
        // Seconds of a lifetime are far below 2^52.
        certificate_expiry.set(not_after as f64 - now as f64);
        let help = "Seconds until the serving certificate expires";
        r.register("certificate_expiry_seconds", help, certificate_expiry);
        r.register("reconcile", "Reconciliations by result", self.reconciles.clone());
        r.register("plans_ended", "Runs of plans by result", self.plans.clone());
        r.register(
            "reconcile_duration_seconds",
            "Time of one reconciliation",
            self.seconds.reconciles.clone(),
        );
        let help = "1 for the current state of a capability";
        r.register("capability_state", help, self.capability_state.clone());
        let help = "Number of the current uninterrupted run of a capability; 0 while it does not run";
        r.register("capability_epoch", help, self.capability_epoch.clone());
        r.register(
            "watch_restarts",
            "Watches opened, again or for the first time",
            self.watch_starts.clone(),
        );
        r.register("lists", "Lists read to their end, by kind", self.lists.clone());
        r.register("watch_last_event_seconds", "Unix time of the last event", self.last_event.clone());
        let help = "1 while a webhook configuration, a policy or a binding of Interlock is as installed";
        r.register("guard_intact", help, self.guard_intact.clone());
        r.register_collector(Box::new(self.kinds.clone()));
    }

    /// Adds what reconcilers of DataPlanes count.
    fn add_reconcilers(&self, r: &mut Registry) {
        let help = "Children of live sides that this process restored, by kind and cause";
        r.register("dataplane_healed", help, self.healed.clone());
        let help =
            "Objects of DataPlanes over the memory budget of their namespace: they are read by request";
        r.register("kept_objects_left_out", help, self.kept_left_out.clone());
        let help = "Bytes of the objects of DataPlanes that are kept for reconcilers, as text";
        r.register("kept_objects_bytes", help, self.kept_bytes.clone());
    }

    /// Adds the names that dashboards for controller-runtime and client-go use.
    fn add_familiar_names(&self, r: &mut Registry) {
        let help = "Reviews by webhook and HTTP status";
        r.register("controller_runtime_webhook_requests", help, self.answers.clone());
        let help = "Time from body to answer";
        r.register("controller_runtime_webhook_latency_seconds", help, self.seconds.answers.clone());
        r.register("controller_runtime_reconcile", "Reconciliations by result", self.reconciles.clone());
        let help = "Time of one reconciliation";
        r.register("controller_runtime_reconcile_time_seconds", help, self.seconds.reconciles.clone());
        r.register("workqueue_depth", "Objects waiting to be reconciled", self.queue_depth.clone());
        r.register("leader_election_master_status", "1 while this process leads", self.leader.clone());
        r.register("rest_client_requests", "Calls to the API server by result", self.rest_calls.clone());
    }

    /// The exposition, as of `now` (Unix seconds).
    pub fn encode(&self, now: u64) -> String {
        let mut registry = Registry::default();
        self.add_familiar_names(&mut registry);
        let own = registry.sub_registry_with_prefix("interlock");
        self.add_own_names(own, now);
        self.add_reconcilers(own);
        let mut text = String::new();
        match text::encode(&mut text, &registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n# EOF\n"),
        }
    }

    /// A decision was made.
    pub fn decided(&self, decision: &DecisionLabels) {
        self.decisions.get_or_create(decision).inc();
    }

    /// The settings downgraded a violation to a warning.
    pub fn admitted(&self, door: &'static str, rule: &'static str) {
        self.admitted.get_or_create(&[("door", door), ("rule", rule)]).inc();
    }

    /// A review was answered, with any code.
    pub fn answered(&self, door: &'static str, code: u16, took: Duration) {
        self.seconds.answers.get_or_create(&[("webhook", door)]).observe(took.as_secs_f64());
        self.answers.get_or_create(&WebhookCode { webhook: door, code }).inc();
    }

    /// Changes the number of reviews in flight.
    pub fn in_flight(&self, change: i64) {
        self.in_flight.inc_by(change);
    }

    /// Bytes of bodies in memory.
    pub fn in_flight_bytes(&self, bytes: usize) {
        self.in_flight_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Changes the number of open connections.
    pub fn connections_open(&self, change: i64) {
        self.connections.inc_by(change);
    }

    /// A limit was hit.
    pub fn refused(&self, cap: Cap) {
        self.refused.get_or_create(&[("cap", cap.as_str())]).inc();
    }

    /// How often a limit was hit.
    pub fn refusals(&self, cap: Cap) -> u64 {
        self.refused.get_or_create(&[("cap", cap.as_str())]).get()
    }

    /// A request panicked.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// How many requests panicked.
    pub fn panics(&self) -> u64 {
        self.panics.get()
    }

    /// A controller panicked as a whole.
    pub fn controller_panicked(&self) {
        self.controller_panics.inc();
    }

    /// A rendering was delayed.
    pub fn render_waited(&self) {
        self.render_waits.inc();
    }

    /// A request to the API server has to wait.
    pub fn request_hindered(&self, why: Hindrance) {
        self.request_waits.get_or_create(&[("why", why.as_str())]).inc();
    }

    /// Whether the controllers are stuck.
    pub fn reconciler_stuck(&self, stuck: bool) {
        self.reconciler_stuck.set(i64::from(stuck));
    }

    /// The serving certificate was replaced by one with this expiry (Unix seconds).
    pub fn certificate(&self, not_after: i64) {
        let not_after = u64::try_from(not_after).unwrap_or(0);
        self.certificate_not_after.store(not_after, std::sync::atomic::Ordering::Relaxed);
    }

    /// An object was reconciled; `result` is `success`, `error`, `requeue_after` or `panic`.
    pub fn reconciled(&self, controller: &'static str, result: &'static str, took: Duration) {
        self.reconciles.get_or_create(&[("controller", controller), ("result", result)]).inc();
        self.seconds.reconciles.get_or_create(&[("controller", controller)]).observe(took.as_secs_f64());
    }

    /// A run of a plan has ended; `result` is `COMPLETE` or `FATAL_ERROR`.
    pub fn plan_ended(&self, result: &str) {
        self.plans.get_or_create(&PlanResult { result: result.to_owned() }).inc();
    }

    /// Objects waiting to be reconciled.
    pub fn queue_depth(&self, controller: &'static str, depth: usize) {
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.queue_depth.get_or_create(&[("name", controller)]).set(depth);
    }

    /// Whether this process leads.
    pub fn leads(&self, lease: &'static str, leads: bool) {
        self.leader.get_or_create(&[("name", lease)]).set(i64::from(leads));
    }

    /// The state of a capability, one of `states`, and the epoch, while there is one.
    pub fn capability(
        &self,
        name: &'static str,
        states: &[&'static str],
        now: &'static str,
        epoch: Option<u64>,
    ) {
        for state in states {
            let label = [("name", name), ("state", *state)];
            self.capability_state.get_or_create(&label).set(i64::from(*state == now));
        }
        let epoch = epoch.and_then(|epoch| i64::try_from(epoch).ok()).unwrap_or(0);
        self.capability_epoch.get_or_create(&[("name", name)]).set(epoch);
    }

    /// A watch of a kind is opened.
    pub fn watch_started(&self) {
        self.watch_starts.inc();
    }

    /// All objects of a kind were listed.
    pub fn listed(&self, kind: &str) {
        self.lists.get_or_create(&KindLabel { kind: kind.to_owned() }).inc();
    }

    /// A watch delivered an event, at this Unix time.
    pub fn watch_event(&self, now: i64) {
        self.last_event.set(now);
    }

    /// Whether a guard object is intact.
    pub fn guard(&self, kind: &'static str, name: &str, intact: bool) {
        let label = Installed { kind, name: name.to_owned() };
        self.guard_intact.get_or_create(&label).set(i64::from(intact));
    }

    /// What the kinds say of all their objects.
    pub fn kinds(&self, gauges: Vec<KindGauge>) {
        self.kinds.set(gauges);
    }

    /// How many objects that reconcilers read exceed the budgets of their namespaces, and the bytes of all others.
    pub fn kept_objects(&self, (left_out, bytes): (usize, usize)) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.kept_left_out.set(number(left_out));
        self.kept_bytes.set(number(bytes));
    }

    /// An object of this kind was put right; the kind is one that a reconciler makes.
    pub fn healed(&self, kind: &str, cause: HealCause) {
        self.healed.get_or_create(&HealedChild { kind: kind.to_owned(), cause: cause.as_str() }).inc();
    }

    /// The API server answered a call, or did not (code 0).
    pub fn rest_call(&self, method: &'static str, code: u16) {
        self.rest_calls.get_or_create(&RestCall { method, code }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exposition_has_both_names_and_the_seconds_that_are_left() {
        let metrics = Metrics::new();
        metrics.certificate(1_000);
        metrics.answered("mutate", 200, Duration::from_micros(60));
        metrics.reconciled("instance", "success", Duration::from_millis(3));
        metrics.refused(Cap::BodyBytes);
        metrics.guard("ValidatingAdmissionPolicy", "interlock-lock", false);
        metrics.healed("Deployment", HealCause::Deleted);
        metrics.kinds(vec![
            KindGauge::by(("instances", "state"), "Instances by state", [("ready", 3), ("failed", 0)]),
            KindGauge::of("instances_drifted", "Instances whose spec differs", 1),
        ]);
        let text = metrics.encode(400);
        for line in [
            "interlock_certificate_expiry_seconds 600.0",
            "interlock_admission_duration_seconds_bucket{le=\"0.0001\",webhook=\"mutate\"} 1",
            "controller_runtime_webhook_requests_total{webhook=\"mutate\",code=\"200\"} 1",
            "controller_runtime_reconcile_total{controller=\"instance\",result=\"success\"} 1",
            "interlock_reconcile_total{controller=\"instance\",result=\"success\"} 1",
            "interlock_refused_total{cap=\"body_bytes\"} 1",
            "interlock_build_info{",
            "interlock_instances{state=\"ready\"} 3",
            "interlock_instances{state=\"failed\"} 0",
            "# HELP interlock_instances Instances by state.",
            "# TYPE interlock_instances gauge",
            "interlock_instances_drifted 1",
            "interlock_dataplane_healed_total{kind=\"Deployment\",cause=\"deleted\"} 1",
            "interlock_guard_intact{kind=\"ValidatingAdmissionPolicy\",name=\"interlock-lock\"} 0",
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
        // What left a state is not there any more.
        metrics.kinds(vec![KindGauge::by(("instances", "state"), "Instances by state", [("ready", 0)])]);
        let text = metrics.encode(400);
        assert!(text.contains("interlock_instances{state=\"ready\"} 0"), "{text}");
    }
}
