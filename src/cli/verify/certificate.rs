//! Whether the API server accepts the certificate in the Secret, by the caBundles of the webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::api::meta::install;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::report::CheckResult;
use crate::cli::common::installation::{Installation, there};
use crate::cli::common::reader::ReadOutcome;
use crate::cluster::certificates::{CaBundles, validate};

const CHECK: &str = "certificate";

pub(super) async fn check(installation: &Installation) -> CheckResult {
    let namespace = installation.options.namespace.as_str();
    let read = installation.get("", "Secret", namespace, install::CERTIFICATE_SECRET).await;
    let (mutating, validating) = (there(&installation.mutating), there(&installation.validating));
    let bundles = CaBundles::of(decoded(mutating), decoded(validating));
    if let Some(name) = without_bundle(mutating).or_else(|| without_bundle(validating)) {
        let next = format!(
            "wait for the leader, which writes it, or look why it does not: `kubectl -n {namespace} logs \
             deployment/{}`",
            install::NAME
        );
        return CheckResult::failed(CHECK, format!("webhook {name} has no caBundle"), next);
    }
    match &read {
        ReadOutcome::There(secret) => judge(secret, &bundles, namespace, Timestamp::now()),
        ReadOutcome::Missing => CheckResult::skipped(
            CHECK,
            format!(
                "there is no Secret {namespace}/{}: the process serves a certificate from files, and the API \
                 server's calls below show whether it is accepted",
                install::CERTIFICATE_SECRET
            ),
        ),
        ReadOutcome::Unknown(why) => CheckResult::skipped(
            CHECK,
            format!("{why}; the API server's calls below show whether it is accepted"),
        ),
    }
}

fn decoded<K: DeserializeOwned>(found: Option<&Value>) -> Option<K> {
    found.and_then(|found| K::deserialize(found).ok())
}

/// The first webhook without a caBundle. One that is called by its URL may do with the CAs of the system.
fn without_bundle(configuration: Option<&Value>) -> Option<&str> {
    let mut webhooks = configuration?["webhooks"].as_array()?.iter();
    let lacks = |webhook: &&Value| {
        let config = &webhook["clientConfig"];
        config["caBundle"].as_str().unwrap_or_default().is_empty() && !config["service"].is_null()
    };
    webhooks.find(lacks)?["name"].as_str()
}

fn judge(secret: &Value, bundles: &CaBundles, namespace: &str, now: Timestamp) -> CheckResult {
    let next = format!(
        "delete the Secret, so that the leader makes another: `kubectl -n {namespace} delete secret {}`; where \
         cert-manager makes it, look at its Certificate",
        install::CERTIFICATE_SECRET
    );
    let leaf = secret["data"]["tls.crt"].as_str().and_then(|text| STANDARD.decode(text).ok());
    let leaf = leaf.and_then(|pem| String::from_utf8(pem).ok()).unwrap_or_default();
    let chain = match validate::chain(&leaf) {
        Ok(chain) if chain.is_empty() => Err("it holds none".to_owned()),
        other => other,
    };
    let chain = match chain {
        Ok(chain) => chain,
        Err(why) => return CheckResult::failed(CHECK, format!("tls.crt is no certificate: {why}"), next),
    };
    if let Some(why) = bundles.rejection(&chain, now) {
        return CheckResult::failed(CHECK, why, next);
    }
    let expires = validate::expires(&chain[0]).map_or_else(|| "unknown".to_owned(), |at| at.to_string());
    CheckResult::ok(CHECK, format!("every caBundle accepts the certificate, which expires at {expires}"))
}
