//! Every order of events: each situation once, with every budget that no other one covers.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::fingerprint::fingerprint;
use super::rest;
use super::rules::Without;
use super::situation::{Budget, Event, Kind, Situation};
use super::world::World;
use crate::runtime::controller::Action;

/// Passes within which a situation comes to rest.
const PASSES: usize = 8;

/// After how many situations a line says how far the exploration is.
const LINE_EVERY: usize = 20_000;

/// What was found wrong, and the events that led to it.
#[derive(Debug)]
pub struct Violation {
    pub what: String,
    pub events: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Explored {
    /// Every event that happened.
    pub happened: HashSet<Event>,
    /// How many writes met a newer version.
    pub conflicts: usize,
    /// Whether everything that may happen did so on one path.
    pub spent: bool,
}

/// How a situation was reached: from which one, and by what.
type Reached = (Option<u64>, Event);

/// A situation.
struct Node {
    situation: Rc<Situation>,
    /// How it was reached first.
    reached: Reached,
    /// The budgets that it is followed with.
    budgets: Vec<Budget>,
    /// What follows it, by kinds of events.
    next: Vec<(Kind, Rc<[u64]>)>,
    /// Whether it is known to come to rest.
    rests: bool,
}

pub struct Exploration {
    world: World,
    all: Budget,
    nodes: HashMap<u64, Node>,
    /// What is to be followed, by the number of events spent.
    queue: BTreeMap<usize, VecDeque<(u64, Budget)>>,
    explored: Explored,
}

impl Exploration {
    pub fn new(without: Option<Without>, all: Budget) -> Self {
        let (world, explored) = (World::new(without, all.of), Explored::default());
        Self { world, all, nodes: HashMap::new(), queue: BTreeMap::new(), explored }
    }

    /// Looks at every situation that events lead to.
    pub fn run(mut self, created: &[bool]) -> Result<Explored, Violation> {
        for &admitted in created {
            let key = self.meet(self.world.created(admitted), (None, Event::Created { admitted }))?;
            self.visit(key, self.all);
        }
        let mut followed = 0_usize;
        while let Some((key, budget)) = self.pop() {
            self.follow(key, budget)?;
            followed += 1;
            if followed.is_multiple_of(LINE_EVERY) {
                let waiting: Vec<(usize, usize)> =
                    self.queue.iter().map(|(spent, queue)| (*spent, queue.len())).collect();
                println!("followed {followed}: {} states, waiting by events: {waiting:?}", self.nodes.len());
            }
        }
        let (states, passes, conflicts) = (self.nodes.len(), self.world.passes, self.world.conflicts);
        println!(
            "counted: {states} states of an Instance in {passes} passes, {conflicts} conflicts, none stuck"
        );
        Ok(Explored { conflicts, ..self.explored })
    }

    fn pop(&mut self) -> Option<(u64, Budget)> {
        let mut fewest = self.queue.first_entry()?;
        let found = fewest.get_mut().pop_front();
        if fewest.get().is_empty() {
            fewest.remove();
        }
        found
    }

    /// Takes in what an event leads to, if it is whole.
    fn meet(&mut self, situation: Situation, reached: Reached) -> Result<u64, Violation> {
        if let Some(what) = situation.cluster.ledger.broken.clone() {
            return Err(Violation { what, events: self.events(reached) });
        }
        self.explored.happened.insert(reached.1);
        let key = fingerprint(&situation);
        self.nodes.entry(key).or_insert_with(|| Node {
            situation: Rc::new(situation),
            reached,
            budgets: Vec::new(),
            next: Vec::new(),
            rests: false,
        });
        Ok(key)
    }

    /// Follows a situation later, unless all that may happen with this budget is looked at anyway.
    fn visit(&mut self, key: u64, budget: Budget) {
        self.explored.spent |= budget.left() == 0;
        let budgets = &mut self.node(key).budgets;
        if budgets.iter().any(|known| known.covers(&budget)) {
            return;
        }
        budgets.retain(|known| !budget.covers(known));
        budgets.push(budget);
        self.queue.entry(self.all.left() - budget.left()).or_default().push_back((key, budget));
    }

    fn follow(&mut self, key: u64, budget: Budget) -> Result<(), Violation> {
        if !self.node(key).budgets.contains(&budget) {
            return Ok(());
        }
        for kind in Kind::ALL {
            let Some(left) = budget.spend(kind) else { continue };
            for next in self.next(key, kind)?.iter() {
                self.visit(*next, left);
            }
        }
        self.comes_to_rest(key)
    }

    /// What events of a kind lead to.
    fn next(&mut self, key: u64, kind: Kind) -> Result<Rc<[u64]>, Violation> {
        let node = self.node(key);
        if let Some((_, known)) = node.next.iter().find(|(known, _)| *known == kind) {
            return Ok(known.clone());
        }
        let situation = node.situation.clone();
        let events = self.world.follow(&situation, kind);
        let met = events.into_iter().map(|(event, next)| self.meet(next, (Some(key), event)));
        let next: Rc<[u64]> = met.collect::<Result<_, _>>()?;
        self.node(key).next.push((kind, next.clone()));
        Ok(next)
    }

    /// What is wrong, should nothing happen to a situation that a pass leaves as it is.
    fn objection(&mut self, key: u64) -> Option<String> {
        let situation = self.node(key).situation.clone();
        let ended = self.world.pass(&situation.cluster).ended;
        let awaits = rest::awaits_version(&situation.cluster);
        let busy = (ended != Action::AwaitChange && !awaits)
            .then(|| format!("the controller does not wait: {ended:?}"));
        busy.or_else(|| rest::objection(&situation.cluster))
    }

    /// Without further events, a situation leads to one where nothing is left to do, and nothing is missing.
    fn comes_to_rest(&mut self, from: u64) -> Result<(), Violation> {
        let mut key = from;
        let mut before = Vec::new();
        while !self.node(key).rests {
            before.push(key);
            let after = self.next(key, Kind::Passes)?[0];
            let objection = match before.len() {
                _ if after == key => self.objection(key),
                PASSES.. => Some("it does not come to rest".to_owned()),
                _ => None,
            };
            if let Some(what) = objection {
                let reached = self.node(key).reached;
                return Err(Violation { what, events: self.events(reached) });
            }
            if after == key {
                break;
            }
            key = after;
        }
        before.into_iter().for_each(|key| self.node(key).rests = true);
        Ok(())
    }

    /// The events that led to a situation, for people.
    fn events(&mut self, reached: Reached) -> Vec<String> {
        let mut path = vec![reached];
        while let Some((Some(from), _)) = path.last() {
            path.push(self.nodes[from].reached);
        }
        let tell = |(from, event): (Option<u64>, Event)| match from {
            Some(from) => self.world.tell(&self.nodes[&from].situation, event),
            None => format!("{event:?}"),
        };
        path.into_iter().rev().map(tell).collect()
    }

    fn node(&mut self, key: u64) -> &mut Node {
        self.nodes.get_mut(&key).unwrap()
    }
}
