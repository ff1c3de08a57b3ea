//! Adds the annotation `kudo.dev/dependencies-hash` to pod templates: pods roll when a plan applies their template
//! and a ConfigMap or Secret that they use has changed (KUDO `renderer/dependencies.go`, byte for byte).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use interlock_core::api::path;
use interlock_core::config_digest::{ConfigDigest, ConfigKind};
use interlock_core::effect::ApiFailure;
use md5::{Digest as _, Md5};
use serde_json::Value;

use super::enhance;
use super::enhance::WantedObject;
use super::errors::{FailedRequest, TaskError, reason};
use super::lookup::Observed;
use super::ownership::TaskOwners;
use super::pod_references;
use super::pod_references::PodReference;
use super::render::TaskContext;

/// Maximum of ConfigMaps and Secrets that are read for the pod templates of one task.
pub const MAX_READ: usize = 128;
/// Maximum bytes of them.
pub const MAX_BYTES: usize = 16 << 20;
/// Lookups at a time, so that little is read beyond the budget of bytes.
const BATCH: usize = 8;

/// How KUDO's text begins.
const FAILED: &str = "failed to add dependencies hash";

/// Why the hashes of a task are not set.
#[derive(Debug, PartialEq, Eq)]
pub enum Unset {
    /// The digests of these are lacking.
    Needs(BTreeSet<ObjectKey>),
    /// Another task is about to write what the pods of this one use.
    Waits(String),
    /// A ConfigMap or Secret cannot be read, or they exceed the budget.
    Failed(TaskError),
}

impl From<TaskError> for Unset {
    fn from(error: TaskError) -> Self {
        Self::Failed(error)
    }
}

/// A pod template that has a hash: the place of its object, its path, and the hash.
type Hashed = (usize, &'static [&'static str], String);

/// Adds the hashes to the objects of a task, whose other metadata is set.
///
/// # Errors
/// Why none is set.
pub fn add(
    context: &TaskContext<'_>,
    wanted: &mut [WantedObject],
    observed: &Observed,
    owners: &TaskOwners,
) -> Result<(), Unset> {
    for (place, path, hash) in hashed(context, wanted, observed, owners)? {
        let annotations = [path, &["metadata", "annotations"]].concat();
        let hash = [(meta::DEPENDENCIES_HASH, hash.as_str())];
        enhance::set_entries(&mut wanted[place].object, &annotations, &hash)
            .map_err(|error| fatal(&error.to_string()))?;
    }
    Ok(())
}

fn hashed(
    context: &TaskContext<'_>,
    wanted: &[WantedObject],
    observed: &Observed,
    owners: &TaskOwners,
) -> Result<Vec<Hashed>, Unset> {
    let mut known = Known::new(context, wanted, observed, owners);
    let mut hashed = Vec::new();
    for (place, WantedObject { key, object }) in wanted.iter().enumerate() {
        for path in enhance::pod_templates(&key.gvk).filter(|_| key.namespace.is_some()) {
            let template = path.iter().try_fold(object, |value, field| value.get(field));
            let references = template.map(|template| pod_references::counted(template, observed.references));
            let Some(references) = references.filter(|references| !references.is_empty()) else { continue };
            match job(key, observed) {
                Some(job) => hashed.extend(hash_of(job).map(|hash| (place, path, hash.to_owned()))),
                None => hashed.push((place, path, known.hash(&references)?)),
            }
        }
    }
    match (known.wait, known.needs) {
        (Some(why), _) => Err(Unset::Waits(why)),
        (None, needs) if needs.is_empty() => Ok(hashed),
        (None, needs) => Err(Unset::Needs(needs.into_iter().take(BATCH).collect())),
    }
}

/// A Job that is there: its pods cannot change, so it keeps its hash; the API server would refuse another.
fn job<'o>(key: &ObjectKey, observed: &'o Observed) -> Option<&'o Value> {
    let is_job = (key.gvk.group.as_str(), key.gvk.kind.as_str()) == ("batch", "Job");
    match observed.facts.get(key) {
        Ok(Some(job)) if is_job => Some(job),
        _ => None,
    }
}

fn hash_of(job: &Value) -> Option<&str> {
    job["spec"]["template"]["metadata"]["annotations"][meta::DEPENDENCIES_HASH].as_str()
}

fn fatal(cause: &str) -> TaskError {
    TaskError::fatal(reason::ENHANCEMENT, format!("fatal error: {FAILED}: {cause}"))
}

