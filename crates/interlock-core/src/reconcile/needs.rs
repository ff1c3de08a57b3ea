//! What a pass lacks.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::object::{Gvk, ObjectKey};
use crate::certificate::CertificateRequest;
use crate::effect::PodFile;

/// What a pass lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Objects.
    pub objects: BTreeSet<ObjectKey>,
    /// Objects that this process may not be allowed to read.
    pub if_allowed: BTreeSet<ObjectKey>,
    /// Lists.
    pub lists: BTreeSet<ObjectList>,
    /// Answers of pods.
    pub answers: BTreeSet<PodRequest>,
    /// A certificate in its Secret; one in a reconcile.
    pub certificate: Option<Box<CertificateRequest>>,
    /// The pods that were asked before have to be asked again: their answers are too old.
    pub again: bool,
    /// Objects whose absence ends a task: where a cache lacks one, the API server is asked, as a task that trusts a stale
    /// cache would leave it alive.
    pub certainly: BTreeSet<ObjectKey>,
    /// How kinds are served.
    pub kinds: BTreeSet<Gvk>,
    /// Digests of ConfigMaps and Secrets that pods use. One is read as the account of a package where the Instance did
    /// not make it, and not kept.
    pub digests: BTreeSet<ObjectKey>,
    /// Why workloads lack pods.
    pub pod_failures: BTreeSet<ObjectKey>,
    /// Files of pods.
    pub files: BTreeSet<PodFile>,
    /// The inventory of an Instance.
    pub inventory: bool,
}

impl Needs {
    /// One object.
    pub fn object(key: ObjectKey) -> Self {
        Self { objects: [key].into(), ..Self::default() }
    }

    /// Whether nothing is lacking.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is lacking, by the names of the fields.
    pub fn parts(&self) -> impl Iterator<Item = &'static str> + use<> {
        // Every field, so that a new one is named.
        let Self {
            objects,
            if_allowed,
            lists,
            answers,
            certificate,
            again,
            certainly,
            kinds,
            digests,
            pod_failures,
            files,
            inventory,
        } = self;
        let parts = [
            ("objects", !objects.is_empty()),
            ("if_allowed", !if_allowed.is_empty()),
            ("lists", !lists.is_empty()),
            ("answers", !answers.is_empty()),
            ("certificate", certificate.is_some()),
            ("again", *again),
            ("certainly", !certainly.is_empty()),
            ("kinds", !kinds.is_empty()),
            ("digests", !digests.is_empty()),
            ("pod_failures", !pod_failures.is_empty()),
            ("files", !files.is_empty()),
            ("inventory", *inventory),
        ];
        parts.into_iter().filter(|(_, is_lacking)| *is_lacking).map(|(part, _)| part)
    }

    /// Adds what another pass, or another part of it, lacks.
    pub fn add(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.if_allowed.extend(other.if_allowed);
        self.lists.extend(other.lists);
        self.answers.extend(other.answers);
        self.certificate = self.certificate.take().or(other.certificate);
        self.again |= other.again;
        self.certainly.extend(other.certainly);
        self.kinds.extend(other.kinds);
        self.digests.extend(other.digests);
        self.pod_failures.extend(other.pod_failures);
        self.files.extend(other.files);
        self.inventory |= other.inventory;
    }
}

/// Both values, or all that either lacks.
pub fn both<A, B>(one: Result<A, Needs>, other: Result<B, Needs>) -> Result<(A, B), Needs> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(mut needs), Err(others)) => {
            needs.add(others);
            Err(needs)
        }
        (Err(needs), Ok(_)) | (Ok(_), Err(needs)) => Err(needs),
    }
}

/// The objects of a kind in one namespace that have these labels. A view has at most 16 lists, each of at most 500
/// objects and 16 MiB.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectList {
    /// The kind.
    pub gvk: Gvk,
    /// The namespace.
    pub namespace: String,
    /// Labels that an object must have, by name.
    pub labels: BTreeMap<String, String>,
}

/// A GET to a pod at its own address: it follows no redirect, and ends after 2 s or 1 MiB. A view has the answers of at
/// most 512, of which 64 are sent at once, with 32 MiB together; those of one step that take longer than 30 s are not
/// awaited.
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
    /// ([`interlock_kong::api::listing`]).
    pub all_pages: bool,
}
