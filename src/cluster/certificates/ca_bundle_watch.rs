//! The CAs that the API server trusts: the caBundles of our webhook configurations, watched by name. The
//! comparison with the installed objects gets its events from here.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object};
use kube::{Api, Client};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use super::stored::certificates;
use crate::cluster::tamper;
use crate::cluster::tamper::Observation;

/// The two kinds of configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigurationKind {
    /// MutatingWebhookConfiguration
    Mutating,
    /// ValidatingWebhookConfiguration
    Validating,
}

/// The last read state of one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConfigurationState {
    /// Not read yet, or not allowed to be read.
    #[default]
    Unknown,
    /// There is none: the API server does not call the webhook.
    Absent,
    /// It exists.
    Present(ConfigurationObject),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationObject {
    /// Its version, for a conditional write.
    pub resource_version: String,
    /// Its webhooks, in order.
    pub webhooks: Vec<BundleEntry>,
}

/// One webhook of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleEntry {
    pub name: String,
    /// The name that the API server expects: a Service's DNS name, or a URL's host.
    pub host: String,
    /// The CAs that may sign for it; empty means the system's CAs.
    pub ca_bundle: Vec<u8>,
}

/// Both configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaBundles {
    pub mutating: ConfigurationState,
    pub validating: ConfigurationState,
}

impl CaBundles {
    /// Of these configurations; `None` where there is none.
    pub fn of(
        mutating: Option<MutatingWebhookConfiguration>,
        validating: Option<ValidatingWebhookConfiguration>,
    ) -> Self {
        Self { mutating: mutating_state(mutating), validating: validating_state(validating) }
    }

    /// Both, with their kind.
    pub fn configurations(&self) -> [(ConfigurationKind, &ConfigurationState); 2] {
        [(ConfigurationKind::Mutating, &self.mutating), (ConfigurationKind::Validating, &self.validating)]
    }

    fn webhooks(&self) -> impl Iterator<Item = &BundleEntry> {
        self.configurations().into_iter().flat_map(|(_, watch_state)| match watch_state {
            ConfigurationState::Present(configuration) => configuration.webhooks.as_slice(),
            ConfigurationState::Unknown | ConfigurationState::Absent => &[],
        })
    }

    /// Whether both have been read.
    pub fn is_known(&self) -> bool {
        self.configurations().iter().all(|(_, watch_state)| **watch_state != ConfigurationState::Unknown)
    }

    /// All caBundles.
    pub fn bundles(&self) -> Vec<Vec<u8>> {
        self.webhooks().map(|webhook| webhook.ca_bundle.clone()).collect()
    }

    /// Whether every caBundle holds every certificate of `bundle`.
    pub fn holds(&self, bundle: &str) -> bool {
        let wanted = certificates(bundle.as_bytes());
        self.webhooks().all(|webhook| {
            let held = certificates(&webhook.ca_bundle);
            wanted.iter().all(|certificate| held.contains(certificate))
        })
    }

    /// Why the API server would reject this chain; `None` where it accepts it. An empty caBundle means the
    /// CAs of the API server's system, which this process cannot read.
    pub fn rejection(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Option<String> {
        let webhooks = self.webhooks().filter(|webhook| !webhook.ca_bundle.is_empty());
        webhooks.map(|webhook| webhook.accepts(chain, now)).find_map(Result::err)
    }
}

impl BundleEntry {
    fn of(name: String, config: &WebhookClientConfig) -> Self {
        let host = match (&config.service, &config.url) {
            (Some(service), _) => format!("{}.{}.svc", service.name, service.namespace),
            (None, url) => {
                let url = url.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
                let host = url.as_ref().and_then(|url| url.host()).unwrap_or_default();
                host.trim_matches(['[', ']']).to_owned()
            }
        };
        Self { name, host, ca_bundle: config.ca_bundle.clone().map(|bytes| bytes.0).unwrap_or_default() }
    }

    fn accepts(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Result<(), String> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err("there is no certificate".to_owned());
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&self.ca_bundle));
        let provider = CryptoProvider::get_default().ok_or("no TLS provider is installed")?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let verifier = verifier.build().map_err(|error| format!("the caBundle is unusable: {error}"))?;
        let name = match self.host.parse::<IpAddr>() {
            Ok(address) => ServerName::IpAddress(address.into()),
            Err(_) => ServerName::try_from(self.host.clone())
                .map_err(|_| format!("the configuration names no host ({:?})", self.host))?,
        };
        let since_epoch = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
        let now = UnixTime::since_unix_epoch(since_epoch);
        let verified = verifier.verify_server_cert(leaf, intermediates, &name, &[], now);
        verified.map(drop).map_err(|error| {
            format!("the caBundle of the webhook at {} does not accept our certificate: {error}", self.host)
        })
    }
}

