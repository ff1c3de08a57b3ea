//! Every order of what users, processes and crashes do to an Instance.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use rstest::rstest;
use serde_json::{Value, json};

use super::api::{Api, Halt, Wake};
use super::cluster::Cluster;
use super::fingerprint::Fingerprint;
use super::objects::INSTANCE;
use super::process::{PassResult, SharedParts};
use super::rest;
use super::rules::Without;
use super::users::{ADMITTED, CANCELLED, EDITS, Edit, FEW, TRIGGER, Way, Webhooks};
use crate::runtime::controller::Action;

/// What is left to happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Budget {
    edits: usize,
    /// Which edits these may be.
    of: &'static [(Edit, Way)],
    deletions: usize,
    crashes: usize,
    /// How often another process takes itself for the leader too, and falls asleep.
    sleepers: usize,
    /// How often another controller changes a label while one sleeps.
    conflicts: usize,
}

/// A process that sleeps.
#[derive(Clone)]
struct Sleeper {
    /// What its watches had shown.
    cached: Cluster,
    before_request: usize,
    /// What it fell asleep on.
    left: Cluster,
}

#[derive(Clone)]
struct State {
    cluster: Cluster,
    budget: Budget,
    sleeper: Option<Sleeper>,
    path: Path,
}

/// The events that led to a state, shared with the states before it.
#[derive(Clone, Default)]
struct Path(Option<Rc<(Path, String)>>);

impl Path {
    fn and(&self, event: String) -> Self {
        Self(Some(Rc::new((self.clone(), event))))
    }

    fn events(&self) -> Vec<&str> {
        let (mut events, mut path) = (Vec::new(), self);
        while let Some((before, event)) = path.0.as_deref() {
            events.push(event.as_str());
            path = before;
        }
        events.reverse();
        events
    }
}

fn fingerprint(state: &State) -> u64 {
    let mut print = Fingerprint::default();
    print.add(&state.budget);
    print.cluster(&state.cluster);
    if let Some(Sleeper { cached, before_request, left }) = &state.sleeper {
        print.add(before_request);
        print.cluster(cached);
        print.versions(left, &state.cluster);
    }
    print.finish()
}

/// What is known of a state that was reached.
struct Reached {
    path: Path,
    /// The state after one more pass of a process that is awake.
    after: u64,
    /// What is wrong, should nothing more happen.
    objection: Option<String>,
}

/// What was found wrong, and the events that led to it.
#[derive(Debug)]
struct Violation {
    what: String,
    events: Vec<String>,
}

struct Exploration {
    machine: SharedParts,
    users: Webhooks,
    seen: HashSet<u64>,
    queue: VecDeque<State>,
    passes: usize,
}

impl Exploration {
    fn new(without: Option<Without>) -> Self {
        let (machine, users) = (SharedParts::new(without), Webhooks::new(without));
        Self { machine, users, seen: HashSet::new(), queue: VecDeque::new(), passes: 0 }
    }

    /// Every state that events lead to; how many there are.
    fn run(mut self, budget: &Budget) -> Result<usize, Violation> {
        for admitted in [true, false].into_iter().filter(|admitted| *admitted || budget.of == EDITS) {
            let path = Path::default().and(format!("created, admitted: {admitted}"));
            let (cluster, budget) = (self.users.create(admitted), budget.clone());
            self.reach(State { cluster, budget, sleeper: None, path })?;
        }
        let mut reached = HashMap::new();
        while let Some(state) = self.queue.pop_front() {
            let key = fingerprint(&state);
            let after = self.follow(&state)?;
            reached.insert(key, after);
        }
        for reached_state in reached.values() {
            comes_to_rest(&reached, reached_state)?;
        }
        println!("counted: {} states of an Instance in {} passes, none stuck", reached.len(), self.passes);
        Ok(reached.len())
    }

    /// Takes in a state, if it is new and whole.
    fn reach(&mut self, state: State) -> Result<u64, Violation> {
        if let Some(what) = &state.cluster.ledger.broken {
            return Err(violation(what.clone(), &state.path));
        }
        let key = fingerprint(&state);
        if self.seen.insert(key) {
            self.queue.push_back(state);
        }
        Ok(key)
    }

