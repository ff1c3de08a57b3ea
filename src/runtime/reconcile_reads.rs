//! What a reconcile has read since its last write: objects, lists, and answers of pods, each within a limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use interlock_core::api::object::ObjectKey;
use interlock_core::certificate::CertificateAnswer;
use interlock_core::effect::ApiFailure;
use interlock_core::reconcile::{ObjectList, PodAnswer, PodRequest, ReconcileInput};
use jiff::Timestamp;
use rustls::ClientConfig;
use serde_json::Value;

use super::executor::{Executor, OfProcess};
use crate::cluster::pods;
use crate::cluster::read::BoundedList;

/// Other objects that a read set has.
const READS: usize = 64;
/// Lists that a read set has.
const LISTS: usize = 16;
/// Requests to pods that a read set has the answers of.
const ASKS: usize = 128;
/// Requests to pods, or to the API server, at once.
const CONCURRENT: usize = 8;

/// What a reconciler has asked to see.
#[derive(Debug, Default)]
pub struct ReconcileReads {
    found: BTreeMap<ObjectKey, Option<Arc<Value>>>,
    listed: BTreeMap<ObjectList, Vec<Arc<Value>>>,
    answered: BTreeMap<PodRequest, PodAnswer>,
    /// What became of the certificate that it asked for.
    pub certificate: Option<CertificateAnswer>,
}

/// Why a read set does not have what was asked for.
#[derive(Debug)]
pub enum ReadError {
    /// A request failed.
    Failed(ApiFailure),
    /// It is more than a reconcile may read.
    TooMuch(&'static str),
}

impl From<ApiFailure> for ReadError {
    fn from(failure: ApiFailure) -> Self {
        Self::Failed(failure)
    }
}

impl ReconcileReads {
    /// The input of a decision on an object.
    pub fn input<'a>(&'a self, object: &'a Value, now: Timestamp) -> ReconcileInput<'a> {
        let Self { found, listed, answered, certificate } = self;
        ReconcileInput { object, found, listed, answered, certificate: certificate.as_ref(), now }
    }

    /// What still holds after a write: it changed no certificate.
    #[must_use]
    pub fn after_write(self) -> Self {
        Self { certificate: self.certificate, ..Self::default() }
    }

    /// Reads objects.
    pub async fn read(
        &mut self,
        executor: &Executor<OfProcess>,
        keys: Vec<ObjectKey>,
    ) -> Result<(), ReadError> {
        within(self.found.len() + keys.len(), READS, "to read more than 64 objects")?;
        let read = futures::stream::iter(keys)
            .map(|key| async move { executor.get(&key).await.map(|found| (key, found)) });
        self.found.extend(read.buffered(CONCURRENT).try_collect::<Vec<_>>().await?);
        Ok(())
    }

    /// Reads lists, one after the other, as each may take some memory.
    pub async fn list(
        &mut self,
        executor: &Executor<OfProcess>,
        lists: Vec<ObjectList>,
    ) -> Result<(), ReadError> {
        within(self.listed.len() + lists.len(), LISTS, "to see more than 16 lists")?;
        for list in lists {
            let BoundedList::Whole(objects) = executor.list(&list).await? else {
                return Err(ReadError::TooMuch("a list of more than 500 objects or 16 MiB"));
            };
            self.listed.insert(list, objects.into_iter().map(Arc::new).collect());
        }
        Ok(())
    }

    /// Asks pods, over TLS with `tls`. A pod that does not answer is an answer.
    pub async fn ask(
        &mut self,
        requests: Vec<PodRequest>,
        tls: Option<Arc<ClientConfig>>,
    ) -> Result<(), ReadError> {
        within(self.answered.len() + requests.len(), ASKS, "to ask pods more than 128 times")?;
        let asked = futures::stream::iter(requests).map(|request| {
            let tls = tls.clone();
            async move {
                let answer = pods::ask(&request, tls).await;
                (request, answer)
            }
        });
        self.answered.extend(asked.buffer_unordered(CONCURRENT).collect::<Vec<_>>().await);
        Ok(())
    }
}

fn within(wanted: usize, most: usize, what: &'static str) -> Result<(), ReadError> {
    if wanted > most { Err(ReadError::TooMuch(what)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that are answered at once, as no pod has these addresses.
    fn requests(count: usize) -> Vec<PodRequest> {
        (0..count)
            .map(|n| PodRequest { address: format!("pod-{n}"), port: 80, tls: None, path: "/" })
            .collect()
    }

    #[tokio::test]
    async fn pods_are_asked_within_a_limit() {
        let mut reads = ReconcileReads::default();
        reads.ask(requests(ASKS), None).await.unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let input = reads.input(&Value::Null, now);
        assert_eq!(input.answered.len(), ASKS);
        assert!(input.answered.values().all(Result::is_err), "{:?}", input.answered);
        assert!(matches!(reads.ask(requests(1), None).await, Err(ReadError::TooMuch(_))));
    }
}
