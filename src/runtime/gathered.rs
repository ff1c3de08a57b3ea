//! What a reconcile has of the world ([`Facts`]): gets what a pass lacks, from the objects that are watched and kept,
//! else by request, each within a limit.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::ApiFailure;
use interlock_core::reconcile::{FRESH_ANSWERS, Facts, Lookup, Needs, ObjectList, PodAnswer, PodRequest};
use jiff::Timestamp;
use rustls::ClientConfig;
use serde_json::Value;

use super::executor::{Executor, OfProcess, WriteIdentity};
use super::index::{Child, Observer, Store};
use crate::cluster::pods;
use crate::cluster::read::BoundedList;
use crate::cluster::requests::local;

/// Other objects that a view has.
const OBJECTS: usize = 64;
/// Lists that a view has.
const LISTS: usize = 16;
/// Requests to pods that a view has the answers of.
const ASKS: usize = 512;
/// Bytes that these answers may have together.
const ANSWERS: usize = 32 << 20;
/// How long the pods of one step are asked: a worker is not held up by many that are silent.
const ASKED: Duration = Duration::from_secs(30);
/// Requests to the API server at once.
const CONCURRENT: usize = 8;
/// Requests to pods at once.
const CONCURRENT_ASKS: usize = 64;

/// Where objects are looked up.
pub trait ObjectSource: Sync {
    /// An object as it is kept, where that suffices. With `certainly` its absence does not.
    fn kept(&self, key: &ObjectKey, certainly: bool) -> impl Future<Output = Option<Lookup>> + Send;

    /// An object by request.
    fn read(&self, key: &ObjectKey) -> impl Future<Output = Result<Lookup, ApiFailure>> + Send;
}

/// Objects that were looked up.
#[derive(Default)]
pub struct LookedUp {
    /// Those that were read by request.
    pub by_request: Vec<ObjectKey>,
    /// Those that could not be read.
    pub failed: Vec<(ObjectKey, ApiFailure)>,
}

/// Refuses a need that its host serves none of: the same decision would follow again and again.
pub fn serves_all(served: &[&str], needs: &Needs) -> Result<(), ApiFailure> {
    let unserved = needs
        .parts()
        .find(|part| !["objects", "if_allowed", "certainly"].contains(part) && !served.contains(part));
    match unserved {
        Some(part) => Err(local(format!("what decides here lacks {part:?}, which nothing gets for it"))),
        None => Ok(()),
    }
}

/// Looks up the objects that a pass lacks: as they are kept, else by request. One of which a lookup or a write has failed
/// is read by request, whatever is kept of it.
pub async fn look_up(from: &impl ObjectSource, facts: &mut Facts, needs: &Needs) -> LookedUp {
    let Needs { objects, if_allowed, certainly, .. } = needs;
    let wanted = objects.iter().chain(if_allowed).map(|key| (key, false));
    let wanted = wanted.chain(certainly.iter().map(|key| (key, true)));
    // With owned keys, as a future of a reconcile moves between threads.
    let wanted: Vec<(ObjectKey, bool, bool)> = wanted
        .map(|(key, certainly)| (key.clone(), certainly, facts.failures.remove(key).is_some()))
        .collect();
    let looked = wanted.into_iter().map(|(key, certainly, failed)| async move {
        match if failed { None } else { from.kept(&key, certainly).await } {
            Some(kept) => (key, Ok(kept), false),
            None => {
                let found = from.read(&key).await;
                (key, found, true)
            }
        }
    });
    let mut all = LookedUp::default();
    let mut looked = pin!(futures::stream::iter(looked).buffered(CONCURRENT));
    while let Some((key, found, by_request)) = looked.next().await {
        let found = match found {
            Ok(found) => found,
            Err(failure) if failure.code == 403 && if_allowed.contains(&key) => Lookup::Forbidden,
            Err(failure) => {
                all.failed.push((key, failure));
                continue;
            }
        };
        if by_request {
            all.by_request.push(key.clone());
        }
        facts.objects.insert(key, found);
    }
    all
}

/// By request alone.
impl<I: WriteIdentity + Sync> ObjectSource for Executor<I> {
    async fn kept(&self, _: &ObjectKey, _: bool) -> Option<Lookup> {
        None
    }

    async fn read(&self, key: &ObjectKey) -> Result<Lookup, ApiFailure> {
        Ok(self.get(key).await?.map_or(Lookup::Absent, Lookup::Found))
    }
}

