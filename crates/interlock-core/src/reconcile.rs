//! A reconciler as a pure function of what was read: it names what it must see, then the effects that it
//! wants, until it waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::capability::Capability;
use crate::api::object::{Gvk, ObjectKey};
use crate::certificate::{CertificateAnswer, CertificateRequest};
use crate::effect::Effect;

/// The reconciler of a kind.
#[derive(Debug)]
pub struct Reconciler {
    /// Name in metrics and logs; one word.
    pub name: &'static str,
    /// The capability that switches it on and off. It needs the kind, whatever else the kind is watched for.
    pub capability: &'static Capability,
    /// Decides the next step. It is called again with what it asked to see, and after its effects.
    pub reconcile: fn(&ReconcileInput<'_>) -> ReconcileStep,
}

/// What a reconciler decides on.
#[derive(Debug)]
pub struct ReconcileInput<'a> {
    /// The object, as just read.
    pub object: &'a Value,
    /// The other objects that it asked to see in this reconcile; `None` for one that does not exist.
    pub found: &'a BTreeMap<ObjectKey, Option<Arc<Value>>>,
    /// Those that it asked to see if that is allowed, and may not.
    pub withheld: &'a BTreeSet<ObjectKey>,
    /// The objects of the lists that it asked for.
    pub listed: &'a BTreeMap<ObjectList, Vec<Arc<Value>>>,
    /// What the pods answered that it asked.
    pub answered: &'a BTreeMap<PodRequest, PodAnswer>,
    /// What became of the certificate that it asked for in this reconcile.
    pub certificate: Option<&'a CertificateAnswer>,
    /// The time.
    pub now: Timestamp,
}

/// What a reconciler wants.
#[derive(Clone, Debug, PartialEq)]
pub enum ReconcileStep {
    /// To see these objects.
    Read(Vec<ObjectKey>),
    /// To see these objects, as far as this process may.
    ReadIfAllowed(Vec<ObjectKey>),
    /// To see these lists.
    List(Vec<ObjectList>),
    /// To have these pods asked.
    Ask(Vec<PodRequest>),
    /// To have this certificate in its Secret; one in a reconcile.
    Certify(Box<CertificateRequest>),
    /// To have these effects, one after the other.
    Write(Vec<Effect>),
    /// Nothing until an event of the object, or until this time has passed.
    Await(Option<Duration>),
}

/// The objects of a kind in one namespace that have these labels; none where the kind is not defined. Between two
/// writes a reconciler sees at most 16 lists, each of at most 500 objects and 16 MiB.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectList {
    /// The kind.
    pub gvk: Gvk,
    /// The namespace.
    pub namespace: String,
    /// Labels that an object must have, by name.
    pub labels: BTreeMap<String, String>,
}

/// A GET to a pod at its own address: it follows no redirect, and ends after 2 s or 1 MiB. Between two writes a
/// reconciler has the answers of at most 512, of which eight are sent at once, with 32 MiB together; those of one step that
/// take longer than 30 s are not awaited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRequest {
    /// IP address of the pod; never that of its node. A loopback or link-local one is not dialled.
    pub address: String,
    /// Port.
    pub port: u16,
    /// The name that its certificate has to have, where it is asked over TLS with the client certificate of this
    /// process; `None` = over plain HTTP.
    pub tls: Option<String>,
    /// Absolute path.
    pub path: &'static str,
    /// Whether the path is that of a list of Kong's Admin API, of which all pages are read within 10 s
    /// ([`crate::api::kong::listing`]).
    pub all_pages: bool,
}

/// What a pod answered: the status and the body, or why there is no answer, for people.
pub type PodAnswer = Result<PodResponse, String>;

/// An answer of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodResponse {
    /// HTTP status.
    pub status: u16,
    /// The header `Server`, if it is text.
    pub server: Option<String>,
    /// The body, at most 1 MiB; of a list that was read with all its pages, a JSON array of the names of its elements.
    pub body: Arc<[u8]>,
}
