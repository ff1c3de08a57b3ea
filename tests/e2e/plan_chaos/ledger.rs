//! What runs did, by what was stored and when: each change of an object once, none late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use serde_json::Value;

use super::PLAN;
use super::stored::Change;

/// A step of the plan, by its phase and its number in it.
type Step = (usize, usize);

/// The step that makes an object, by the end of the object's name.
const MADE: [(&str, Step); 8] = [
    ("config", (0, 0)),
    (ONCE, (0, 1)),
    ("left", (1, 0)),
    ("right", (1, 1)),
    ("extra", (1, 2)),
    ("app", (1, 3)),
    ("job", (2, 1)),
    ("last", (2, 2)),
];
/// What a run makes and deletes itself, and the step that deletes it. All else only a later run deletes.
const ONCE: &str = "once";
const ONCE_GONE: Step = (0, 2);

/// What is known of one Instance.
#[derive(Default)]
struct History {
    /// The version at which a run was first named, by its uid.
    begun: BTreeMap<String, u64>,
    /// The steps that are COMPLETE, of each version of the Instance and the run that it tells of.
    told: BTreeMap<u64, (String, BTreeSet<Step>)>,
    /// The first version at which something that a run made was so.
    effects: BTreeMap<Effect, u64>,
    /// What a run made and is no more, and since when.
    deleted: BTreeMap<Effect, u64>,
    /// What is there, by the end of the object's name.
    present: BTreeMap<String, (Effect, u64)>,
    /// What came after something of a later round.
    put_back: Vec<String>,
}

/// An object with one content, as a run has made it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Effect {
    run: String,
    /// The end of the object's name.
    what: String,
    uid: String,
    /// The generation, which other controllers leave alone, where the kind has one; else the version.
    content: u64,
}

/// All Instances of a namespace.
pub struct Ledger {
    changes: mpsc::Receiver<Change>,
    count: usize,
    instances: BTreeMap<String, History>,
    /// Names of objects that no plan makes.
    others: BTreeSet<String>,
}

impl Ledger {
    pub fn new(changes: mpsc::Receiver<Change>) -> Self {
        Self { changes, count: 0, instances: BTreeMap::new(), others: BTreeSet::new() }
    }

    /// How many changes of Instances and of what plans make have been stored so far.
    pub fn count(&mut self) -> usize {
        while let Ok(change) = self.changes.try_recv() {
            self.take(change);
        }
        self.count
    }

    /// Takes in everything up to an object that no plan makes.
    pub fn read_up_to(&mut self, name: &str, cap: Duration) {
        while !self.others.contains(name) {
            let change = self.changes.recv_timeout(cap).expect("etcd tells what is stored");
            self.take(change);
        }
    }

    fn take(&mut self, Change { version, plural, name, object }: Change) {
        match plural.as_str() {
            "instances" => self.instances.entry(name).or_default().told(version, &object.unwrap_or_default()),
            "configmaps" | "deployments" | "jobs" => {
                let known =
                    name.split_once('-').filter(|(instance, _)| self.instances.contains_key(*instance));
                let Some((instance, what)) = known else {
                    self.others.insert(name);
                    return;
                };
                let history = self.instances.entry(instance.to_owned()).or_default();
                history.changed(version, what, object.as_ref());
            }
            _ => return,
        }
        self.count += 1;
    }

    /// Everything that was done twice, late or out of turn.
    pub fn faults(&self) -> Vec<String> {
        let of = |(name, history): (&String, &History)| {
            let own =
                [history.undone(), history.twice(), history.late(), history.lost(), history.put_back.clone()];
            own.concat().into_iter().map(|fault| format!("{name}: {fault}")).collect::<Vec<_>>()
        };
        self.instances.iter().flat_map(of).collect()
    }

    /// How many runs there were, and how many changes of objects by them.
    pub fn size(&self) -> (usize, usize) {
        let of = |sum: (usize, usize), h: &History| (sum.0 + h.begun.len(), sum.1 + h.effects.len());
        self.instances.values().fold((0, 0), of)
    }

    /// What a run of an Instance has made, by the ends of the objects' names.
    pub fn made(&self, instance: &str, run: &str) -> BTreeSet<&str> {
        let effects = self.instances.get(instance).into_iter().flat_map(|history| history.effects.keys());
        effects.filter(|effect| effect.run == run).map(|effect| effect.what.as_str()).collect()
    }
}

impl History {
    /// Takes in a version of the Instance.
    fn told(&mut self, version: u64, object: &Value) {
        let entry = &object["status"]["planStatus"][PLAN];
        let uids = [&object["spec"]["planExecution"]["uid"], &entry["uid"]];
        for run in uids.into_iter().filter_map(Value::as_str).filter(|run| !run.is_empty()) {
            self.begun.entry(run.to_owned()).or_insert(version);
        }
        if let Some(run) = entry["uid"].as_str() {
            self.told.insert(version, (run.to_owned(), complete(entry)));
        }
    }

