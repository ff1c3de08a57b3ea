//! Has the certificates that reconcilers ask for in their Secrets: reads what is there, lets `certificate::next`
//! decide, and signs with the CA of the installation. No key is in a log, an Event or a condition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::meta::install::DATA_PLANE_CA_SECRET;
use interlock_core::api::object::{Gvk, ObjectKey, meta_str};
use interlock_core::certificate::{
    CertificateAnswer, CertificateRequest, CertificateStep, FoundCertificate, next,
};
use interlock_core::effect::{ApiFailure, Effect};
use interlock_core::reconcile::PodRequest;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use rustls::ClientConfig;
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tracing::{info, warn};

use super::executor::{Executor, OfProcess, Written};
use crate::cluster::certificates::KeyPem;
use crate::cluster::certificates::signing::SigningAuthority;
use crate::cluster::requests::local;

/// How long the CA is taken from memory before its Secret is read again.
const FRESH: Duration = Duration::from_secs(60);
/// How long a refusal is taken to hold for a namespace: rights are not watched.
const REFUSED: Duration = Duration::from_secs(30);

/// How long a certificate is taken to be in its Secret: no right to watch Secrets is asked for.
const PLACED: Duration = Duration::from_secs(60);
/// The same where pods wait that mount it.
const PLACED_AND_AWAITED: Duration = Duration::from_secs(10);

/// An answer that still holds.
struct Placed {
    request: CertificateRequest,
    answer: CertificateAnswer,
    since: Instant,
}

/// What the API server has refused in a namespace.
struct Refusal {
    /// The Secret that it was about.
    name: String,
    /// Its text.
    why: String,
    since: Instant,
}

/// Signs certificates, as the user of the process.
pub struct CertificateSigner {
    executor: Executor<OfProcess>,
    namespace: String,
    /// The CA as last read; held while it is read or made, so that one is made.
    authority: AsyncMutex<Option<(Arc<SigningAuthority>, Instant)>>,
    /// The namespaces in which the API server has refused.
    refused: Mutex<HashMap<String, Refusal>>,
    /// The certificates that are in their Secrets.
    placed: Mutex<HashMap<ObjectKey, Placed>>,
}

/// Why there is no certificate.
enum Missing {
    /// The API server does not allow it; its text.
    Denied(String),
    /// The CA cannot be used; why.
    NoAuthority(String),
    /// A request failed; it is tried again.
    Failed(ApiFailure),
}

impl From<ApiFailure> for Missing {
    fn from(failure: ApiFailure) -> Self {
        if failure.code == 403 { Self::Denied(failure.message) } else { Self::Failed(failure) }
    }
}

impl CertificateSigner {
    /// With a CA in a Secret of `namespace`, which is made when it is first needed.
    pub fn new(executor: Executor<OfProcess>, namespace: String) -> Self {
        let (authority, refused, placed) = Default::default();
        Self { executor, namespace, authority, refused, placed }
    }

    /// Has a certificate in its Secret; the caller has proved that this process leads.
    pub async fn certify(&self, request: &CertificateRequest) -> Result<CertificateAnswer, ApiFailure> {
        let namespace = meta_str(&request.secret, "namespace").unwrap_or_default();
        let name = meta_str(&request.secret, "name").unwrap_or_default();
        if let Some(why) = self.refusal(namespace, name) {
            return Ok(CertificateAnswer::Denied(why));
        }
        if let Some(answer) = self.placed(request) {
            return Ok(answer);
        }
        match self.in_place(request).await {
            Ok(answer) => {
                self.remember(request, &answer);
                Ok(answer)
            }
            Err(Missing::Denied(why)) => {
                let refusal = Refusal { name: name.to_owned(), why: why.clone(), since: Instant::now() };
                lock(&self.refused).insert(namespace.to_owned(), refusal);
                Ok(CertificateAnswer::Denied(why))
            }
            Err(Missing::NoAuthority(why)) => Ok(CertificateAnswer::NoAuthority(why)),
            Err(Missing::Failed(failure)) => Err(failure),
        }
    }

    /// What requests to pods over TLS are made with; `None` where none is, or there is no CA.
    pub async fn client(&self, requests: &BTreeSet<PodRequest>) -> Option<Arc<ClientConfig>> {
        if requests.iter().all(|request| request.tls.is_none()) {
            return None;
        }
        let authority = self.authority(Timestamp::now()).await.ok()?;
        match authority.client_config() {
            Ok(config) => Some(Arc::new(config)),
            Err(error) => {
                warn!(%error, "the client certificate for pods cannot be used");
                None
            }
        }
    }

    /// The text about the Secret of that name.
    fn refusal(&self, namespace: &str, name: &str) -> Option<String> {
        let mut refused = lock(&self.refused);
        refused.retain(|_, refusal| refusal.since.elapsed() < REFUSED);
        let quoted = |name: &str| format!("{name:?}");
        refused.get(namespace).map(|refusal| refusal.why.replace(&quoted(&refusal.name), &quoted(name)))
    }

    fn placed(&self, request: &CertificateRequest) -> Option<CertificateAnswer> {
        let most = if request.is_awaited { PLACED_AND_AWAITED } else { PLACED };
        let placed = lock(&self.placed);
        let found = placed.get(&ObjectKey::of(&request.secret)?)?;
        let same = CertificateRequest { is_awaited: request.is_awaited, ..found.request.clone() } == *request;
        (same && found.since.elapsed() < most).then(|| found.answer.clone())
    }

