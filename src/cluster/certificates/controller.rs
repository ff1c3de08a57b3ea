//! The certificate controller: maintains the Secret and the caBundles, and selects the served leaf.
//!
//! Any replica creates a missing Secret (of two POSTs one wins, and both read the winner's); the leader
//! makes all other writes. A leaf of another CA is served only once every caBundle has held that CA for
//! [`CertificateSettings::propagation`]: the API server learns of a new bundle by a watch of its own. And a CA that
//! leaves the Secret stays in the caBundles for [`CertificateSettings::retention`]: until then a replica may serve a
//! leaf of it.

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object};
use kube::{Client, Error};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::authority::{GenerationError, KeyPem, authority, leaf};
use super::ca_bundle_watch::{CaBundles, ConfigurationKind, ConfigurationObject, ConfigurationState};
use super::retiring_ca::RetiringCas;
use super::rotation::{NextWrite, StoredCertificates, next_write};
use super::stored::{CertificateFacts, InvalidSecret, Stored, our_cas};
use crate::cluster::lease::Leadership;

/// Field manager of writes to the webhook configurations.
const FIELD_MANAGER: &str = "interlock-certs";
/// Longest time between two checks of the dates. By the wall clock, not by one long sleep, which a
/// suspended machine would oversleep.
const LONGEST_TICK: Duration = Duration::from_secs(30);
/// How long to wait for a first read of the configurations before making a CA, so that CAs that replicas
/// may still serve stay in the bundle.
const FIRST_READ_WAIT: Duration = Duration::from_secs(3);
/// Pause after a write that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What the controller maintains.
#[derive(Clone, Debug)]
pub struct CertificateSettings {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Name of both webhook configurations.
    pub configuration: String,
    /// Names and addresses of the webhook.
    pub names: Vec<String>,
    /// Life of a leaf.
    pub leaf_lifetime: Duration,
    /// Life of a CA.
    pub authority_lifetime: Duration,
    /// How long a caBundle must be unchanged before the controller relies on it.
    pub propagation: Duration,
    /// How long a CA that has left the Secret stays in the caBundles.
    pub retention: Duration,
}

/// The last read state of the Secret.
enum SecretState {
    Unknown,
    Absent,
    Present { version: String, stored: Result<Stored, InvalidSecret> },
}

