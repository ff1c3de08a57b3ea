//! The guarded objects: a DataPlane, or a Deployment that runs Kong, reduced to its flavor.

use std::cell::RefCell;
use std::collections::BTreeSet;

use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::pod::{DeploymentSpec, PodTemplate, ReplicaStatus};
use interlock_core::api::revision;
use interlock_core::api::stamp::SpecHash;
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use thiserror::Error;

use super::Flavor;
use super::environment::{Surroundings, Unknown};
use super::gateway_ref::{FlavorSpec, GatewayKind, GatewayRef};
use super::reading::{Effective, FlavorReading};
use super::sources::{FlavorSource, KeyLookup, Nothing, Sources};
use crate::api;
use crate::api::DataPlaneSpec;
use crate::api::stamp::LiveStamp;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::side::Colour;

/// An unreadable object of a known kind.
#[derive(Debug, Error)]
#[error("{subject} cannot be read: {source}; correct the field that it names")]
pub struct UnreadableGateway {
    subject: GatewayRef,
    #[source]
    source: serde_json::Error,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Its kind and name.
    pub subject: GatewayRef,
    pub spec: FlavorSpec,
    /// Whether it is scaled to zero and has no pod left.
    pub stopped: bool,
}

impl Gateway {
    /// Reads an object; `None` for another kind. `namespace` is the default for an absent one.
    pub fn read(
        object: &Value,
        namespace: &str,
        sources: &dyn Sources,
    ) -> Result<Option<Self>, UnreadableGateway> {
        let Some(subject) = Self::subject_of(object, namespace) else { return Ok(None) };
        Self::of(subject.clone(), &object["spec"], &object["status"], sources)
            .map(Some)
            .map_err(|source| UnreadableGateway { subject, source })
    }

    /// Reads the spec of the live pods: for a DataPlane that of its last-applied annotation, if valid,
    /// else the stored one.
    pub fn live(
        object: &Value,
        namespace: &str,
        sources: &dyn Sources,
    ) -> Result<Option<Self>, UnreadableGateway> {
        let stored = Self::read(object, namespace, sources)?;
        let (Some(stamp), Some(stored)) = (stamp_of(object), &stored) else { return Ok(stored) };
        let live = match (stamp.live_spec(), stamp.flavor_spec()) {
            (Some(spec), _) => {
                Self::parse(stored.subject.clone(), spec, &object["status"].to_string(), sources)
            }
            (None, _) if is_live(&object["spec"], &stamp) => Ok(stored.clone()),
            (None, Some(excerpt)) => Self::parse(stored.subject.clone(), excerpt, "{}", sources)
                .map(|live| Self { stopped: stored.stopped, ..live }),
            (None, None) => {
                let uid = meta_str(object, "uid").unwrap_or_default();
                let reading = referenced(&stored.subject, uid, &stamp);
                let spec = FlavorSpec { reading, staged: stored.spec.staged };
                return Ok(Some(Self { spec, ..stored.clone() }));
            }
        };
        // An unreadable spec of an earlier process does not count.
        let live = live.unwrap_or_else(|_| stored.clone());
        let uid = meta_str(object, "uid").unwrap_or_default();
        let literal = literal_flavor(
            &stamp,
            uid,
            stamp.live_spec().or(stamp.flavor_spec()).unwrap_or_default(),
            &live.subject,
        );
        Ok(Some(match literal {
            Some(flavor) => {
                let spec = FlavorSpec { reading: live.spec.reading.with(flavor), ..live.spec };
                Self { spec, ..live }
            }
            None => live,
        }))
    }

    /// The gateway with what its live pods run, which a plan begins with, and whether its stored spec stages
    /// changes.
    pub fn running(
        object: &Value,
        namespace: &str,
        sources: &dyn Sources,
    ) -> Result<Option<Self>, UnreadableGateway> {
        let stored = Self::read(object, namespace, sources)?;
        let live = Self::live(object, namespace, sources)?;
        Ok(stored.zip(live).map(|(stored, live)| Self {
            spec: FlavorSpec { reading: live.spec.reading, staged: stored.spec.staged },
            ..stored
        }))
    }

    /// The flavor of its live pods; if unreadable now, the one recorded when it became live, if any.
    pub fn runs(
        object: &Value,
        namespace: &str,
        sources: &dyn Sources,
    ) -> Result<Option<Effective>, UnreadableGateway> {
        let live = Self::live(object, namespace, sources)?;
        let effective = live.map(|live| live.spec.reading.effective);
        Ok(effective.map(|effective| match (&effective, stamped_flavor(object)) {
            (Effective::Unknown(_), Some(flavor)) => Effective::Known(flavor),
            _ => effective,
        }))
    }

    /// The reference to an object; `None` for another kind.
    pub fn subject_of(object: &Value, namespace: &str) -> Option<GatewayRef> {
        let own = meta_str(object, "namespace").filter(|own| !own.is_empty()).unwrap_or(namespace);
        let name = NamespacedName::new(own, meta_str(object, "name").unwrap_or_default());
        Some(GatewayRef { kind: kind_of(object)?, name })
    }

    /// Parses the texts of a spec and a status.
    pub fn parse(
        subject: GatewayRef,
        spec: &str,
        status: &str,
        sources: &dyn Sources,
    ) -> Result<Self, serde_json::Error> {
        let (mut spec, mut status) =
            (serde_json::Deserializer::from_str(spec), serde_json::Deserializer::from_str(status));
        Self::of(subject, &mut spec, &mut status, sources)
    }

