//! Readiness as a set of named handles: each part that can be unready holds one.
//!
//! Some of the checks are gates: until their kinds are in sync the webhook cannot decide and answers 503,
//! which the API server retries inside its own timeout.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use arc_swap::ArcSwapOption;

/// All checks of the process.
#[derive(Clone, Debug, Default)]
pub struct Readyz {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    checks: ArcSwap<Vec<Arc<State>>>,
    closed_gates: AtomicUsize,
}

#[derive(Debug)]
struct State {
    name: String,
    gate: bool,
    open: AtomicBool,
    problem: ArcSwapOption<String>,
}

/// One check; the part of the process that it describes holds it.
#[derive(Clone, Debug)]
pub struct Check {
    state: Arc<State>,
    shared: Arc<Shared>,
}

impl Readyz {
    /// A process without checks is ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// A check that affects `/readyz` only; it fails until [`Check::pass`].
    pub fn check(&self, name: impl Into<String>) -> Check {
        self.add(name.into(), false)
    }

    /// A check without which the webhook answers 503; it fails until [`Check::pass`].
    pub fn gate(&self, name: impl Into<String>) -> Check {
        self.add(name.into(), true)
    }

    fn add(&self, name: String, gate: bool) -> Check {
        let state = Arc::new(State {
            name,
            gate,
            open: AtomicBool::new(false),
            problem: ArcSwapOption::from_pointee("not started".to_owned()),
        });
        if gate {
            self.shared.closed_gates.fetch_add(1, Ordering::SeqCst);
        }
        self.shared.checks.rcu(|checks| {
            let mut checks = Vec::clone(checks);
            checks.push(state.clone());
            checks
        });
        Check { state, shared: self.shared.clone() }
    }

    /// Whether every gate is open.
    pub fn can_decide(&self) -> bool {
        self.shared.closed_gates.load(Ordering::SeqCst) == 0
    }

    /// Name and problem of every check, in the order of registration.
    pub fn report(&self) -> Vec<(String, Option<String>)> {
        let checks = self.shared.checks.load();
        checks.iter().map(|c| (c.name.clone(), c.problem.load().as_deref().cloned())).collect()
    }
}

impl Check {
    /// The check passes from now on.
    pub fn pass(&self) {
        self.state.problem.store(None);
        if self.state.gate && !self.state.open.swap(true, Ordering::SeqCst) {
            self.shared.closed_gates.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The check fails, with the reason; one line.
    pub fn fail(&self, problem: impl Into<String>) {
        self.state.problem.store(Some(Arc::new(problem.into())));
        if self.state.gate && self.state.open.swap(false, Ordering::SeqCst) {
            self.shared.closed_gates.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether the check passes.
    pub fn holds(&self) -> bool {
        self.state.problem.load().is_none()
    }
}

/// The parameters of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// `/readyz/NAME`: only this check.
    pub only: Option<String>,
    /// `?exclude=NAME`: all except these.
    pub exclude: Vec<String>,
    /// `?verbose`: every check with its state.
    pub verbose: bool,
}

impl Probe {
    /// From the query of the URL; ignores unknown parameters, as the API server does.
    pub fn from_query(query: Option<&str>, only: Option<String>) -> Self {
        let mut probe = Self { only, ..Self::default() };
        for pair in query.unwrap_or_default().split('&') {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("verbose", _) => probe.verbose = true,
                ("exclude", name) => probe.exclude.push(name.to_owned()),
                _ => {}
            }
        }
        probe
    }
}

/// Status code and text of an answer to a probe.
pub fn answer(kind: &str, report: &[(String, Option<String>)], probe: &Probe) -> (u16, String) {
    let asked =
        |name: &String| probe.only.as_ref().is_none_or(|only| only == name) && !probe.exclude.contains(name);
    let checks: Vec<_> = report.iter().filter(|(name, _)| asked(name)).collect();
    if let (Some(only), true) = (&probe.only, checks.is_empty()) {
        let known: Vec<_> = report.iter().map(|(name, _)| name.as_str()).collect();
        return (404, format!("no check {only:?}; known checks: {}\n", known.join(", ")));
    }
    let failed = checks.iter().any(|(_, problem)| problem.is_some());
    let code = if failed { 503 } else { 200 };
    if !failed && !probe.verbose {
        return (code, "ok".to_owned());
    }
    let mut text = String::new();
    for (name, problem) in checks {
        // Writing to a String cannot fail.
        let _ = match problem {
            Some(problem) => writeln!(text, "[-]{name} failed: {problem}"),
            None if probe.verbose => writeln!(text, "[+]{name} ok"),
            None => Ok(()),
        };
    }
    if probe.verbose {
        let _ = writeln!(text, "{kind} check {}", if failed { "failed" } else { "passed" });
    }
    (code, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn report() -> Vec<(String, Option<String>)> {
        vec![("a".into(), None), ("b".into(), Some("no bread".into()))]
    }

    #[rstest]
    #[case::failing("", None, 503, "[-]b failed: no bread\n")]
    #[case::verbose("verbose", None, 503, "[+]a ok\n[-]b failed: no bread\nreadyz check failed\n")]
    #[case::excluded("exclude=b", None, 200, "ok")]
    #[case::one_that_holds("", Some("a"), 200, "ok")]
    #[case::one_that_fails("", Some("b"), 503, "[-]b failed: no bread\n")]
    #[case::unknown("", Some("c"), 404, "no check \"c\"; known checks: a, b\n")]
    fn probes(#[case] query: &str, #[case] only: Option<&str>, #[case] code: u16, #[case] text: &str) {
        let probe = Probe::from_query(Some(query), only.map(str::to_owned));
        assert_eq!(answer("readyz", &report(), &probe), (code, text.to_owned()));
    }

    #[test]
    fn a_gate_closes_the_webhook_and_a_check_does_not() {
        let readiness = Readyz::new();
        assert!(readiness.can_decide());
        let _check = readiness.check("certificate");
        assert!(readiness.can_decide());
        let gate = readiness.gate("instances");
        assert!(!readiness.can_decide());
        gate.pass();
        gate.pass();
        assert!(readiness.can_decide());
        gate.fail("watch was refused");
        assert!(!readiness.can_decide() && !gate.holds());
        gate.pass();
        assert!(readiness.can_decide());
    }
}
