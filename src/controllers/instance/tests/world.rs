//! What each event leads to.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Value, json};

use super::api::{Api, Moment, Wake};
use super::cluster::{Cluster, Identity};
use super::objects::INSTANCE;
use super::process::SharedParts;
use super::rules::Without;
use super::situation::{Event, Kind, Situation, Sleeper};
use super::users::{Edit, Way, Webhooks};
use crate::runtime::controller::Action;

/// How much of what is known is kept.
const KEPT: usize = 1_000;

/// The processes and the users.
pub struct World {
    processes: SharedParts,
    users: Webhooks,
    /// Which edits there are.
    edits: &'static [(Edit, Way)],
    /// The last passes and edits: whichever process sleeps, those who are awake do the same.
    known_passes: HashMap<Identity, Rc<Pass>>,
    known_edits: HashMap<(Identity, Event), (Cluster, Option<Cluster>)>,
    /// How often a process reconciled.
    pub passes: usize,
    /// How many of its writes met a newer version.
    pub conflicts: usize,
}

/// What one pass of a process did.
pub struct Pass {
    began: Cluster,
    cluster: Cluster,
    pub ended: Action,
    moments: Vec<Moment>,
    log: Vec<String>,
}

impl World {
    pub fn new(without: Option<Without>, edits: &'static [(Edit, Way)]) -> Self {
        Self {
            processes: SharedParts::new(without),
            users: Webhooks::new(without),
            edits,
            known_passes: HashMap::new(),
            known_edits: HashMap::new(),
            passes: 0,
            conflicts: 0,
        }
    }

    pub fn created(&self, admitted: bool) -> Situation {
        Situation { cluster: self.users.create(admitted), sleeper: None }
    }

    /// A process that is awake reconciles.
    pub fn pass(&mut self, cluster: &Cluster) -> Rc<Pass> {
        if let Some(known) = self.known_passes.get(&cluster.identity()) {
            return known.clone();
        }
        let api = Api::new(cluster.clone(), self.processes.without);
        let pass = Rc::new(self.reconcile(cluster, api));
        if self.known_passes.len() >= KEPT {
            self.known_passes.clear();
        }
        self.known_passes.insert(cluster.identity(), pass.clone());
        pass
    }

    fn reconcile(&mut self, cached: &Cluster, api: Api) -> Pass {
        self.passes += 1;
        let (api, ended) = self.processes.pass(cached, api);
        assert!(api.wake.is_none(), "it does again what it did: {:?}", api.log);
        self.conflicts += api.conflicts;
        Pass { began: cached.clone(), cluster: api.cluster, ended, moments: api.moments, log: api.log }
    }

    /// Every event of a kind, and what it leads to.
    pub fn follow(&mut self, from: &Situation, kind: Kind) -> Vec<(Event, Situation)> {
        let beside = |event, cluster| (event, Situation { cluster, sleeper: from.sleeper.clone() });
        match kind {
            Kind::Passes => vec![beside(Event::Passes, self.pass(&from.cluster).cluster.clone())],
            Kind::Dies => {
                let pass = self.pass(&from.cluster);
                let died = |(after_writes, cluster): (usize, &Cluster)| {
                    beside(Event::Dies { after_writes }, cluster.clone())
                };
                pass.deaths().map(died).collect()
            }
            Kind::FallsAsleep if from.sleeper.is_none() => self.pass(&from.cluster).sleeps(),
            Kind::WakesUp => self.wakes(from).map_or_else(Vec::new, |pass| {
                vec![(Event::WakesUp, Situation { cluster: pass.cluster, sleeper: None })]
            }),
            Kind::Edited => {
                let events = self.edits.iter().map(|&(edit, way)| Event::Edited(edit, way));
                events.filter_map(|event| Some(beside(event, self.write(&from.cluster, event)?))).collect()
            }
            Kind::Deleted => self
                .write(&from.cluster, Event::Deleted)
                .map(|after| beside(Event::Deleted, after))
                .into_iter()
                .collect(),
            Kind::Labelled if from.sleeper.is_some() => self
                .write(&from.cluster, Event::Labelled)
                .map(|after| beside(Event::Labelled, after))
                .into_iter()
                .collect(),
            Kind::FallsAsleep | Kind::Labelled => Vec::new(),
        }
    }

    /// What others than the processes write.
    fn write(&mut self, cluster: &Cluster, event: Event) -> Option<Cluster> {
        let key = (cluster.identity(), event);
        if let Some((_, known)) = self.known_edits.get(&key) {
            return known.clone();
        }
        let after = match event {
            Event::Edited(edit, way) => self.users.edit(cluster, (edit, way)),
            Event::Deleted => deleted(cluster),
            Event::Labelled => labelled(cluster),
            _ => None,
        };
        if self.known_edits.len() >= KEPT {
            self.known_edits.clear();
        }
        self.known_edits.insert(key, (cluster.clone(), after.clone()));
        after
    }

    /// The pass of the process that sleeps, to its end.
    fn wakes(&mut self, from: &Situation) -> Option<Pass> {
        let Sleeper { cached, before_request, .. } = from.sleeper.as_ref()?;
        let mut api = Api::new(cached.clone(), self.processes.without);
        api.wake = Some(Wake { before_request: *before_request, cluster: from.cluster.clone() });
        Some(self.reconcile(cached, api))
    }

    /// An event, for people.
    pub fn tell(&mut self, from: &Situation, event: Event) -> String {
        let pass = match event {
            Event::WakesUp => self.wakes(from).map(Rc::new),
            _ => Some(self.pass(&from.cluster)),
        };
        let Some(pass) = pass else { return format!("{event:?}") };
        let (moments, log, ended) = (&pass.moments, &pass.log, pass.ended);
        match event {
            Event::Passes | Event::WakesUp => format!("{event:?}, {ended:?}: {log:?}"),
            Event::Dies { after_writes } => {
                let requests = moments.iter().take_while(|moment| moment.writes < after_writes).count();
                format!("{event:?}: {:?}", &log[..requests])
            }
            Event::FallsAsleep { before_request } => format!("{event:?}: {:?}", &log[..before_request]),
            Event::Created { .. } | Event::Edited(..) | Event::Deleted | Event::Labelled => {
                format!("{event:?}")
            }
        }
    }
}

impl Pass {
    /// What a process leaves that dies after a write.
    fn deaths(&self) -> impl Iterator<Item = (usize, &Cluster)> {
        let pairs = self.moments.windows(2).filter(|pair| pair[0].writes < pair[1].writes);
        pairs.map(|pair| (pair[1].writes, &pair[1].cluster))
    }

    /// What a process leaves that falls asleep before a request.
    fn sleeps(&self) -> Vec<(Event, Situation)> {
        let asleep = |(before_request, moment): (usize, &Moment)| {
            let (cached, left) = (self.began.clone(), moment.cluster.clone());
            let sleeper = Some(Sleeper { cached, before_request, left });
            (Event::FallsAsleep { before_request }, Situation { cluster: moment.cluster.clone(), sleeper })
        };
        self.moments.iter().enumerate().map(asleep).collect()
    }
}

/// A user deletes the Instance.
fn deleted(cluster: &Cluster) -> Option<Cluster> {
    let mut after = cluster.clone();
    after.objects.instance()?;
    after.delete_instance();
    Some(after)
}

/// Another controller changes a label.
fn labelled(cluster: &Cluster) -> Option<Cluster> {
    let mut object = Value::clone(cluster.objects.instance()?);
    object["metadata"]["labels"] = json!({"touched": "true"});
    let mut after = cluster.clone();
    after.store(INSTANCE, object);
    Some(after)
}
