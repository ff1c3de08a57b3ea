//! The objects that a pass has read, and whether they are older than the last proof that the run is
//! current.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, meta_str};
use interlock_core::api::ownership::owner_uids;
use interlock_core::config_digest::{ConfigDigest, ConfigKind};
use interlock_core::effect::{ApiFailure, Effect, FileRead, PodFile};
use interlock_core::reconcile::{KindServed, Lookup, Needs};
use interlock_kudo::engine::lookup::Observed;
use interlock_kudo::engine::run::InstanceId;
use interlock_kudo::instance::change::wake_ups;
use serde_json::Value;
use tokio::time::Instant;
use tracing::debug;

use crate::cluster::discovery;
use crate::cluster::requests::local;
use crate::cluster::watch::WatchChange;
use crate::controllers::instance::context::InstanceContext;
use crate::runtime::executor::Executor;
use crate::runtime::gathered::{self, ObjectSource};
use crate::runtime::index::{Child, KeptInstance};

/// Bytes of files that one pass holds.
const FILES: usize = 8 << 20;
/// How long one pass may read files: the package decides how many there are, and how slowly each is read.
const FILES_TIME: Duration = Duration::from_secs(60);

fn size(read: &FileRead) -> usize {
    match read {
        FileRead::Content(bytes) => bytes.len(),
        FileRead::TooLarge | FileRead::Ended { .. } | FileRead::Failed(_) => 0,
    }
}

struct InstanceObjects<'a> {
    ctx: &'a InstanceContext,
    objects: &'a Executor,
    instance: &'a NamespacedName,
}

impl ObjectSource for InstanceObjects<'_> {
    /// An object as last seen, if its kind is watched. A child Instance is kept while it is worked on itself.
    async fn kept(&self, key: &ObjectKey, certainly: bool) -> Option<Lookup> {
        let watching = self.ctx.watched_soon(&key.gvk).await?;
        let is_instance = key.gvk.group == meta::KUDO_GROUP && key.gvk.kind == "Instance";
        let name = key.namespace.as_deref().filter(|_| is_instance);
        let name = name.map(|namespace| NamespacedName::new(namespace, key.name.as_str()));
        let kept = match name.map(|name| self.ctx.store.instance(&name)) {
            Some(KeptInstance::Whole(object)) => Child::Kept(object),
            _ => self.ctx.store.get_child(key),
        };
        match kept {
            Child::Absent if !certainly => Some(Lookup::Absent),
            // A merge needs more than metadata.
            Child::Kept(object) if watching.whole => Some(Lookup::Found(object)),
            _ => None,
        }
    }

    async fn read(&self, key: &ObjectKey) -> Result<Lookup, ApiFailure> {
        let found = self.objects.read(key).await?;
        if let Lookup::Found(object) = &found {
            self.ctx.saw(self.instance, &WatchChange::Applied(object.clone()));
        }
        Ok(found)
    }
}

/// The read set of a pass: results of lookups, and answers to its writes.
pub(super) struct ReadSet<'a> {
    ctx: &'a InstanceContext,
    /// Reads and writes as the package's service account.
    objects: Executor,
    instance: NamespacedName,
    package: NamespacedName,
    pub(super) observed: Observed,
    /// When each object was last read.
    seen: BTreeMap<ObjectKey, u64>,
    /// Counts reads and proofs.
    clock: u64,
    /// When the run was last proved to be current; 0 before the first proof.
    proof: u64,
    /// When the time for reading files is over.
    files_until: Option<Instant>,
    /// The first file that could not be read, and why.
    file_failed: Option<String>,
    /// Whether discovery of a kind failed, or the kind was removed while objects of it were written: no
    /// watch reports the end of that.
    kind_unsure: bool,
    /// Warnings of the API server about objects that were written since they were last taken.
    warnings: Vec<(ObjectKey, String)>,
}

