//! What a reconcile has read since its last write: objects, lists, and answers of pods, each within a limit.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

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
const ASKS: usize = 512;
/// Bytes that these answers may have together.
const ANSWERS: usize = 32 << 20;
/// How long the pods of one step are asked: a worker is not held up by many that are silent.
const ASKED: Duration = Duration::from_secs(30);
/// Requests to pods, or to the API server, at once.
const CONCURRENT: usize = 8;

/// What a reconciler has asked to see.
#[derive(Debug, Default)]
pub struct ReconcileReads {
    found: BTreeMap<ObjectKey, Option<Arc<Value>>>,
    withheld: BTreeSet<ObjectKey>,
    listed: BTreeMap<ObjectList, Vec<Arc<Value>>>,
    answered: BTreeMap<PodRequest, PodAnswer>,
    /// Bytes of the answers.
    bytes: usize,
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
        let Self { found, withheld, listed, answered, bytes: _, certificate } = self;
        ReconcileInput { object, found, withheld, listed, answered, certificate: certificate.as_ref(), now }
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

    /// Reads objects, each as far as the API server lets this process.
    pub async fn read_if_allowed(
        &mut self,
        executor: &Executor<OfProcess>,
        keys: Vec<ObjectKey>,
    ) -> Result<(), ReadError> {
        within(self.found.len() + self.withheld.len() + keys.len(), READS, "to read more than 64 objects")?;
        for key in keys {
            match executor.get(&key).await {
                Ok(found) => _ = self.found.insert(key, found),
                Err(failure) if failure.code == 403 => _ = self.withheld.insert(key),
                Err(failure) => return Err(failure.into()),
            }
        }
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
        within(self.answered.len() + requests.len(), ASKS, "to ask pods more than 512 times")?;
        for request in &requests {
            self.answered.insert(request.clone(), Err("was not asked in time".to_owned()));
        }
        let asked = futures::stream::iter(requests).map(|request| {
            let tls = tls.clone();
            async move {
                let answer = pods::ask(&request, tls).await;
                (request, answer)
            }
        });
        let mut asked = pin!(asked.buffer_unordered(CONCURRENT).take_until(tokio::time::sleep(ASKED)));
        while let Some((request, answer)) = asked.next().await {
            let answer = self.bounded(answer);
            self.answered.insert(request, answer);
        }
        Ok(())
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
}

fn within(wanted: usize, most: usize, what: &'static str) -> Result<(), ReadError> {
    if wanted > most { Err(ReadError::TooMuch(what)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use interlock_core::reconcile::PodResponse;

    use super::*;

    /// Requests that are answered at once, as no pod has these addresses.
    fn requests(count: usize) -> Vec<PodRequest> {
        (0..count)
            .map(|n| PodRequest {
                address: format!("pod-{n}"),
                port: 80,
                tls: None,
                path: "/",
                all_pages: false,
            })
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

    #[test]
    fn answers_have_a_limit_together() {
        let answer = |size| Ok(PodResponse { status: 200, server: None, body: vec![0; size].into() });
        let mut reads = ReconcileReads::default();
        assert!(reads.bounded(answer(ANSWERS - 1)).is_ok());
        assert!(reads.bounded(answer(2)).is_err());
        assert!(reads.bounded(answer(1)).is_ok());
    }
}