/// What the objects of a described kind are looked up in.
#[derive(Clone, Copy)]
pub struct Sources<'s> {
    /// By request.
    pub executor: &'s Executor<OfProcess>,
    /// Those that are watched and kept.
    pub store: &'s Store,
    /// Wakes what a newly seen object affects.
    pub observer: &'s Observer,
}

impl ObjectSource for Sources<'_> {
    async fn kept(&self, key: &ObjectKey, certainly: bool) -> Option<Lookup> {
        match self.store.kept_object(key)? {
            Child::Kept(object) => Some(Lookup::Found(object)),
            Child::Absent => (!certainly).then_some(Lookup::Absent),
            Child::Unread => None,
        }
    }

    /// What is kept of it is as new from now on.
    async fn read(&self, key: &ObjectKey) -> Result<Lookup, ApiFailure> {
        let found = self.executor.read(key).await?;
        if let Lookup::Found(object) = &found {
            self.saw(object);
        }
        Ok(found)
    }
}

impl Sources<'_> {
    /// An object as it is kept, else by request.
    pub async fn look_up(&self, key: &ObjectKey) -> Result<Lookup, ApiFailure> {
        match self.kept(key, false).await {
            Some(kept) => Ok(kept),
            None => self.read(key).await,
        }
    }

    /// Takes in an object that the API server answered.
    pub fn saw(&self, object: &Arc<Value>) {
        self.store.saw(object).into_iter().for_each(|affected| self.observer.took(affected));
    }

    /// Takes in that an object is gone.
    pub fn saw_gone(&self, key: &ObjectKey, uid: &str) {
        self.store.saw_gone(key, uid).into_iter().for_each(|affected| self.observer.took(affected));
    }
}

/// The facts of a reconcile, and where they come from.
#[derive(Debug, Default)]
pub struct Gathered {
    pub facts: Facts,
    /// The objects that were read by request.
    requested: BTreeSet<ObjectKey>,
    /// The lists that were read by request.
    requested_lists: BTreeSet<ObjectList>,
    /// Bytes of the answers of pods.
    bytes: usize,
}

/// More than a reconcile may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// How much.
    pub what: &'static str,
    /// What to do about it, to continue a sentence.
    pub remedy: &'static str,
}

impl TooMuch {
    const fn of(self, what: &'static str) -> Self {
        Self { what, ..self }
    }
}

const STRAYS: TooMuch =
    TooMuch { what: "", remedy: ": delete what has the labels of its children and is none of them" };
const ANSWERS_OF_PODS: TooMuch = TooMuch {
    what: "more than 512 answers of pods",
    remedy: ": have at most 512 pods on a side, or several DataPlanes",
};

/// Why a view does not have what a pass lacks.
#[derive(Debug)]
pub enum GatherError {
    /// A request failed.
    Failed(ApiFailure),
    /// It is more than a view may have.
    TooMuch(TooMuch),
}

impl From<ApiFailure> for GatherError {
    fn from(failure: ApiFailure) -> Self {
        Self::Failed(failure)
    }
}

impl Gathered {
    /// Looks up objects.
    pub async fn objects(&mut self, from: Sources<'_>, needs: &Needs) -> Result<(), GatherError> {
        let wanted = needs.objects.len() + needs.if_allowed.len() + needs.certainly.len();
        within(self.facts.objects.len() + wanted, OBJECTS, STRAYS.of("more than 64 objects"))?;
        let LookedUp { by_request, failed } = look_up(&from, &mut self.facts, needs).await;
        self.requested.extend(by_request);
        failed.into_iter().next().map_or(Ok(()), |(_, failure)| Err(failure.into()))
    }

    /// Gets lists; those by request one after the other, as each may take some memory.
    pub async fn lists(&mut self, from: Sources<'_>, lists: BTreeSet<ObjectList>) -> Result<(), GatherError> {
        within(self.facts.lists.len() + lists.len(), LISTS, STRAYS.of("more than 16 lists"))?;
        for list in lists {
            if let Some(objects) = from.store.kept_list(&list) {
                self.facts.lists.insert(list, objects);
                continue;
            }
            let BoundedList::Whole(objects) = from.executor.list(&list).await? else {
                return Err(GatherError::TooMuch(STRAYS.of("a list of more than 500 objects or 16 MiB")));
            };
            self.requested_lists.insert(list.clone());
            self.facts.lists.insert(list, objects.into_iter().map(Arc::new).collect());
        }
        Ok(())
    }