/// The certificate controller of one process.
pub struct CertificateController {
    settings: CertificateSettings,
    client: Client,
    secrets: Api<Secret>,
    trust: watch::Receiver<CaBundles>,
    leadership: watch::Receiver<Leadership>,
    serve: watch::Sender<Option<KeyPem>>,
    secret: SecretState,
    /// The last valid content of the Secret.
    last_valid: Option<Stored>,
    /// The CA of the served leaf.
    serving: Option<String>,
    /// The bundle that every caBundle holds, and since when.
    held: Option<(String, Instant)>,
    /// CAs that have left the Secret and may still be served.
    retiring: RetiringCas,
    start: Instant,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Made(#[from] GenerationError),
    #[error(transparent)]
    Written(#[from] Error),
}

fn pause_after(failure: Failure) -> Duration {
    tracing::warn!(error = %failure, "certificates could not be maintained; retrying");
    PAUSE_AFTER_FAILURE
}

impl CertificateController {
    /// A controller that has read nothing yet.
    pub fn new(
        client: Client,
        settings: CertificateSettings,
        trust: watch::Receiver<CaBundles>,
        leadership: watch::Receiver<Leadership>,
    ) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), &settings.namespace),
            retiring: RetiringCas::new(settings.retention),
            settings,
            client,
            trust,
            leadership,
            serve: watch::Sender::new(None),
            secret: SecretState::Unknown,
            last_valid: None,
            serving: None,
            held: None,
            start: Instant::now(),
        }
    }

    /// The served certificate.
    pub fn serve(&self) -> watch::Receiver<Option<KeyPem>> {
        self.serve.subscribe()
    }

    /// Runs forever.
    pub async fn run(mut self) {
        let stream = watch_object(self.secrets.clone(), &self.settings.secret).default_backoff();
        let mut stream = std::pin::pin!(stream);
        let (mut trust, mut leadership) = (self.trust.clone(), self.leadership.clone());
        loop {
            let pause = self.reconcile().await.map_or_else(pause_after, |()| self.tick());
            tokio::select! {
                Some(event) = stream.next() => self.handle(event),
                Ok(()) = trust.changed() => {}
                Ok(()) = leadership.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn tick(&self) -> Duration {
        LONGEST_TICK
            .min(self.settings.leaf_lifetime / 10)
            .min(self.settings.propagation.max(Duration::from_millis(50)))
    }

    fn handle(&mut self, event: Result<Option<Secret>, watcher::Error>) {
        match event {
            Ok(seen) => self.observe(seen),
            Err(error) => {
                let secret = &self.settings.secret;
                tracing::warn!(%error, secret, "the Secret of the certificates cannot be watched; retrying");
            }
        }
    }

    fn observe(&mut self, secret: Option<Secret>) {
        let Some(secret) = secret else {
            self.secret = SecretState::Absent;
            return;
        };
        let stored = Stored::read(&secret.data.unwrap_or_default());
        match &stored {
            Ok(stored) => self.last_valid = Some(stored.clone()),
            Err(error) => {
                tracing::warn!(%error, secret = self.settings.secret, "the certificate is invalid; still serving the last valid one");
            }
        }
        let version = secret.metadata.resource_version.unwrap_or_default();
        self.secret = SecretState::Present { version, stored };
    }

    /// Checks everything once; writes the Secret at most once.
    async fn reconcile(&mut self) -> Result<(), Failure> {
        let now = Timestamp::now();
        self.record_held_bundle();
        self.select_leaf(now);
        self.maintain_secret(now).await?;
        self.record_retiring(now);
        self.maintain_bundles().await
    }

    fn record_held_bundle(&mut self) {
        let Some(last_valid) = &self.last_valid else { return };
        let bundle = last_valid.bundle();
        let trust = self.trust.borrow();
        if !trust.is_known() || !trust.holds(&bundle) {
            self.held = None;
        } else if self.held.as_ref().is_none_or(|(held, _)| *held != bundle) {
            self.held = Some((bundle, Instant::now()));
        }
    }

    fn record_retiring(&mut self, now: Timestamp) {
        let Some(last_valid) = &self.last_valid else { return };
        let bundles = self.trust.borrow().bundles();
        self.retiring.record(&last_valid.bundle(), &bundles, self.serving.as_deref(), now, Instant::now());
    }

    /// Whether every caBundle has held all of ours for long enough.
    fn held_long_enough(&self) -> bool {
        self.held.as_ref().is_some_and(|(_, since)| since.elapsed() >= self.settings.propagation)
    }

    fn select_leaf(&mut self, now: Timestamp) {
        let Some(last_valid) = &self.last_valid else { return };
        let served = self.serve.borrow().clone();
        if served.as_ref() == Some(&last_valid.leaf) {
            return;
        }
        let same_authority = self.serving.as_ref() == Some(&last_valid.authority.certificate);
        let expired =
            |pem: &KeyPem| CertificateFacts::of(&pem.certificate).is_ok_and(|facts| facts.expires <= now);
        if same_authority || self.held_long_enough() || served.as_ref().is_none_or(expired) {
            self.serving = Some(last_valid.authority.certificate.clone());
            self.serve.send_replace(Some(last_valid.leaf.clone()));
        }
    }

    async fn maintain_secret(&mut self, now: Timestamp) -> Result<(), Failure> {
        let leads = self.leadership.borrow().holds();
        let (stored, version) = match &self.secret {
            SecretState::Unknown => return Ok(()),
            SecretState::Absent => {
                if !self.trust.borrow().is_known() && self.start.elapsed() < FIRST_READ_WAIT {
                    return Ok(());
                }
                (self.replace_deleted(now)?, None)
            }
            SecretState::Present { .. } if !leads => return Ok(()),
            SecretState::Present { version, stored: Err(_) } => {
                let stored = match &self.last_valid {
                    Some(last_valid) => last_valid.clone(),
                    None => self.new_authority_and_leaf(now)?,
                };
                (stored, Some(version.clone()))
            }
            SecretState::Present { version, stored: Ok(stored) } => match self.renewed(stored, now)? {
                Some(stored) => (stored, Some(version.clone())),
                None => return Ok(()),
            },
        };
        self.write(&stored, version).await
    }

    /// For a Secret that was deleted at runtime: keeps its CA until a new one is trusted.
    fn replace_deleted(&self, now: Timestamp) -> Result<Stored, GenerationError> {
        match &self.last_valid {
            Some(last_valid)
                if CertificateFacts::of(&last_valid.authority.certificate)
                    .is_ok_and(|facts| facts.expires > now) =>
            {
                let next = authority(now, self.settings.authority_lifetime)?;
                Ok(Stored { next: Some(next), ..last_valid.clone() })
            }
            _ => self.new_authority_and_leaf(now),
        }
    }

    fn new_authority_and_leaf(&self, now: Timestamp) -> Result<Stored, GenerationError> {
        let authority = authority(now, self.settings.authority_lifetime)?;
        let leaf = self.leaf(&authority, now)?;
        let previous = our_cas(&self.trust.borrow().bundles(), &authority.certificate, now);
        Ok(Stored { authority, leaf, next: None, previous })
    }

    fn leaf(&self, by: &KeyPem, now: Timestamp) -> Result<KeyPem, GenerationError> {
        leaf(by, &self.settings.names, now, self.settings.leaf_lifetime)
    }

    fn renewed(&self, stored: &Stored, now: Timestamp) -> Result<Option<Stored>, GenerationError> {
        let facts = |pem: &KeyPem| CertificateFacts::of(&pem.certificate).ok();
        let (Some(authority_facts), Some(leaf_facts)) = (facts(&stored.authority), facts(&stored.leaf))
        else {
            return self.new_authority_and_leaf(now).map(Some);
        };
        let next = stored.next.as_ref().and_then(facts);
        let certificates = StoredCertificates { authority: authority_facts, leaf: leaf_facts, next };
        let next_write = next_write(now, &certificates, &self.settings.names, self.held_long_enough());
        if next_write != NextWrite::Nothing {
            tracing::info!(?next_write, "certificates are due");
        }
        Ok(match (next_write, &stored.next) {
            (NextWrite::Nothing, _) => None,
            (NextWrite::Everything, _) | (NextWrite::Promotion, None) => {
                Some(self.new_authority_and_leaf(now)?)
            }
            // By now every replica serves a leaf of this CA: drop older ones.
            (NextWrite::Leaf, _) => {
                let leaf = self.leaf(&stored.authority, now)?;
                Some(Stored { leaf, previous: String::new(), ..stored.clone() })
            }
            (NextWrite::NextAuthority, _) => {
                let next = Some(authority(now, self.settings.authority_lifetime)?);
                Some(Stored { next, ..stored.clone() })
            }
            (NextWrite::Promotion, Some(next)) => {
                let leaf = self.leaf(next, now)?;
                let previous = stored.authority.certificate.clone();
                Some(Stored { authority: next.clone(), leaf, next: None, previous })
            }
        })
    }

    /// Creates the Secret, or replaces this version of it; on a conflict, reads the winner's.
    async fn write(&mut self, stored: &Stored, version: Option<String>) -> Result<(), Failure> {
        let metadata = ObjectMeta {
            name: Some(self.settings.secret.clone()),
            resource_version: version.clone(),
            ..ObjectMeta::default()
        };
        let data = Some(stored.write());
        let type_ = Some("kubernetes.io/tls".to_owned());
        let secret = Secret { metadata, data, type_, ..Secret::default() };
        let parameters =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let written = match version {
            None => self.secrets.create(&parameters, &secret).await,
            Some(_) => self.secrets.replace(&self.settings.secret, &parameters, &secret).await,
        };
        match written {
            Ok(secret) => self.observe(Some(secret)),
            Err(Error::Api(status)) if status.code == 409 => {
                let seen = self.secrets.get_opt(&self.settings.secret).await?;
                self.observe(seen);
            }
            Err(error) => return Err(error.into()),
        }
        self.record_held_bundle();
        self.select_leaf(Timestamp::now());
        Ok(())
    }

    /// As the leader, writes the Secret's CAs, and those that left it recently, into every caBundle.
    async fn maintain_bundles(&self) -> Result<(), Failure> {
        let SecretState::Present { stored: Ok(stored), .. } = &self.secret else { return Ok(()) };
        if !self.leadership.borrow().holds() {
            return Ok(());
        }
        let bundle = stored.bundle() + &self.retiring.trusted(Instant::now());
        let trust = self.trust.borrow().clone();
        for (kind, watch_state) in trust.configurations() {
            let ConfigurationState::Present(configuration) = watch_state else { continue };
            if configuration.webhooks.iter().any(|webhook| webhook.ca_bundle != bundle.as_bytes()) {
                self.patch(kind, configuration, &bundle).await?;
            }
        }
        Ok(())
    }

    async fn patch(
        &self,
        kind: ConfigurationKind,
        seen: &ConfigurationObject,
        bundle: &str,
    ) -> Result<(), Failure> {
        use base64::Engine as _;
        let bundle = base64::engine::general_purpose::STANDARD.encode(bundle);
        let webhooks: Vec<_> = seen
            .webhooks
            .iter()
            .map(|webhook| json!({"name": webhook.name, "clientConfig": {"caBundle": bundle}}))
            .collect();
        // Lists of webhooks merge by name; the version makes it fail if anything has changed.
        let patch = json!({"metadata": {"resourceVersion": seen.resource_version}, "webhooks": webhooks});
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let (name, patch) = (&self.settings.configuration, Patch::Strategic(patch));
        let patched = match kind {
            ConfigurationKind::Mutating => {
                let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
                api.patch(name, &parameters, &patch).await.map(drop)
            }
            ConfigurationKind::Validating => {
                let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
                api.patch(name, &parameters, &patch).await.map(drop)
            }
        };
        match patched {
            Ok(()) => tracing::info!(?kind, name, "caBundle written"),
            // Another client has written to it: the watch brings the new version.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
