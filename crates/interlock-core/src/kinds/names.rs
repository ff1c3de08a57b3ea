//! Names of the kinds that every domain knows, of links and of facts.

use crate::api::meta::{INTERLOCK_GROUP, KUDO_GROUP};
use crate::api::watched::Labelled;
use crate::topology::KindName;

/// `Instance.kudo.dev`.
pub const INSTANCE: KindName = KindName::new(KUDO_GROUP, "Instance");
/// `Interlock.interlock.dev`.
pub const INTERLOCK: KindName = KindName::new(INTERLOCK_GROUP, "Interlock");
/// `Override.interlock.dev`.
pub const OVERRIDE: KindName = KindName::new(INTERLOCK_GROUP, "Override");
/// `Namespace`.
pub const NAMESPACE: KindName = KindName::new("", "Namespace");

/// Labelled objects under the name of their watch.
pub const fn watched_as(labelled: &Labelled) -> KindName {
    KindName::new(labelled.group, labelled.name)
}

/// Links that rules and controllers follow.
pub mod link {
    /// An Instance and its OperatorVersion.
    pub const OPERATOR_VERSION: &str = "operatorVersion";
    /// An object and its Namespace.
    pub const NAMESPACE: &str = "namespace";
    /// A gateway and a ConfigMap that its flavor may come from.
    pub const FLAVOR_SOURCE: &str = "flavorSource";
    /// What belongs to a DataPlane, and the DataPlane.
    pub const DATA_PLANE: &str = "dataPlane";
    /// An object and its owner.
    pub const MADE_BY: &str = "madeBy";
}

/// Facts that rules and controllers read.
pub mod fact {
    /// The plan that holds the lock of an Instance; empty where none does.
    pub const LOCKED: &str = "locked";
    /// Whether an Instance is settled: its last plan is carried out and it is ready.
    pub const AT_REST: &str = "atRest";
    /// The state of an Instance, one of `STATES` of Instances.
    pub const STATE: &str = "state";
    /// Whether the spec of an Instance has drifted.
    pub const DRIFTED: &str = "drifted";
    /// What an Instance waits for, one of `WAITING` of Instances.
    pub const WAITS: &str = "waits";
    /// When the running plan of an Instance was started, in Unix seconds.
    pub const STARTED: &str = "started";
    /// Since when an Instance has been in trouble, in Unix seconds; 0 where it is not.
    pub const TROUBLED: &str = "troubled";
    /// When an object was created, in Unix seconds; 0 where that is not known.
    pub const CREATED: &str = "created";
    /// Whether a Gateway is programmed: 1 for yes, 2 for no, 0 for unknown.
    pub const PROGRAMMED: &str = "programmed";
    /// The phase of a DataPlane's rollout.
    pub const PHASE: &str = "phase";
    /// Since when a DataPlane is in its phase, in Unix seconds; 0 where that is not known.
    pub const PHASE_SINCE: &str = "phaseSince";
    /// The colour of a child of a DataPlane.
    pub const COLOUR: &str = "colour";
    /// Whether a child of a DataPlane is `live` or of the `preview`.
    pub const SIDE: &str = "side";
    /// How many pods of a Deployment of a DataPlane are ready.
    pub const READY_REPLICAS: &str = "readyReplicas";
    /// How many pods a Deployment of a DataPlane asks for.
    pub const REPLICAS: &str = "replicas";
    /// Whether a Namespace or an owned child is being deleted.
    pub const TERMINATING: &str = "terminating";
    /// Uid of the Instance that an Override is about.
    pub const OVERRIDDEN_OBJECT: &str = "overriddenObject";
    /// The rule that an Override is about.
    pub const OVERRIDDEN_RULE: &str = "overriddenRule";
    /// The user that an Override is about.
    pub const OVERRIDING_USER: &str = "overridingUser";
    /// When an Override ceases to hold, in Unix seconds; 0 where that is not known.
    pub const EXPIRES: &str = "expires";
    /// Whether an object is healthy.
    pub const HEALTHY: &str = "healthy";
    /// The word for yes; the empty word is no.
    pub const YES: &str = "yes";
}