/// Watches both configurations of one name, forever; sends each change to `watched`.
pub async fn follow(
    client: Client,
    name: String,
    trust: watch::Sender<CaBundles>,
    watched: mpsc::UnboundedSender<Observation>,
) {
    let mutating = follow_one(client.clone(), &name, |seen: Option<MutatingWebhookConfiguration>| {
        send_observation(&watched, tamper::GuardKind::Mutating, &name, seen.as_ref());
        trust.send_if_modified(|trust| replace(&mut trust.mutating, mutating_state(seen)));
    });
    let validating = follow_one(client, &name, |seen: Option<ValidatingWebhookConfiguration>| {
        send_observation(&watched, tamper::GuardKind::Validating, &name, seen.as_ref());
        trust.send_if_modified(|trust| replace(&mut trust.validating, validating_state(seen)));
    });
    tokio::join!(mutating, validating);
}

fn send_observation(
    watched: &mpsc::UnboundedSender<Observation>,
    kind: tamper::GuardKind,
    name: &str,
    configuration: Option<&impl Serialize>,
) {
    let id = tamper::GuardId { kind, name: name.to_owned() };
    // A value decoded from JSON encodes as JSON. The receiver is closed where nothing is compared.
    let object = configuration.map(|object| serde_json::to_value(object).unwrap_or_default());
    let _ = watched.send(Observation { id, object });
}

fn replace(old: &mut ConfigurationState, new: ConfigurationState) -> bool {
    let changed = *old != new;
    *old = new;
    changed
}

fn mutating_state(seen: Option<MutatingWebhookConfiguration>) -> ConfigurationState {
    watch_state(seen, |c| (c.metadata, c.webhooks), |webhook| (webhook.name, webhook.client_config))
}

fn validating_state(seen: Option<ValidatingWebhookConfiguration>) -> ConfigurationState {
    watch_state(seen, |c| (c.metadata, c.webhooks), |webhook| (webhook.name, webhook.client_config))
}

fn watch_state<C, W>(
    seen: Option<C>,
    parts: impl Fn(C) -> (ObjectMeta, Option<Vec<W>>),
    client_config: impl Fn(W) -> (String, WebhookClientConfig),
) -> ConfigurationState {
    let Some(configuration) = seen else { return ConfigurationState::Absent };
    let (metadata, webhooks) = parts(configuration);
    let webhooks = webhooks.unwrap_or_default().into_iter();
    ConfigurationState::Present(ConfigurationObject {
        resource_version: metadata.resource_version.unwrap_or_default(),
        webhooks: webhooks.map(client_config).map(|(name, config)| BundleEntry::of(name, &config)).collect(),
    })
}

async fn follow_one<K>(client: Client, name: &str, mut observe: impl FnMut(Option<K>))
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    let stream = watch_object(Api::<K>::all(client), name).default_backoff();
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        match event {
            Ok(seen) => observe(seen),
            Err(error) => report(&K::kind(&()), &error),
        }
    }
}

fn report(kind: &str, error: &watcher::Error) {
    match error {
        // A webhook that runs separately has no right to read them.
        watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 403 => {
            tracing::debug!(kind, %error, "the webhook configuration cannot be read");
        }
        _ => tracing::warn!(kind, %error, "the webhook configuration cannot be watched; retrying"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::authority::{authority, leaf};
    use super::*;

    fn bundles_of(host: &str, bundle: &str) -> CaBundles {
        let webhooks = vec![BundleEntry {
            name: "w".to_owned(),
            host: host.to_owned(),
            ca_bundle: bundle.as_bytes().to_vec(),
        }];
        let configuration = ConfigurationObject { resource_version: "1".to_owned(), webhooks };
        CaBundles {
            mutating: ConfigurationState::Present(configuration),
            validating: ConfigurationState::Absent,
        }
    }

    #[test]
    fn a_chain_is_judged_as_the_api_server_would() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let life = Duration::from_secs(1000);
        let (ca, other) = (authority(now, life).unwrap(), authority(now, life).unwrap());
        let names = ["hook.here.svc".to_owned(), "127.0.0.1".to_owned()];
        let chain = certificates(leaf(&ca, &names, now, life).unwrap().certificate.as_bytes());
        let both = format!("{}{}", other.certificate, ca.certificate);
        let rejection = |trust: &CaBundles, at| trust.rejection(&chain, at);
        for (host, bundle, accepted) in [
            ("hook.here.svc", ca.certificate.as_str(), true),
            ("hook.here.svc", both.as_str(), true),
            ("127.0.0.1", ca.certificate.as_str(), true),
            ("hook.there.svc", ca.certificate.as_str(), false),
            ("hook.here.svc", other.certificate.as_str(), false),
            ("hook.here.svc", "\n", false),
            ("hook.here.svc", "", true),
        ] {
            let refused = rejection(&bundles_of(host, bundle), now);
            assert_eq!(refused.is_none(), accepted, "{host} {bundle:?}: {refused:?}");
        }
        let skewed = now - Duration::from_secs(1800);
        assert_eq!(rejection(&bundles_of("hook.here.svc", &ca.certificate), skewed), None, "a clock behind");
        let late = now + life + Duration::from_secs(1);
        assert!(rejection(&bundles_of("hook.here.svc", &ca.certificate), late).is_some(), "ended");
        assert_eq!(rejection(&CaBundles::default(), now), None, "nothing is known");
        assert!(bundles_of("a", &both).holds(&ca.certificate));
        assert!(!bundles_of("a", &ca.certificate).holds(&both));
    }
}
