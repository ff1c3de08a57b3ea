//! Rounds: every Instance is edited, each edit starts a plan, and all plans have to end.

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use serde_json::{Value, json};

use super::ledger::Ledger;
use super::{CAP, PLAN, stored};
use crate::support::ground::{Ground, instance};
use crate::support::instances::{idle, run_of};
use crate::support::random::Random;
use crate::support::{Cluster, announce, suffix, wait_until};

const INSTANCES: usize = 20;
const PACKAGE: &str = include_str!("operatorversion.yaml");
/// Before a disturbance the process gets through at most so many writes more; a round takes about ten times as many.
const SPREAD: usize = 80;
/// Kinds of what plans make.
const KINDS: [(&str, &str); 3] = [("v1", CONFIG_MAPS), ("apps/v1", "deployments"), ("batch/v1", "jobs")];
const CONFIG_MAPS: &str = "configmaps";
/// What every run leaves behind: plural, and end of the name.
const LEFT: [(&str, &str); 6] = [
    (CONFIG_MAPS, "config"),
    (CONFIG_MAPS, "left"),
    (CONFIG_MAPS, "right"),
    (CONFIG_MAPS, "last"),
    ("deployments", "app"),
    ("jobs", "job"),
];

/// Objects by plural and name.
type Objects = BTreeMap<(&'static str, String), Value>;

pub struct Course<'a> {
    ground: Ground<'a>,
    ledger: Ledger,
    round: usize,
    /// Runs that ended COMPLETE, and otherwise.
    ended: (usize, usize),
}

fn name(i: usize) -> String {
    format!("i{i:02}")
}

impl<'a> Course<'a> {
    /// Instances whose first plan has ended.
    pub fn new(cluster: &'a Cluster) -> Self {
        let ground = Ground::new(cluster, "rounds", PACKAGE);
        let ledger = Ledger::new(stored::follow(cluster, ground.ns.name()));
        for i in 0..INSTANCES {
            ground.user.post(&ground.path(""), &instance(&name(i), "rounds-0.1.0", &json!({}))).ok();
        }
        let mut course = Self { ground, ledger, round: 0, ended: (0, 0) };
        course.finish();
        course
    }

    /// Rounds with so many disturbances, each at a random point of it.
    pub fn disturb(&mut self, what: &str, wanted: usize, random: &mut Random, act: impl Fn(usize)) {
        let (began, from) = (Instant::now(), self.round);
        let mut made = 0;
        while made < wanted {
            made += self.round(random, wanted - made, |i| act(made + i));
        }
        let ((runs, changes), (complete, failed)) = (self.ledger.size(), self.ended);
        announce(&format!(
            "{made} {what} in {} rounds of {INSTANCES} plans, {:.0} s; so far {runs} runs, {complete} COMPLETE and \
             {failed} failed, made {changes} changes, each once",
            self.round - from,
            began.elapsed().as_secs_f32(),
        ));
    }

    /// One round, with at most so many disturbances; how many there were.
    fn round(&mut self, random: &mut Random, most: usize, act: impl Fn(usize)) -> usize {
        self.round += 1;
        let (ground, round) = (&self.ground, self.round);
        let mut made = 0;
        thread::scope(|scope| {
            let edits = scope.spawn(|| (0..INSTANCES).for_each(|i| edit(ground, i, round)));
            while made < most && goes_on(&mut self.ledger, ground, round, 1 + random.below(SPREAD)) {
                act(made);
                made += 1;
            }
            edits.join().expect("every edit is accepted");
        });
        self.finish();
        made
    }

    /// Waits until all plans of the round have ended, and looks at what they left.
    fn finish(&mut self) {
        let round = self.round;
        let found = wait_until(&format!("all plans of round {round} have ended"), CAP, || {
            unended(&self.ground, round)
                .and_then(|(found, open)| if open.is_empty() { Ok(found) } else { Err(format!("{open:#?}")) })
        });
        self.settle();
        let faults = self.ledger.faults();
        assert!(faults.is_empty(), "in round {round}: {faults:#?}");
        for instance in &found {
            let status = &instance["status"]["planStatus"][PLAN];
            if status["status"] == "COMPLETE" {
                self.ended.0 += 1;
                continue;
            }
            self.ended.1 += 1;
            let told = status["message"].as_str().unwrap_or_default();
            assert!(!told.is_empty(), "it does not say why it failed: {instance:#}");
            announce(&format!("round {round}: {} failed: {told}", instance["metadata"]["name"]));
        }
        let all = self.objects();
        let complete = found.iter().filter(|i| i["status"]["planStatus"][PLAN]["status"] == "COMPLETE");
        complete.for_each(|instance| self.look_at_what_is_left(instance, &all));
    }