    fn pass(&mut self, cached: &Cluster, api: Api) -> (Api, PassResult) {
        self.passes += 1;
        self.machine.pass(cached, api)
    }

    fn api(&self, cluster: &Cluster, halt: Halt) -> Api {
        let mut api = Api::new(cluster.clone(), self.machine.without);
        api.halt = halt;
        api
    }

    /// Every state that one more event leads to.
    fn follow(&mut self, state: &State) -> Result<Reached, Violation> {
        let (api, ended) = self.pass(&state.cluster, self.api(&state.cluster, Halt::Never));
        let what = format!("a process reconciles, {ended:?}: {:?}", api.log);
        let mut after = State { cluster: api.cluster, path: state.path.and(what), ..state.clone() };
        if after.cluster.objects == state.cluster.objects {
            after.path = state.path.clone();
        }
        let waits = ended == PassResult::By(Action::AwaitChange);
        let busy = (!waits).then(|| format!("the controller does not wait: {ended:?}"));
        let objection = busy.or_else(|| rest::objection(&state.cluster));
        let key = self.reach(after)?;
        self.crashes(state, api.writes)?;
        self.sleeps(state, api.requests)?;
        self.wakes(state)?;
        self.users_act(state)?;
        Ok(Reached { path: state.path.clone(), after: key, objection })
    }

    /// A process dies after any write.
    fn crashes(&mut self, state: &State, writes: usize) -> Result<(), Violation> {
        if state.budget.crashes == 0 {
            return Ok(());
        }
        for written in 1..writes {
            let api = self.api(&state.cluster, Halt::AfterWrites(written));
            let (api, _) = self.pass(&state.cluster, api);
            let path = state.path.and(format!("a process dies: {:?}", api.log));
            let mut after = State { cluster: api.cluster, path, ..state.clone() };
            after.budget.crashes -= 1;
            self.reach(after)?;
        }
        Ok(())
    }

    /// A process falls asleep before any request.
    fn sleeps(&mut self, state: &State, requests: usize) -> Result<(), Violation> {
        if state.budget.sleepers == 0 || state.sleeper.is_some() {
            return Ok(());
        }
        for before_request in 0..requests {
            let api = self.api(&state.cluster, Halt::BeforeRequest(before_request));
            let (api, _) = self.pass(&state.cluster, api);
            let path = state.path.and(format!("a process falls asleep: {:?}", api.log));
            let (cached, left) = (state.cluster.clone(), api.cluster.clone());
            let sleeper = Some(Sleeper { cached, before_request, left });
            let mut after = State { cluster: api.cluster, path, sleeper, ..state.clone() };
            after.budget.sleepers -= 1;
            self.reach(after)?;
        }
        Ok(())
    }

    /// The process that sleeps goes on.
    fn wakes(&mut self, state: &State) -> Result<(), Violation> {
        let Some(Sleeper { cached, before_request, .. }) = &state.sleeper else { return Ok(()) };
        let mut api = self.api(cached, Halt::Never);
        api.wake = Some(Wake { before_request: *before_request, cluster: state.cluster.clone() });
        let (api, ended) = self.pass(cached, api);
        assert!(api.wake.is_none(), "it does again what it did: {:?}", api.log);
        let path = state.path.and(format!("the process wakes up, {ended:?}: {:?}", api.log));
        self.reach(State { cluster: api.cluster, path, sleeper: None, ..state.clone() })?;
        Ok(())
    }

    fn users_act(&mut self, state: &State) -> Result<(), Violation> {
        if state.budget.edits > 0 {
            for edit in state.budget.of.iter().copied() {
                let Some(cluster) = self.users.edit(&state.cluster, edit) else { continue };
                let path = state.path.and(format!("edit {edit:?}"));
                let mut after = State { cluster, path, ..state.clone() };
                after.budget.edits -= 1;
                self.reach(after)?;
            }
        }
        let Some(object) = state.cluster.objects.instance() else { return Ok(()) };
        if state.budget.deletions > 0 {
            let mut after = State { path: state.path.and("delete".to_owned()), ..state.clone() };
            after.cluster.delete_instance();
            after.budget.deletions -= 1;
            self.reach(after)?;
        }
        if state.budget.conflicts > 0 && state.sleeper.is_some() {
            let mut after = State { path: state.path.and("label".to_owned()), ..state.clone() };
            let mut object = Value::clone(object);
            object["metadata"]["labels"] = json!({"touched": "true"});
            after.cluster.store(INSTANCE, object);
            after.budget.conflicts -= 1;
            self.reach(after)?;
        }
        Ok(())
    }
}