fn unreadable(context: &TaskContext<'_>, key: &ObjectKey, failure: &ApiFailure) -> TaskError {
    match TaskError::api(FailedRequest::Get, key, failure, context.run.transient) {
        TaskError::Transient(cause) => TaskError::Transient(format!("{FAILED}: {cause}")),
        TaskError::Rejected(kind, cause) => TaskError::Rejected(kind, format!("{FAILED}: {cause}")),
        other => other,
    }
}

/// What is known of the ConfigMaps and Secrets that the pods of a task use.
struct Known<'a> {
    context: &'a TaskContext<'a>,
    observed: &'a Observed,
    owners: &'a TaskOwners,
    /// Those that the task applies itself: they count before those of the cluster.
    applied: BTreeMap<&'a ObjectKey, &'a Value>,
    /// Digests of those that were looked at.
    digests: BTreeMap<ObjectKey, ConfigDigest>,
    /// Those that are read for the task.
    read: usize,
    bytes: usize,
    needs: BTreeSet<ObjectKey>,
    wait: Option<String>,
}

impl<'a> Known<'a> {
    fn new(
        context: &'a TaskContext<'a>,
        wanted: &'a [WantedObject],
        observed: &'a Observed,
        owners: &'a TaskOwners,
    ) -> Self {
        let is_config = |key: &ObjectKey| ConfigKind::of(&key.gvk).is_some();
        let applied = wanted.iter().map(|wanted| (&wanted.key, &wanted.object));
        Self {
            context,
            observed,
            owners,
            applied: applied.filter(|(key, _)| is_config(key)).collect(),
            digests: BTreeMap::new(),
            read: 0,
            bytes: 0,
            needs: BTreeSet::new(),
            wait: None,
        }
    }

    /// The hash of these references; without meaning as long as one of them is needed or waited for.
    fn hash(&mut self, references: &[PodReference<'_>]) -> Result<String, TaskError> {
        let mut hash = Md5::new();
        for reference in references {
            hash.update(self.digest(reference)?.md5);
        }
        Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    fn digest(&mut self, reference: &PodReference<'_>) -> Result<ConfigDigest, TaskError> {
        let key = ObjectKey {
            gvk: reference.kind.gvk(),
            namespace: Some(self.context.run.instance.namespace.clone()),
            name: reference.name.to_owned(),
        };
        if let Some(digest) = self.digests.get(&key) {
            return Ok(*digest);
        }
        let digest = self.look_at(reference.kind, &key)?;
        self.digests.insert(key, digest);
        Ok(digest)
    }

    /// As in KUDO, what does not exist counts as zeros: another controller may make it later.
    fn look_at(&mut self, kind: ConfigKind, key: &ObjectKey) -> Result<ConfigDigest, TaskError> {
        if let Some(object) = self.applied.get(key) {
            return Ok(ConfigDigest::of_rendered(kind, object));
        }
        if path::segment(&key.name).is_err() {
            return Ok(ConfigDigest::default());
        }
        if let Some(writer) = self.owners.writer(key) {
            self.wait.get_or_insert_with(|| format!("{key} is being changed by task {writer}"));
            return Ok(ConfigDigest::default());
        }
        // What tasks of this pass have read or written; where that failed, its state is not known.
        match self.observed.facts.get(key) {
            Ok(_) if self.observed.facts.failures.contains_key(key) => {}
            Ok(Some(object)) => return Ok(ConfigDigest::of_live(kind, object)),
            Ok(None) => return Ok(ConfigDigest::default()),
            Err(_) => {}
        }
        self.read += 1;
        if self.read > MAX_READ {
            return Err(fatal(&format!(
                "the pod templates of the task name more than {MAX_READ} ConfigMaps and Secrets that it does not \
                 apply itself: name fewer, or divide the task"
            )));
        }
        let digest = match self.observed.facts.digests.get(key) {
            None => {
                self.needs.insert(key.clone());
                return Ok(ConfigDigest::default());
            }
            Some(Err(failure)) => return Err(unreadable(self.context, key, failure)),
            Some(Ok(digest)) => *digest,
        };
        self.bytes += digest.bytes;
        if self.bytes > MAX_BYTES {
            return Err(fatal(&format!(
                "the ConfigMaps and Secrets that the pod templates of the task name have more than {} MiB: name \
                 fewer, or divide the task",
                MAX_BYTES >> 20
            )));
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests;