    fn remember(&self, request: &CertificateRequest, answer: &CertificateAnswer) {
        let Some(key) = ObjectKey::of(&request.secret) else { return };
        let mut placed = lock(&self.placed);
        placed.retain(|_, found| found.since.elapsed() < PLACED);
        if matches!(answer, CertificateAnswer::InPlace(_)) {
            let (request, answer) = (request.clone(), answer.clone());
            placed.insert(key, Placed { request, answer, since: Instant::now() });
        } else {
            placed.remove(&key);
        }
    }

    async fn in_place(&self, request: &CertificateRequest) -> Result<CertificateAnswer, Missing> {
        let key = ObjectKey::of(&request.secret).ok_or_else(|| local("the Secret has no name".to_owned()))?;
        let mut found = self.executor.get(&key).await?;
        // A first look writes, a second one sees what was written.
        for _ in 0..2 {
            let now = Timestamp::now();
            let authority = self.authority(now).await?;
            let served = found.as_deref().and_then(|found| authority.served(&data(found)));
            let certificate = served.as_ref().map(|(_, served)| served);
            let step =
                next(request, found.as_deref().map(|object| FoundCertificate { object, certificate }), now);
            let pair = match (step, &served) {
                (CertificateStep::Answer(answer), _) => return Ok(answer),
                (CertificateStep::Restore, Some((pair, _))) => pair.clone(),
                (CertificateStep::Renew | CertificateStep::Restore, _) => {
                    authority.sign(request, now).map_err(|error| local(error.to_string()))?
                }
            };
            found = self.write(request, &authority, &pair, found.as_deref()).await?;
            info!(secret = %key, "certificate written");
        }
        Err(local(format!("{key} is changed by others as often as it is written")).into())
    }

    async fn write(
        &self,
        request: &CertificateRequest,
        authority: &SigningAuthority,
        pair: &KeyPem,
        found: Option<&Value>,
    ) -> Result<Option<Arc<Value>>, ApiFailure> {
        let mut object = request.secret.clone();
        object["data"] = json!(authority.data(pair));
        for condition in ["resourceVersion", "uid"] {
            if let Some(found) = found {
                object["metadata"][condition] = found["metadata"][condition].clone();
            }
        }
        Ok(match self.executor.write(Effect::Apply { object, force: true }).await? {
            Written::Now(written, _) => Some(written),
            Written::Gone | Written::Published => None,
        })
    }

    /// The CA: from memory while that is fresh, else from its Secret, which is made where there is none, and renewed
    /// where it is due.
    async fn authority(&self, now: Timestamp) -> Result<Arc<SigningAuthority>, Missing> {
        let mut known = self.authority.lock().await;
        if let Some((authority, _)) = known.as_ref().filter(|(_, since)| since.elapsed() < FRESH) {
            return Ok(authority.clone());
        }
        let authority = Arc::new(self.read_authority(now).await?);
        *known = Some((authority.clone(), Instant::now()));
        Ok(authority)
    }

    async fn read_authority(&self, now: Timestamp) -> Result<SigningAuthority, Missing> {
        let key = ObjectKey {
            gvk: Gvk::new("v1", "Secret"),
            namespace: Some(self.namespace.clone()),
            name: DATA_PLANE_CA_SECRET.to_owned(),
        };
        let failed = |error: &dyn std::fmt::Display| Missing::Failed(local(error.to_string()));
        let Some(found) = self.executor.get(&key).await? else {
            let made = SigningAuthority::new(now).map_err(|error| failed(&error))?;
            let object = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "data": made.write(),
            });
            self.executor.write(Effect::Create { object }).await?;
            info!(secret = %key, "CA of DataPlanes made");
            return Ok(made);
        };
        let authority = SigningAuthority::read(&data(&found)).map_err(|error| {
            Missing::NoAuthority(format!(
                "Secret {}/{} is no CA of Interlock: {error}; delete it, and another CA is made",
                self.namespace, key.name
            ))
        })?;
        let Some(renewed) = authority.renewed(now).map_err(|error| failed(&error))? else {
            return Ok(authority);
        };
        // A merge patch leaves keys that are not in it.
        let mut all: BTreeMap<String, Value> =
            data(&found).into_keys().map(|key| (key, Value::Null)).collect();
        all.extend(renewed.write().into_iter().map(|(key, value)| (key, json!(value))));
        let resource_version = meta_str(&found, "resourceVersion").unwrap_or_default().to_owned();
        self.executor
            .write(Effect::Patch { key: key.clone(), resource_version, patch: json!({ "data": all }) })
            .await?;
        info!(secret = %key, "CA of DataPlanes renewed");
        Ok(renewed)
    }
}

fn data(secret: &Value) -> BTreeMap<String, ByteString> {
    let members = secret["data"].as_object().into_iter().flatten();
    let decoded = members.filter_map(|(key, value)| {
        Some((key.clone(), serde_json::from_value::<ByteString>(value.clone()).ok()?))
    });
    decoded.collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Changes of what it guards do not panic half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
