//! What Interlock keeps of a DataPlane that Kong's operator made: names and selectors of its children, which have random
//! letters, and the pod template of the live side, so that no pod is rolled.
//!
//! It is recorded once, in a ControllerRevision of the DataPlane: its data is immutable, and the default roles
//! of Kubernetes do not grant the right to write one. Every user who may edit the DataPlane may write an annotation,
//! which would let a pod template pass admission.

use interlock_core::api::object::ObjectKey;
use interlock_core::api::revision;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::Effect;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::promotion::staged_hash;
use super::side::{Colour, DeploymentIdentity};
use super::view::DataPlaneView;
use crate::api;

/// Names, selectors and a pod template that Kong's operator made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptChildren {
    /// The field managers that Kong's operator wrote the children as.
    pub managers: Vec<String>,
    /// The Deployment that was live: the blue side.
    pub live: DeploymentIdentity,
    /// The Deployment of the preview, where there was one: the green side.
    pub preview: Option<DeploymentIdentity>,
    /// Name of the live ingress Service.
    pub ingress: String,
    /// Name of the live admin Service.
    pub admin: String,
    /// Name of the preview's ingress Service, where there was one.
    pub preview_ingress: Option<String>,
    /// Name of the preview's admin Service, where there was one.
    pub preview_admin: Option<String>,
    /// The Secrets with the certificates of the admin API that the pods mount, that of the live ones first.
    pub certificates: Vec<String>,
    /// Hash of the staged fields of the spec that the template was made from.
    pub spec: SpecHash,
    /// The pod template of the live Deployment.
    pub template: Value,
}

impl KeptChildren {
    /// Name and selector of the Deployment of a colour of the DataPlane with this name and uid.
    pub fn identity(&self, data_plane: &str, uid: &str, colour: Colour) -> DeploymentIdentity {
        match (colour, &self.preview) {
            (Colour::Blue, _) => self.live.clone(),
            (Colour::Green, Some(preview)) => preview.clone(),
            (Colour::Green, None) => {
                let made = [Colour::Green, Colour::Blue]
                    .map(|colour| DeploymentIdentity::of(data_plane, uid, colour));
                // What was handed back and is taken over again may be live under a name of ours.
                let [green, blue] = made;
                if green.selector == self.live.selector { blue } else { green }
            }
        }
    }

    /// The pod template of a Deployment made from this spec, if it is the one that was live.
    pub fn template_of(&self, deployment: &DeploymentIdentity, spec: &Value) -> Option<&Value> {
        (*deployment == self.live && self.is_made_from(spec)).then_some(&self.template)
    }

    /// Whether the template that is kept was made from this spec.
    pub fn is_made_from(&self, spec: &Value) -> bool {
        staged_hash(spec) == self.spec
    }

    /// What is kept, for people.
    pub fn names(&self) -> String {
        let mut text = format!("Deployment {}, Services {} and {}", self.live.name, self.ingress, self.admin);
        if let Some(secret) = self.certificates.first() {
            text.push_str(&format!(", Secret {secret}"));
        }
        text
    }

    /// What a ControllerRevision records; `None` for one that is not the record of this DataPlane.
    pub fn read(of: &DataPlaneView<'_>, record: &Value) -> Option<Self> {
        let owners = record["metadata"]["ownerReferences"].as_array()?;
        let owned = owners.iter().any(|owner| owner["controller"] == true && owner["uid"] == of.uid);
        serde_json::from_value(record["data"].clone()).ok().filter(|_| owned)
    }

    /// The write that records it.
    pub fn record(&self, of: &DataPlaneView<'_>) -> Effect {
        let key = key(of);
        let object = json!({
            "apiVersion": revision::API_VERSION,
            "kind": revision::KIND,
            "metadata": {
                "name": key.name,
                "namespace": of.namespace,
                "ownerReferences": [{
                    "apiVersion": api::API_VERSION, "kind": "DataPlane", "name": of.name, "uid": of.uid, "controller": true,
                }],
            },
            "revision": of.generation,
            "data": self,
        });
        Effect::Create { object }
    }
}

/// The ControllerRevision of what is kept of a DataPlane.
pub fn key(of: &DataPlaneView<'_>) -> ObjectKey {
    let name = format!("{}-taken-over-{}", of.name, of.uid.get(..8).unwrap_or(of.uid));
    of.key_of(revision::API_VERSION, revision::KIND, name)
}

/// Deletes the record.
pub fn forget(of: &DataPlaneView<'_>, record: &Value) -> Effect {
    Effect::delete_of(key(of), record)
}