    /// Asks pods, over TLS with `tls`. A pod that does not answer is an answer.
    pub async fn ask(
        &mut self,
        requests: BTreeSet<PodRequest>,
        tls: Option<Arc<ClientConfig>>,
        now: Timestamp,
    ) -> Result<(), GatherError> {
        within(self.facts.answers.len() + requests.len(), ASKS, ANSWERS_OF_PODS)?;
        if requests.is_empty() {
            return Ok(());
        }
        self.facts.asked.get_or_insert(now);
        for request in &requests {
            self.facts.answers.insert(request.clone(), Err("was not asked in time".to_owned()));
        }
        let asked = futures::stream::iter(requests).map(|request| {
            let tls = tls.clone();
            async move {
                let answer = pods::ask(&request, tls).await;
                (request, answer)
            }
        });
        let mut asked = pin!(asked.buffer_unordered(CONCURRENT_ASKS).take_until(tokio::time::sleep(ASKED)));
        while let Some((request, answer)) = asked.next().await {
            let answer = self.bounded(answer);
            self.facts.answers.insert(request, answer);
        }
        Ok(())
    }

    /// Drops the answers of pods: they are asked again.
    pub fn forget_answers(&mut self) {
        self.facts.answers.clear();
        (self.facts.asked, self.bytes) = (None, 0);
    }

    /// An answer that fits beside the others.
    fn bounded(&mut self, answer: PodAnswer) -> PodAnswer {
        let size = answer.as_ref().map_or(0, |answer| answer.body.len());
        if self.bytes + size > ANSWERS {
            return Err("answers more than Interlock takes of all pods together".to_owned());
        }
        self.bytes += size;
        answer
    }

    /// Takes in what the API server answered a write with; `None` where the object is gone.
    pub fn wrote(&mut self, key: &ObjectKey, answer: Option<Arc<Value>>) {
        self.facts.wrote(key.clone(), answer);
        self.forget_lists(key);
    }

    /// A write of an object met another version: it is read again, by request.
    pub fn doubt(&mut self, key: &ObjectKey, failure: ApiFailure) {
        self.facts.objects.remove(key);
        self.facts.failures.insert(key.clone(), failure);
        self.forget_lists(key);
    }

    fn forget_lists(&mut self, key: &ObjectKey) {
        self.facts.lists.retain(|list, _| list.gvk != key.gvk);
        self.requested_lists.retain(|list| list.gvk != key.gvk);
    }

    /// After writes: what is kept is looked up again, as events may have come meanwhile. The pods' answers hold for some
    /// seconds.
    pub fn refresh(&mut self, now: Timestamp) {
        let Self { facts, requested, requested_lists, .. } = self;
        facts.objects.retain(|key, _| requested.contains(key));
        facts.lists.retain(|list, _| requested_lists.contains(list));
        let is_old = |asked: Timestamp| now.duration_since(asked).as_secs() >= FRESH_ANSWERS;
        if self.facts.asked.is_some_and(is_old) {
            self.forget_answers();
        }
    }
}

fn within(wanted: usize, most: usize, too_much: TooMuch) -> Result<(), GatherError> {
    if wanted > most { Err(GatherError::TooMuch(too_much)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use interlock_core::reconcile::PodResponse;

    use super::*;

    /// Requests that are answered at once, as no pod has these addresses.
    fn requests(from: usize, count: usize) -> BTreeSet<PodRequest> {
        let request =
            |n| PodRequest { address: format!("pod-{n}"), port: 80, tls: None, path: "/", all_pages: false };
        (from..from + count).map(request).collect()
    }

    #[tokio::test]
    async fn pods_are_asked_within_a_limit() {
        let mut gathered = Gathered::default();
        let now = Timestamp::UNIX_EPOCH;
        gathered.ask(requests(0, ASKS), None, now).await.unwrap();
        let answers = &gathered.facts.answers;
        assert_eq!(answers.len(), ASKS);
        assert!(answers.values().all(Result::is_err), "{answers:?}");
        let more = gathered.ask(requests(ASKS, 1), None, now).await;
        let Err(GatherError::TooMuch(TooMuch { what, remedy })) = more else { panic!("{more:?}") };
        assert!(what.contains("512 answers") && remedy.contains("512 pods on a side"), "{what}{remedy}");
    }

    #[test]
    fn answers_have_a_limit_together() {
        let answer = |size| Ok(PodResponse { status: 200, server: None, body: vec![0; size].into() });
        let mut gathered = Gathered::default();
        assert!(gathered.bounded(answer(ANSWERS - 1)).is_ok());
        assert!(gathered.bounded(answer(2)).is_err());
        assert!(gathered.bounded(answer(1)).is_ok());
    }
}