    /// Waits until everything is known that was stored until now.
    fn settle(&mut self) {
        let name = format!("marker-{}", suffix());
        let marker = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let path = self.ground.ns.path("v1", CONFIG_MAPS, "");
        wait_until("the API server takes a ConfigMap", CAP, || {
            let answer = self.ground.user.post(&path, &marker);
            if matches!(answer.code, 201 | 409) { Ok(()) } else { Err(answer.to_string()) }
        });
        self.ledger.read_up_to(&name, CAP);
    }

    fn objects(&self) -> Objects {
        let mut objects = Objects::new();
        for (api_version, plural) in KINDS {
            let path = self.ground.ns.path(api_version, plural, "");
            let items = wait_until(&format!("{plural} are listed"), CAP, || {
                let answer = self.ground.user.read(&path);
                answer.body["items"].as_array().cloned().ok_or_else(|| answer.to_string())
            });
            let named =
                |o: Value| ((plural, o["metadata"]["name"].as_str().unwrap_or_default().to_owned()), o);
            objects.extend(items.into_iter().map(named));
        }
        objects
    }

    /// A plan that is COMPLETE has made all of its objects, which are as it made them.
    fn look_at_what_is_left(&self, instance: &Value, all: &Objects) {
        let name = instance["metadata"]["name"].as_str().unwrap_or_default();
        let run = run_of(instance, PLAN);
        let extra = is_odd(self.round).then_some((CONFIG_MAPS, "extra"));
        let mut made = self.ledger.made(name, &run);
        for (plural, end) in LEFT.into_iter().chain(extra) {
            let object = all.get(&(plural, format!("{name}-{end}")));
            let object = object.unwrap_or_else(|| panic!("{name} has no {end}: {instance:#}"));
            assert_eq!(annotation(object, meta::PLAN_UID), Some(run.as_str()), "{object:#}");
            assert_eq!(object["metadata"]["labels"]["round"], self.round.to_string(), "{object:#}");
            assert!(is_healthy(plural, object), "{object:#}");
            assert!(made.remove(end), "{name}: run {run} did not make {end}");
        }
        assert!(made.remove("once") && made.is_empty(), "{name}: run {run} made besides: {made:?}");
        let is_there = |end: &str| all.contains_key(&(CONFIG_MAPS, format!("{name}-{end}")));
        assert!(!is_there("once"), "{name}: it was deleted, and is there");
        assert_eq!(is_there("extra"), extra.is_some(), "{name}");
    }
}

fn is_odd(round: usize) -> bool {
    round % 2 == 1
}

fn is_healthy(plural: &str, object: &Value) -> bool {
    let status = &object["status"];
    match plural {
        "deployments" => {
            status["observedGeneration"] == object["metadata"]["generation"] && status["readyReplicas"] == 1
        }
        // A Job may start a Pod twice: its controller is restarted, too.
        "jobs" => {
            let mut conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
        }
        _ => true,
    }
}

/// Sets the round of an Instance, again where the webhook or the API server was away.
fn edit(ground: &Ground<'_>, i: usize, round: usize) {
    let parameters = json!({"ROUND": round.to_string(), "EXTRA": is_odd(round).to_string()});
    let patch = json!({"spec": {"parameters": parameters}});
    wait_until(&format!("the edit of {} is accepted", name(i)), CAP, || {
        let answer = ground.user.merge_patch(&ground.path(&name(i)), &patch);
        if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
    });
}

/// Waits for so many writes more; whether they came before the round was over.
fn goes_on(ledger: &mut Ledger, ground: &Ground<'_>, round: usize, writes: usize) -> bool {
    let from = ledger.count();
    wait_until(&format!("{writes} writes of round {round} are made"), CAP, || {
        if ledger.count() - from >= writes {
            return Ok(true);
        }
        match unended(ground, round) {
            Ok((_, open)) if open.is_empty() => Ok(false),
            Ok((_, open)) => Err(format!("{open:#?}")),
            Err(error) => Err(error),
        }
    })
}

/// The Instances, and the status of those whose plan of the round has not ended.
fn unended(ground: &Ground<'_>, round: usize) -> Result<(Vec<Value>, Vec<Value>), String> {
    let answer = ground.user.read(&ground.path(""));
    let found = answer.body["items"].as_array().filter(|all| all.len() == INSTANCES);
    let found = found.ok_or_else(|| answer.to_string())?;
    let wanted = round.to_string();
    let is_open = |found: &&Value| {
        let edited = round == 0 || found["spec"]["parameters"]["ROUND"] == wanted.as_str();
        let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        let status = &found["status"]["planStatus"][PLAN]["status"];
        !(edited && observed && idle(found) && (*status == "COMPLETE" || *status == "FATAL_ERROR"))
    };
    Ok((found.clone(), found.iter().filter(is_open).map(|found| found["status"].clone()).collect()))
}
