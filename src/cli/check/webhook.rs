//! The answers of the webhook's endpoints about an object.

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::admission::{
    AdmissionAnswer, CacheWait, Config, DecisionRecord, WebhookEndpoint, answer,
};
use interlock_core::api::object::{Gvk, meta_str};
use serde_json::{Value, json};

use super::object::namespace_of;
use super::state::ClusterState;

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum CheckedWrite {
    /// The object is created.
    Create,
    /// It changes from the current one.
    Update,
    /// It is deleted.
    Delete,
}

impl CheckedWrite {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write of an object, as the API server asks the webhook about it.
pub(super) struct Write {
    pub(super) operation: CheckedWrite,
    /// The object that is written; null where it is deleted.
    pub(super) object: Value,
    /// The stored object; null where there is none.
    pub(super) old: Value,
}

/// The answer of one endpoint.
pub(super) struct WebhookAnswer {
    pub(super) response: Value,
    pub(super) record: DecisionRecord<'static>,
    pub(super) patch: Value,
    /// The object with the patch applied.
    pub(super) object: Value,
}

impl WebhookAnswer {
    pub(super) fn is_allowed(&self) -> bool {
        self.response["allowed"] == json!(true)
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let warnings = self.response["warnings"].as_array();
        warnings.into_iter().flatten().filter_map(|warning| warning.as_str().map(str::to_owned))
    }
}

/// Asks one endpoint.
pub(super) fn ask(
    endpoint: WebhookEndpoint,
    write: &Write,
    user: &str,
    state: &ClusterState,
    config: &Config,
) -> anyhow::Result<WebhookAnswer> {
    let body = serde_json::to_vec(&review(write, user)?)?;
    let answer =
        answer(state.guarded(), endpoint, &body, state.lister(), config, CacheWait::Exhausted, None)?;
    let reply = match answer {
        AdmissionAnswer::Done(reply) => reply,
        AdmissionAnswer::Wait(key) => {
            bail!("OperatorVersion {key} is not among the objects: add it with --objects")
        }
    };
    let mut answer: Value = serde_json::from_slice(&reply.body)?;
    let response = answer["response"].take();
    let mut object = write.object.clone();
    let patch = match response["patch"].as_str() {
        Some(text) => serde_json::from_slice(&STANDARD.decode(text)?)?,
        None => json!([]),
    };
    let operations: json_patch::Patch = serde_json::from_value(patch.clone())?;
    json_patch::patch(&mut object, &operations)?;
    Ok(WebhookAnswer { response, record: reply.record.into_owned(), patch, object })
}

fn review(write: &Write, user: &str) -> anyhow::Result<Value> {
    let present = if write.object.is_null() { &write.old } else { &write.object };
    let gvk = Gvk::of(present).context("the object has no apiVersion or no kind: add both")?;
    let name = meta_str(&write.old, "name").or(meta_str(&write.object, "name"));
    Ok(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "interlock-check",
            "kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
            "name": name,
            "namespace": namespace_of(present),
            "operation": write.operation.as_str(),
            "userInfo": {"username": user},
            "object": write.object,
            "oldObject": write.old,
            "dryRun": true,
        }
    }))
}