impl<'a> ReadSet<'a> {
    /// Begins with facts that need no lookup.
    pub(super) fn new(
        ctx: &'a InstanceContext,
        objects: Executor,
        instance: NamespacedName,
        package: NamespacedName,
        observed: Observed,
    ) -> Self {
        Self {
            ctx,
            objects,
            instance,
            package,
            observed,
            seen: BTreeMap::new(),
            clock: 0,
            proof: 0,
            files_until: None,
            file_failed: None,
            kind_unsure: false,
            warnings: Vec::new(),
        }
    }

    /// Takes the warnings about what was written.
    pub(super) fn take_warnings(&mut self) -> Vec<(ObjectKey, String)> {
        std::mem::take(&mut self.warnings)
    }

    /// Whether watches wake the Instance when its run can continue.
    pub(super) fn watches_suffice(&self, instance: &InstanceId) -> bool {
        !self.kind_unsure
            && wake_ups::watches_suffice(&self.observed, instance, |kind| self.ctx.is_watched(kind))
    }

    /// Gets what the engine lacks; the inventory is the pass's own.
    pub(super) async fn look_up(&mut self, needs: &Needs) {
        for gvk in &needs.kinds {
            let served = self.served(gvk).await;
            self.observed.facts.kinds.insert(gvk.clone(), served);
        }
        self.look_at(needs).await;
        for key in &needs.digests {
            let digest = self.digest(key).await;
            self.observed.facts.digests.insert(key.clone(), digest);
        }
        for key in &needs.pod_failures {
            self.look_for_pods(key).await;
        }
        for file in &needs.files {
            self.read_file(file).await;
        }
    }

    /// The digest of a ConfigMap or Secret. One that the Instance did not make is read as the account of the
    /// package, which may have to be refused: the digest is shown in the pod template.
    async fn digest(&self, key: &ObjectKey) -> Result<ConfigDigest, ApiFailure> {
        let Some(kind) = ConfigKind::of(&key.gvk) else { return Ok(ConfigDigest::default()) };
        let object = match self.made(key).await {
            Some(object) => object,
            None => match self.objects.get(key).await? {
                Some(object) => object,
                None => return Ok(ConfigDigest::default()),
            },
        };
        // Its cost depends on the object.
        let digest =
            self.ctx.pool.run(&self.instance.namespace, move |_| ConfigDigest::of_live(kind, &object));
        digest.await.map_err(|why| local(why.to_string()))
    }

    /// An object as it is stored, if this Instance made it.
    async fn made(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        let watching = self.ctx.watched_soon(&key.gvk).await?;
        match self.ctx.store.get_child(key) {
            Child::Kept(object) if watching.whole => {
                let uid = self.ctx.store.uid_of(&self.instance)?;
                let made = owner_uids(&object).any(|owner| owner == uid);
                made.then_some(object)
            }
            _ => None,
        }
    }

    /// Why a workload lacks pods; no watch reports it, so the Instance is reconciled when it is due again.
    async fn look_for_pods(&mut self, key: &ObjectKey) {
        let (namespace, uid) = match self.observed.facts.get(key) {
            Ok(Some(object)) => (key.namespace.as_deref(), meta_str(object, "uid")),
            _ => (None, None),
        };
        let report = match (namespace, uid) {
            (Some(namespace), Some(uid)) => {
                let (report, holds) = self.ctx.pod_failures.of(&self.ctx.client, (namespace, uid)).await;
                self.ctx.queue.add_after(self.instance.clone(), holds);
                report
            }
            _ => Ok(None),
        };
        self.observed.facts.pod_failures.insert(key.clone(), report);
    }

