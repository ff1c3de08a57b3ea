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
use labels::{
    Admitted, CapLabel, CapabilityState, ControllerLabels, ControllerResult, HealedChild, Installed,
    KindLabel, NameLabel, PlanResult, RestCall, WaitLabel, WebhookCode, WebhookLabels,
};
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
pub struct Metrics {
    registry: Registry,
    decisions: Family<DecisionLabels, Counter>,
    admitted: Family<Admitted, Counter>,
    answer_seconds: Family<WebhookLabels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    in_flight_bytes: Gauge,
    connections: Gauge,
    refused: Family<CapLabel, Counter>,
    panics: Counter,
    controller_panics: Counter,
    reconciler_stuck: Gauge,
    render_waits: Counter,
    request_waits: Family<WaitLabel, Counter>,
    certificate_expiry: Gauge<f64, AtomicU64>,
    certificate_not_after: AtomicU64,
    webhook_requests: Family<WebhookCode, Counter>,
    webhook_latency: Family<WebhookLabels, Histogram, fn() -> Histogram>,
    reconciles: Family<ControllerResult, Counter>,
    plans: Family<PlanResult, Counter>,
    reconcile_seconds: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    queue_depth: Family<NameLabel, Gauge>,
    leader: Family<NameLabel, Gauge>,
    rest_calls: Family<RestCall, Counter>,
    capability_state: Family<CapabilityState, Gauge>,
    capability_epoch: Family<NameLabel, Gauge>,
    watch_starts: Counter,
    lists: Family<KindLabel, Counter>,
    last_event: Gauge,
    guard_intact: Family<Installed, Gauge>,
    kinds: KindGauges,
    healed: Family<HealedChild, Counter>,
    kept_left_out: Gauge,
    kept_bytes: Gauge,
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

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            decisions: Family::default(),
            admitted: Family::default(),
            answer_seconds: Histograms::new_with_constructor(from_50_microseconds),
            in_flight: Gauge::default(),
            in_flight_bytes: Gauge::default(),
            connections: Gauge::default(),
            refused: Family::default(),
            panics: Counter::default(),
            controller_panics: Counter::default(),
            reconciler_stuck: Gauge::default(),
            render_waits: Counter::default(),
            request_waits: Family::default(),
            certificate_expiry: Gauge::default(),
            certificate_not_after: AtomicU64::new(0),
            webhook_requests: Family::default(),
            webhook_latency: Histograms::new_with_constructor(from_50_microseconds),
            reconciles: Family::default(),
            plans: Family::default(),
            reconcile_seconds: Histograms::new_with_constructor(from_1_millisecond),
            queue_depth: Family::default(),
            leader: Family::default(),
            rest_calls: Family::default(),
            capability_state: Family::default(),
            capability_epoch: Family::default(),
            watch_starts: Counter::default(),
            lists: Family::default(),
            last_event: Gauge::default(),
            guard_intact: Family::default(),
            kinds: KindGauges::default(),
            healed: Family::default(),
            kept_left_out: Gauge::default(),
            kept_bytes: Gauge::default(),
        };
        metrics.with_own_names().with_reconcilers().with_familiar_names()
    }

    fn with_own_names(mut self) -> Self {
        let build = Info::new(vec![
            ("version", build::VERSION),
            ("commit", build::COMMIT),
            ("rustc", build::RUSTC),
            ("kubernetes_types", build::KUBERNETES_TYPES),
        ]);
        let r = self.registry.sub_registry_with_prefix("interlock");
        r.register("build", "Version, commit and compiler of this process", build);
        r.register("admission_decisions", "Decisions by rule and verdict", self.decisions.clone());
        r.register(
            "admission_admitted",
            "Requests that a rule would have refused, let through by the settings; dry runs excluded",
            self.admitted.clone(),
        );
        r.register("admission_duration_seconds", "Time from body to answer", self.answer_seconds.clone());
        r.register("admission_in_flight", "Reviews being answered", self.in_flight.clone());
        r.register("admission_in_flight_bytes", "Bytes of bodies in memory", self.in_flight_bytes.clone());
        r.register("connections", "Open connections", self.connections.clone());
        r.register("refused", "Connections and requests refused, by the limit", self.refused.clone());
        r.register("panics", "Requests that panicked", self.panics.clone());
        let help = "Controllers that panicked as a whole and were restarted";
        r.register("controller_panics", help, self.controller_panics.clone());
        let help = "1 while the controllers are stuck and this process does not lead because of it";
        r.register("reconciler_stuck", help, self.reconciler_stuck.clone());
        let help =
            "Renderings delayed because the rendering threads or the share of their namespace were in use";
        r.register("render_put_off", help, self.render_waits.clone());
        let help = "Requests to the API server that waited, by what for";
        r.register("requests_put_off", help, self.request_waits.clone());
        let help = "Seconds until the serving certificate expires";
        r.register("certificate_expiry_seconds", help, self.certificate_expiry.clone());
        r.register("reconcile", "Reconciliations by result", self.reconciles.clone());
        r.register("plans_ended", "Runs of plans by result", self.plans.clone());
        r.register(
            "reconcile_duration_seconds",
            "Time of one reconciliation",
            self.reconcile_seconds.clone(),
        );
        let help = "1 for the current state of a capability";
        r.register("capability_state", help, self.capability_state.clone());
        let help =
            "Epoch of a capability: number of its current run without a break; 0 while it does not run";
        r.register("capability_epoch", help, self.capability_epoch.clone());
        r.register(
            "watch_restarts",
            "Watches opened, again or for the first time",
            self.watch_starts.clone(),
        );
        r.register("lists", "Lists read to their end, by kind", self.lists.clone());
        r.register("watch_last_event_seconds", "Unix time of the last event", self.last_event.clone());
        let help = "1 while a webhook configuration, a policy or a binding of ours is as installed";
        r.register("guard_intact", help, self.guard_intact.clone());
        r.register_collector(Box::new(self.kinds.clone()));
        self
    }

    /// Adds what reconcilers of DataPlanes count.
    fn with_reconcilers(mut self) -> Self {
        let r = self.registry.sub_registry_with_prefix("interlock");
        let help = "Children of live sides that this process put right, by kind and by what had happened";
        r.register("dataplane_healed", help, self.healed.clone());
        let help =
            "Objects of DataPlanes over the memory budget of their namespace: they are read by request";
        r.register("kept_objects_left_out", help, self.kept_left_out.clone());
        let help = "Bytes of the objects of DataPlanes that are kept for reconcilers, as text";
        r.register("kept_objects_bytes", help, self.kept_bytes.clone());
        self
    }

    /// Adds the names that dashboards for controller-runtime and client-go use.
    fn with_familiar_names(mut self) -> Self {
        let r = &mut self.registry;
        let help = "Reviews by webhook and HTTP status";
        r.register("controller_runtime_webhook_requests", help, self.webhook_requests.clone());
        let help = "Time from body to answer";
        r.register("controller_runtime_webhook_latency_seconds", help, self.webhook_latency.clone());
        r.register("controller_runtime_reconcile", "Reconciliations by result", self.reconciles.clone());
        let help = "Time of one reconciliation";
        r.register("controller_runtime_reconcile_time_seconds", help, self.reconcile_seconds.clone());
        r.register("workqueue_depth", "Objects waiting to be reconciled", self.queue_depth.clone());
        r.register("leader_election_master_status", "1 while this process leads", self.leader.clone());
        r.register("rest_client_requests", "Calls to the API server by result", self.rest_calls.clone());
        self
    }

    /// The exposition, as of `now` (Unix seconds).
    pub fn encode(&self, now: u64) -> String {
        let not_after = self.certificate_not_after.load(std::sync::atomic::Ordering::Relaxed);
        // Seconds of a lifetime are far below 2^52.
        self.certificate_expiry.set(not_after as f64 - now as f64);
        let mut text = String::new();
        match text::encode(&mut text, &self.registry) {
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
        self.admitted.get_or_create(&Admitted { door, rule }).inc();
    }

    /// A review was answered, with any code.
    pub fn answered(&self, door: &'static str, code: u16, took: Duration) {
        let webhook = WebhookLabels { webhook: door };
        self.answer_seconds.get_or_create(&webhook).observe(took.as_secs_f64());
        self.webhook_latency.get_or_create(&webhook).observe(took.as_secs_f64());
        self.webhook_requests.get_or_create(&WebhookCode { webhook: door, code }).inc();
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
        self.refused.get_or_create(&CapLabel { cap: cap.as_str() }).inc();
    }

    /// How often a limit was hit.
    pub fn refusals(&self, cap: Cap) -> u64 {
        self.refused.get_or_create(&CapLabel { cap: cap.as_str() }).get()
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
        self.request_waits.get_or_create(&WaitLabel { why: why.as_str() }).inc();
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
        self.reconciles.get_or_create(&ControllerResult { controller, result }).inc();
        self.reconcile_seconds.get_or_create(&ControllerLabels { controller }).observe(took.as_secs_f64());
    }

    /// A run of a plan has ended; `result` is `COMPLETE` or `FATAL_ERROR`.
    pub fn plan_ended(&self, result: &str) {
        self.plans.get_or_create(&PlanResult { result: result.to_owned() }).inc();
    }

    /// Objects waiting to be reconciled.
    pub fn queue_depth(&self, controller: &'static str, depth: usize) {
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.queue_depth.get_or_create(&NameLabel { name: controller }).set(depth);
    }

    /// Whether this process leads.
    pub fn leads(&self, lease: &'static str, leads: bool) {
        self.leader.get_or_create(&NameLabel { name: lease }).set(i64::from(leads));
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
            let label = CapabilityState { name, state };
            self.capability_state.get_or_create(&label).set(i64::from(*state == now));
        }
        let epoch = epoch.and_then(|epoch| i64::try_from(epoch).ok()).unwrap_or(0);
        self.capability_epoch.get_or_create(&NameLabel { name }).set(epoch);
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