    /// Takes in a version of something that a run made, or its end.
    fn changed(&mut self, version: u64, what: &str, object: Option<&Value>) {
        let object = object.filter(|object| object["metadata"]["deletionTimestamp"].is_null());
        let Some(object) = object else {
            if let Some((gone, _)) = self.present.remove(what) {
                self.deleted.insert(gone, version);
            }
            return;
        };
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let run = annotation(object, meta::PLAN_UID).unwrap_or_default().to_owned();
        let content = metadata["generation"].as_u64().unwrap_or(version);
        let effect = Effect { run, what: what.to_owned(), uid: text(&metadata["uid"]), content };
        let round = text(&metadata["labels"]["round"]).parse().expect("a round");
        if let Some((before, of)) = self.present.get(what).filter(|(_, of)| *of > round) {
            self.put_back
                .push(format!("{before:?} of round {of} became {effect:?} of round {round} at {version}"));
        }
        self.effects.entry(effect.clone()).or_insert(version);
        self.present.insert(what.to_owned(), (effect, round));
    }

    /// The version at which a step of a run was first COMPLETE.
    fn completed(&self, run: &str, step: Step) -> Option<u64> {
        let mut told = self.told.iter();
        told.find(|(_, (of, complete))| of == run && complete.contains(&step)).map(|(version, _)| *version)
    }

    /// The run that was named next after a run, if that was before a version.
    fn next_run(&self, run: &str, before: u64) -> Option<(&String, &u64)> {
        let own = self.begun.get(run).copied().unwrap_or_default();
        self.begun.iter().find(|(_, begun)| **begun > own && **begun < before)
    }

    /// Steps that were COMPLETE and then were not, in one run.
    fn undone(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut last: BTreeMap<&str, (u64, &BTreeSet<Step>)> = BTreeMap::new();
        for (version, (run, complete)) in &self.told {
            let before = last.insert(run, (*version, complete));
            for (since, step) in
                before.iter().flat_map(|(since, steps)| steps.iter().map(move |s| (since, s)))
            {
                if !complete.contains(step) {
                    faults.push(format!(
                        "step {step:?} of run {run} is COMPLETE at {since} and not at {version}"
                    ));
                }
            }
        }
        faults
    }

    /// What one run changed more than once.
    fn twice(&self) -> Vec<String> {
        let mut by_run: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (Effect { run, what, uid, content }, version) in &self.effects {
            by_run.entry((run, what)).or_default().push(format!("{uid} {content} at {version}"));
        }
        let twice = by_run.into_iter().filter(|(_, changes)| changes.len() > 1);
        twice
            .map(|((run, what), changes)| format!("run {run} changed {what} more than once: {changes:?}"))
            .collect()
    }

    /// What a run changed after the step was COMPLETE, or after another run had begun.
    fn late(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (Effect { run, what, .. }, version) in &self.effects {
            let step = MADE.iter().find(|(end, _)| end == what).map(|(_, step)| *step);
            let step = step.unwrap_or_else(|| panic!("no step makes {what}"));
            if let Some(completed) = self.completed(run, step).filter(|completed| completed < version) {
                faults.push(format!(
                    "run {run} changed {what} at {version}; COMPLETE was stored at {completed}"
                ));
            }
            if let Some((next, begun)) = self.next_run(run, *version) {
                faults
                    .push(format!("run {run} changed {what} at {version}; run {next} had begun at {begun}"));
            }
        }
        faults
    }

    /// What was deleted that was to stay, or later than by the step that deletes it.
    fn lost(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (gone, version) in &self.deleted {
            let late = self.completed(&gone.run, ONCE_GONE).filter(|completed| completed < version);
            if let Some(completed) = late.filter(|_| gone.what == ONCE) {
                faults.push(format!("{gone:?} was deleted at {version}; COMPLETE was stored at {completed}"));
            }
            if gone.what != ONCE && self.next_run(&gone.run, *version).is_none() {
                faults.push(format!("{gone:?} was deleted at {version}, before another run had begun"));
            }
        }
        faults
    }
}

/// The steps of a plan's status that are COMPLETE.
fn complete(entry: &Value) -> BTreeSet<Step> {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = BTreeSet::new();
    for (i, phase) in array(&entry["phases"]).iter().enumerate() {
        let steps = array(&phase["steps"]).into_iter().enumerate();
        found.extend(steps.filter(|(_, step)| step["status"] == "COMPLETE").map(|(j, _)| (i, j)));
    }
    found
}