    async fn read_file(&mut self, file: &PodFile) {
        let until = *self.files_until.get_or_insert_with(|| Instant::now() + FILES_TIME);
        let held: usize = self.observed.facts.files.values().map(size).sum();
        let refused = |why: String| FileRead::Failed(local(why));
        let read = if let Some(first) = &self.file_failed {
            refused(format!("it is read after {first}"))
        } else if held >= FILES {
            refused(format!(
                "the Pipe tasks that run at once take more than {} MiB of files: take fewer in one step",
                FILES >> 20
            ))
        } else {
            let read = tokio::time::timeout_at(until, self.objects.read_file(file)).await;
            read.unwrap_or_else(|_| {
                refused(format!(
                    "reading the files of the Pipe tasks that run at once takes longer than {} s",
                    FILES_TIME.as_secs()
                ))
            })
        };
        if let (FileRead::Failed(failure), None) = (&read, &self.file_failed) {
            let PodFile { path, pod, .. } = file;
            self.file_failed =
                Some(format!("file {path} of pod {}, which failed: {}", pod.name, failure.message));
        }
        self.observed.facts.files.insert(file.clone(), read);
    }

    /// A kind of which nothing is known now is looked up again.
    async fn served(&mut self, gvk: &Gvk) -> KindServed {
        self.ctx.watches.instance_makes(&self.instance, &self.package, gvk);
        let served = self.ctx.served(gvk).await;
        self.kind_unsure |= served == KindServed::Unknown;
        served
    }

    /// Looks up objects: from the store where their kind is watched, unless a write failed or an absence must be certain.
    async fn look_at(&mut self, needs: &Needs) {
        self.clock += 1;
        let from = InstanceObjects { ctx: self.ctx, objects: &self.objects, instance: &self.instance };
        let failed = gathered::look_up(&from, &mut self.observed.facts, needs).await.failed;
        for (key, failure) in failed {
            self.failed(&key, failure);
            self.observed.facts.objects.insert(key, Lookup::Absent);
        }
        let looked_at = needs.objects.iter().chain(&needs.certainly);
        self.seen.extend(looked_at.map(|key| (key.clone(), self.clock)));
    }

    /// Records a failure. One that shows that the kind is not served says nothing about the object, and no
    /// object of the kind counts as gone until the table of definitions shows the reason.
    fn failed(&mut self, key: &ObjectKey, failure: ApiFailure) {
        if self.has_left(&key.gvk, &failure) {
            self.observed.facts.kinds.insert(key.gvk.clone(), KindServed::NotServed);
        } else {
            self.observed.facts.failures.insert(key.clone(), failure);
        }
    }

    /// Whether every write is based on objects read before the last proof.
    pub(super) fn covers(&self, lanes: &[Vec<Effect>]) -> bool {
        self.proof > 0
            && lanes
                .iter()
                .flatten()
                .filter_map(Effect::key)
                .all(|key| self.seen.get(&key).is_some_and(|at| *at <= self.proof))
    }

    /// The run was proved to be current: writes may rely on everything read so far.
    pub(super) fn proved(&mut self) {
        self.clock += 1;
        self.proof = self.clock;
    }

    /// Whether a request failed because its kind is being removed, which the table of definitions may not
    /// show yet: while a definition is being deleted the API server answers creations with 405, and later
    /// requests with a plain 404 without a Status.
    fn has_left(&mut self, gvk: &Gvk, failure: &ApiFailure) -> bool {
        let left = !discovery::is_built_in(&gvk.group) && (failure.code == 405 || failure.is_of_kind());
        if left {
            self.ctx.kinds.forget(gvk);
            self.kind_unsure = true;
        }
        left
    }

    /// Sends the writes, and records the answers.
    pub(super) async fn write(&mut self, lanes: Vec<Vec<Effect>>) {
        for (key, answer) in self.objects.run(lanes).await {
            match answer {
                Ok(answer) => {
                    let warnings = self.ctx.wrote(&self.instance, &mut self.observed.facts, &key, answer);
                    self.warnings.extend(warnings.into_iter().map(|text| (key.clone(), text)));
                }
                Err(failure) => {
                    debug!(object = %key, code = failure.code, message = %failure.message, "a write was refused");
                    self.failed(&key, failure);
                }
            }
        }
    }
}