    /// Whether the rules apply to an object: every DataPlane, and labelled Deployments.
    pub fn is_guarded(object: &Value) -> bool {
        match kind_of(object) {
            Some(GatewayKind::DataPlane) => true,
            Some(GatewayKind::Deployment) => object["metadata"]["labels"][meta::GUARD] == meta::GUARD_FLAVOR,
            None => false,
        }
    }

    fn of<'de, D: Deserializer<'de>>(
        subject: GatewayRef,
        spec: D,
        status: D,
        sources: &dyn Sources,
    ) -> Result<Self, D::Error> {
        let (template, staged, replicas): (PodTemplate, bool, Option<i32>) = match subject.kind {
            GatewayKind::DataPlane => {
                let spec = Option::<DataPlaneSpec>::deserialize(spec)?.unwrap_or_default();
                let staged = spec.is_staged();
                (spec.deployment.pod_template_spec, staged, spec.deployment.replicas)
            }
            GatewayKind::Deployment => {
                let spec = Option::<DeploymentSpec>::deserialize(spec)?.unwrap_or_default();
                (spec.template, false, spec.replicas)
            }
        };
        let status = Option::<ReplicaStatus>::deserialize(status)?.unwrap_or_default();
        let surroundings =
            Surroundings { namespace: &subject.name.namespace, template: &template.metadata, sources };
        let reading = match subject.kind {
            GatewayKind::DataPlane => FlavorReading::of(&template, surroundings),
            GatewayKind::Deployment => FlavorReading::of_any(&template, surroundings),
        };
        Ok(Self {
            spec: FlavorSpec { reading, staged },
            stopped: replicas == Some(0) && status.replicas.unwrap_or_default() == 0,
            subject,
        })
    }
}

/// The ConfigMaps and Secrets that the flavor of a gateway comes from, or would come from if they had
/// the key: those of its live pods, and those of the stored spec.
pub fn sources_of(object: &Value) -> BTreeSet<FlavorSource> {
    let asked = Asking(RefCell::default());
    // For an unreadable object, the sources requested before the error.
    let _ = Gateway::read(object, "", &asked);
    let _ = Gateway::live(object, "", &asked);
    asked.0.into_inner()
}

/// The hash of the live spec of a DataPlane, if its last-applied annotation only refers to that spec.
pub fn referenced_spec(object: &Value) -> Option<SpecHash> {
    stamp_of(object).filter(|stamp| stamp.spec().is_none()).map(|stamp| stamp.hash)
}

/// The same, where another spec is stored: what is live is in no field of the object.
pub fn unread_spec(object: &Value) -> Option<SpecHash> {
    referenced_spec(object).filter(|hash| live_spec::hash(&object["spec"]) != *hash)
}

/// Whether the stored spec is the one that the annotation refers to: nothing is staged.
pub fn is_live(stored: &Value, stamp: &LiveStamp<'_>) -> bool {
    live_spec::hash(stored) == stamp.hash
}

/// The flavor of live pods whose spec the annotation only refers to.
pub fn referenced(subject: &GatewayRef, uid: &str, stamp: &LiveStamp<'_>) -> FlavorReading {
    let name = revision::name(&subject.name.name, uid, &stamp.hash, 0);
    let revision = NamespacedName::new(subject.name.namespace.as_str(), name);
    FlavorReading::of_live(stamp.flavor.as_deref().and_then(Flavor::named), Unknown::Revision(revision))
}

/// The recorded flavor of live pods that Interlock has made from a spec whose flavor comes from a ConfigMap or Secret:
/// these have it as a literal, whatever the source holds now.
pub fn literal_flavor(stamp: &LiveStamp<'_>, uid: &str, spec: &str, subject: &GatewayRef) -> Option<Flavor> {
    Colour::of_selector(uid, stamp.selector.as_deref()?)?;
    let recorded = Flavor::named(stamp.flavor.as_deref()?)?;
    let alone = Gateway::parse(subject.clone(), spec, "{}", &Nothing).ok()?.spec.reading.effective;
    matches!(alone, Effective::Unknown(Unknown::Unseen(_))).then_some(recorded)
}

/// The last-applied annotation of a DataPlane, if it is valid.
fn stamp_of(object: &Value) -> Option<LiveStamp<'_>> {
    if kind_of(object) != Some(GatewayKind::DataPlane) {
        return None;
    }
    let stamp = LiveStamp::of_object(object).ok()?;
    Some(live_spec::without_unrecorded(stamp, &object["status"]))
}

fn stamped_flavor(object: &Value) -> Option<Flavor> {
    Flavor::named(stamp_of(object)?.flavor.as_deref()?)
}

/// Records the requested sources; none has the key, so that the next one is requested, too.
struct Asking(RefCell<BTreeSet<FlavorSource>>);

impl Sources for Asking {
    fn ask(&self, source: &FlavorSource, _: &str) -> KeyLookup {
        self.0.borrow_mut().insert(source.clone());
        KeyLookup::NoKey
    }
}

fn kind_of(object: &Value) -> Option<GatewayKind> {
    match (object["apiVersion"].as_str()?, object["kind"].as_str()?) {
        (api::API_VERSION, "DataPlane") => Some(GatewayKind::DataPlane),
        ("apps/v1", "Deployment") => Some(GatewayKind::Deployment),
        _ => None,
    }
}
