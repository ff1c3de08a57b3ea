//! The source of the serving certificate, and whether the API server accepts it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, watch};

use super::options::ServingCertificate;
use super::{Parts, Process, RunError};
use crate::cluster::certificates::{
    CaBundles, CertificateController, CertificateSettings, KeyPem, ca_bundle_watch,
};
use crate::cluster::lease::Leadership;
use crate::cluster::tamper::Observation;
use crate::server::certificate_reloader::CertificateFiles;
use crate::server::tls::{CertificateResolver, Pair};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::readyz::Check;

/// Time between two checks: no event reports that a certificate expires.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How long a caBundle must be unchanged before the process relies on it: the time in which every API
/// server of a cluster has seen it in its own watch.
const PROPAGATION: Duration = Duration::from_secs(5);
/// How long a CA that has left the Secret is still trusted: every replica has seen the other one for
/// [`PROPAGATION`], and kubelets, which sync once a minute, have delivered it to replicas that read files.
const RETENTION: Duration = Duration::from_secs(180);

impl Process {
    /// `watched` receives each change of the webhook configurations.
    pub(super) fn maintain_certificates(
        &self,
        process_client: &Client,
        watched: mpsc::UnboundedSender<Observation>,
        leadership: watch::Receiver<Leadership>,
        parts: &mut Parts,
    ) -> Result<(), RunError> {
        let options = &self.options;
        let names = options.names().map_err(|problem| RunError::WebhookUrl {
            url: options.webhook_url.clone().unwrap_or_default(),
            problem,
        })?;
        let (trust, seen) = watch::channel(CaBundles::default());
        let follow = ca_bundle_watch::follow(
            process_client.clone(),
            options.webhook_configuration.clone(),
            trust,
            watched,
        );
        parts.spawn(async {
            follow.await;
            Ok("the watch of the webhook configurations")
        });
        match options.certificates.clone() {
            ServingCertificate::Files { dir, interval } => {
                let follow = CertificateFiles::new(dir).follow(interval, self.resolver.clone());
                parts.spawn(async {
                    follow.await;
                    Ok("the certificate files")
                });
            }
            ServingCertificate::Builtin { secret, leaf_lifetime, ca_lifetime } => {
                let settings = CertificateSettings {
                    namespace: options.namespace.clone(),
                    secret,
                    configuration: options.webhook_configuration.clone(),
                    names,
                    leaf_lifetime,
                    authority_lifetime: ca_lifetime,
                    propagation: PROPAGATION.min(leaf_lifetime / 10),
                    // By then every leaf of it has expired.
                    retention: RETENTION.min(leaf_lifetime),
                };
                let controller =
                    CertificateController::new(process_client.clone(), settings, seen.clone(), leadership);
                parts.spawn(serve_selected(controller.serve(), self.resolver.clone()));
                parts.spawn(async {
                    controller.run().await;
                    Ok("the certificate controller")
                });
            }
        }
        let check = self.readiness.check("certificate");
        parts.spawn(check_acceptance(self.resolver.clone(), seen, check, self.metrics.clone()));
        Ok(())
    }
}

/// Serves the certificate that the controller selects.
async fn serve_selected(
    mut serve: watch::Receiver<Option<KeyPem>>,
    resolver: CertificateResolver,
) -> Result<&'static str, RunError> {
    while serve.changed().await.is_ok() {
        let Some(pem) = serve.borrow_and_update().clone() else { continue };
        match Pair::from_pem(pem.certificate.as_bytes(), pem.key.as_bytes()) {
            Ok(pair) => resolver.show(pair),
            Err(error) => {
                tracing::error!(%error, "the certificate is invalid; still serving the last valid one")
            }
        }
    }
    Ok("the certificate controller")
}

/// Ready only while the API server would accept the served certificate, as far as its caBundle shows.
async fn check_acceptance(
    resolver: CertificateResolver,
    mut trust: watch::Receiver<CaBundles>,
    check: Check,
    metrics: Arc<Metrics>,
) -> Result<&'static str, RunError> {
    let mut pairs = resolver.subscribe();
    let mut reported = None;
    loop {
        let pair = pairs.borrow_and_update().clone();
        match &pair {
            None => check.fail("there is no certificate yet"),
            Some(pair) => {
                if reported != Some(pair.not_after()) {
                    reported = Some(pair.not_after());
                    metrics.certificate(pair.not_after());
                    let ends = Timestamp::from_second(pair.not_after()).unwrap_or_default();
                    tracing::info!(%ends, "serving certificate replaced");
                }
                match trust.borrow_and_update().rejection(pair.chain(), Timestamp::now()) {
                    None => check.pass(),
                    Some(problem) => check.fail(problem),
                }
            }
        }
        tokio::select! {
            Ok(()) = pairs.changed() => {}
            Ok(()) = trust.changed() => {}
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
        }
    }
}