fn violation(what: String, path: &Path) -> Violation {
    Violation { what, events: path.events().into_iter().map(str::to_owned).collect() }
}

/// Without further events, a state leads to one where nothing is left to do, and nothing is missing.
fn comes_to_rest(reached: &HashMap<u64, Reached>, from: &Reached) -> Result<(), Violation> {
    let mut state = from;
    for _ in 0..8 {
        let after = &reached[&state.after];
        if after.after == state.after {
            return match &after.objection {
                Some(what) => Err(violation(what.clone(), &after.path)),
                None => Ok(()),
            };
        }
        state = after;
    }
    Err(violation("it does not come to rest".to_owned(), &state.path))
}

fn explore(budget: &Budget) -> usize {
    match Exploration::new(None).run(budget) {
        Ok(states) => states,
        Err(Violation { what, events }) => panic!("{what}\n{events:#?}"),
    }
}

const NONE: Budget = Budget { edits: 0, of: &EDITS, deletions: 0, crashes: 0, sleepers: 0, conflicts: 0 };
/// One edit through admission while a process sleeps.
const ASLEEP: Budget = Budget { edits: 1, of: &ADMITTED, sleepers: 1, ..NONE };
const ONE: Budget = Budget { edits: 1, ..NONE };

#[rstest]
#[case::edits(Budget { edits: 2, of: &FEW, ..NONE })]
#[case::every_edit(ONE)]
#[case::crashes(Budget { edits: 1, of: &FEW, crashes: 1, ..NONE })]
#[case::deletions(Budget { deletions: 1, crashes: 1, ..NONE })]
#[case::sleepers(Budget { conflicts: 1, ..ASLEEP })]
#[case::deletions_asleep(Budget { sleepers: 1, deletions: 1, of: &ADMITTED, ..NONE })]
fn no_order_of_events_loses_an_edit(#[case] budget: Budget) {
    assert!(explore(&budget) > 20);
}

#[test]
#[ignore = "minutes; run by make soak"]
fn no_order_of_many_events_loses_an_edit() {
    let budget = Budget { edits: 2, of: &EDITS, deletions: 1, crashes: 1, sleepers: 1, conflicts: 1 };
    assert!(explore(&budget) > 1_000);
}

/// Each rule is needed: without it, the same exploration finds what it is for.
#[rstest]
#[case::versions(Without::Versions, ASLEEP, "not of the last run")]
#[case::child_versions(Without::ChildVersions, ASLEEP, "not of the last run")]
#[case::first_write_creates(Without::FirstWriteCreates, ASLEEP, "not of the last run")]
#[case::proof(Without::Proof, ASLEEP, "not of the last run")]
#[case::test_of_clear(Without::TestOfClear, Budget { of: &TRIGGER, ..ASLEEP }, "was admitted and never started")]
#[case::effects_first(Without::EffectsFirst, NONE, "plan deploy is COMPLETE, and d1 is None")]
#[case::stamped_spec(Without::StampedSpec, Budget { of: &FEW, crashes: 1, ..ONE }, "not of the last run")]
#[case::basis(Without::Basis, ONE, "")]
#[case::drift(Without::Drift, ONE, "")]
#[case::owed(Without::Owed, ONE, "")]
#[case::put_back(Without::PutBack, Budget { of: &CANCELLED, crashes: 1, ..ONE }, "")]
#[case::report(Without::Report, ONE, "")]
#[case::judgement(Without::Judgement, ONE, "on a spec that admission refuses")]
#[case::lock(Without::Lock, ONE, "a locked Instance was admitted")]
#[case::finalizer(Without::Finalizer, Budget { deletions: 1, ..NONE }, "")]
fn each_rule_is_missed(#[case] rule: Without, #[case] budget: Budget, #[case] found: &str) {
    let Err(violation) = Exploration::new(Some(rule)).run(&budget) else {
        panic!("nothing is found without {rule:?}")
    };
    println!("without {rule:?}: {}", violation.what);
    assert!(violation.what.contains(found), "{violation:#?}");
}
