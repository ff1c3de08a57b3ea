//! Reads everything that explains an object: the object, its references, its owners, and the Events about
//! both.

use std::sync::Arc;

use interlock_core::api::interlock;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, annotation, meta_str};
use interlock_core::kinds;
use interlock_core::topology::KindName;
use interlock_core::topology::schema::{DeclaredKind, Family, Holder, Link, Ref};
use interlock_kong::api::labels;
use kube::Client;
use serde_json::Value;

use super::data_plane::{DataPlaneObjects, is_data_plane};
use crate::cli::common::discovery::{ServedKinds, ServedResource};
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};
use crate::cli::kong::rollout::data_plane::DataPlaneRef;

/// Length of the followed chain of owners: an Instance or a DataPlane, a Deployment, a ReplicaSet, a Pod and spare.
const MAX_OWNERS: usize = 8;

/// The objects that were read.
pub(super) struct ClusterFacts {
    pub(super) object: Arc<Value>,
    /// Its references, in the order of their declaration.
    pub(super) references: Vec<FoundReference>,
    /// Its owner, then the owner's owner, up to the Instance or the DataPlane if there is one.
    pub(super) owners: Vec<Owner>,
    /// What belongs to the DataPlane, if there is one.
    pub(super) of_data_plane: DataPlaneObjects,
    /// The OperatorVersion that the Instance refers to.
    pub(super) package: Option<Arc<Value>>,
    /// Events about the object, and about its Instance or DataPlane; the error where they may not be listed.
    pub(super) events: Result<Vec<Value>, String>,
    /// The API user of Interlock; the error where it could not be read.
    pub(super) controller_user: Result<String, String>,
    /// The object in which Interlock reports its capabilities.
    pub(super) report: ReadOutcome,
}

/// A reference of an object.
pub(super) struct FoundReference {
    /// Name of the link.
    pub(super) link: &'static str,
    /// Kind with its group.
    pub(super) kind: String,
    /// Namespace, empty for cluster-scoped objects.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) found: ReadOutcome,
}

pub(super) struct Owner {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) found: ReadOutcome,
}

impl ClusterFacts {
    /// The Instance: the object itself, or its owner.
    pub(super) fn instance(&self) -> Option<&Value> {
        if is_instance(&self.object) {
            return Some(&self.object);
        }
        let found = self.owners.iter().find_map(|owner| match &owner.found {
            ReadOutcome::There(object) if is_instance(object) => Some(object),
            _ => None,
        });
        found.map(|object| &**object)
    }

    /// The DataPlane: the object itself, or its owner.
    pub(super) fn data_plane(&self) -> Option<&Value> {
        if is_data_plane(&self.object) {
            return Some(&self.object);
        }
        let found = self.owners.iter().find_map(|owner| match &owner.found {
            ReadOutcome::There(object) if is_data_plane(object) => Some(object),
            _ => None,
        });
        found.map(|object| &**object)
    }
}

pub(super) fn is_instance(object: &Value) -> bool {
    Gvk::of(object).is_some_and(|gvk| gvk.group == meta::KUDO_GROUP && gvk.kind == "Instance")
}

/// Reads with the caller's rights.
pub(super) struct FactReader<'a> {
    pub(super) client: &'a Client,
    pub(super) served: &'a ServedKinds,
}

impl FactReader<'_> {
    /// Reads everything about an existing object.
    pub(super) async fn read_all(&self, object: Arc<Value>) -> ClusterFacts {
        let (references, owners) = tokio::join!(self.references(&object), self.owners(&object));
        let mut facts = ClusterFacts {
            object,
            references,
            owners,
            of_data_plane: DataPlaneObjects::default(),
            package: None,
            events: Ok(Vec::new()),
            controller_user: Err(String::new()),
            report: ReadOutcome::Missing,
        };
        let (of_data_plane, package, events, controller_user, report) = tokio::join!(
            self.of_data_plane(&facts),
            self.package(&facts),
            self.events(&facts),
            self.controller_user(),
            self.report()
        );
        (facts.package, facts.events, facts.controller_user) = (package, events, controller_user);
        (facts.of_data_plane, facts.report) = (of_data_plane, report);
        facts
    }

    async fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> ReadOutcome {
        match self.served.of(group, kind) {
            Some(resource) => reader::get(self.client, resource, namespace, name).await,
            None => ReadOutcome::Unknown("the API server does not serve its kind".to_owned()),
        }
    }

    async fn references(&self, object: &Value) -> Vec<FoundReference> {
        let Some(gvk) = Gvk::of(object) else { return Vec::new() };
        let mut found = Vec::new();
        for (link, kind, to) in declared_references(&gvk, object) {
            let Ref::Named { namespace, name, .. } = to else { continue };
            let seen = self.get(kind.group, kind.kind, &namespace, &name).await;
            found.push(FoundReference {
                link: link.name,
                kind: kind.to_string(),
                namespace,
                name,
                found: seen,
            });
        }
        found
    }

    /// Follows owner references; then the label, as cluster-scoped objects cannot have a namespaced owner.
    async fn owners(&self, object: &Arc<Value>) -> Vec<Owner> {
        let mut owners = Vec::new();
        let mut below = object.clone();
        while owners.len() < MAX_OWNERS && !is_instance(&below) {
            let Some(owner) = self.owner(&below).await else { break };
            let next = match &owner.found {
                ReadOutcome::There(object) => Some(object.clone()),
                ReadOutcome::Missing | ReadOutcome::Unknown(_) => None,
            };
            owners.push(owner);
            let Some(next) = next else { break };
            below = next;
        }
        owners
    }

    async fn owner(&self, object: &Value) -> Option<Owner> {
        let namespace = meta_str(object, "namespace").unwrap_or_default();
        let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let owner = owners.iter().find(|owner| owner["controller"] == true).or(owners.first());
        let Some(owner) = owner else { return self.owner_by_label(object).await };
        let word = |field: &str| owner[field].as_str().unwrap_or_default();
        let gvk = Gvk::new(word("apiVersion"), word("kind"));
        let mut found = self.get(&gvk.group, &gvk.kind, namespace, word("name")).await;
        if let ReadOutcome::There(other) = &found
            && meta_str(other, "uid") != owner["uid"].as_str()
        {
            found = ReadOutcome::Missing;
        }
        let namespaced = self.served.of(&gvk.group, &gvk.kind).is_none_or(|resource| resource.namespaced);
        let namespace = if namespaced { namespace } else { "" };
        Some(Owner {
            kind: name_of(&gvk.group, &gvk.kind),
            namespace: namespace.to_owned(),
            name: word("name").to_owned(),
            found,
        })
    }

    async fn owner_by_label(&self, object: &Value) -> Option<Owner> {
        let labels = &object["metadata"]["labels"];
        let (uid, name) = (labels[meta::INSTANCE_UID].as_str()?, labels[meta::INSTANCE].as_str());
        let resource = self.served.of(meta::KUDO_GROUP, "Instance")?;
        let (namespace, found) = match reader::list(self.client, resource, &Selection::default()).await {
            Ok(all) => {
                let found = all.into_iter().find(|instance| meta_str(instance, "uid") == Some(uid));
                let namespace = found.as_ref().and_then(|instance| meta_str(instance, "namespace"));
                let namespace = namespace.unwrap_or_default().to_owned();
                (
                    namespace,
                    found.map_or(ReadOutcome::Missing, |instance| ReadOutcome::There(Arc::new(instance))),
                )
            }
            Err(error) => (String::new(), ReadOutcome::Unknown(reader::api_message(&error))),
        };
        let kind = name_of(meta::KUDO_GROUP, "Instance");
        Some(Owner { kind, namespace, name: name.unwrap_or(uid).to_owned(), found })
    }

    async fn package(&self, facts: &ClusterFacts) -> Option<Arc<Value>> {
        let instance = facts.instance()?;
        let reference = &instance["spec"]["operatorVersion"];
        let namespace = reference["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.or(meta_str(instance, "namespace"))?;
        match self.get(meta::KUDO_GROUP, "OperatorVersion", namespace, reference["name"].as_str()?).await {
            ReadOutcome::There(package) => Some(package),
            ReadOutcome::Missing | ReadOutcome::Unknown(_) => None,
        }
    }

    async fn of_data_plane(&self, facts: &ClusterFacts) -> DataPlaneObjects {
        let Some(data_plane) = facts.data_plane() else { return DataPlaneObjects::default() };
        let of = |field| meta_str(data_plane, field).unwrap_or_default();
        let labels = format!(
            "{}={},{}={}",
            labels::APP,
            of("name"),
            labels::MANAGED_BY,
            labels::MANAGED_BY_DATA_PLANE
        );
        let selection =
            Selection { namespace: Some(of("namespace")), labels: Some(&labels), ..Selection::default() };
        let deployments = async {
            let resource =
                self.served.of("apps", "Deployment").ok_or("the API server does not serve apps")?;
            let found = reader::list(self.client, resource, &selection).await;
            let found = found.map_err(|error| reader::api_message(&error))?;
            let is_owned = |deployment: &Value| {
                let owners = deployment["metadata"]["ownerReferences"].as_array().into_iter().flatten();
                owners.into_iter().any(|owner| owner["uid"] == of("uid"))
            };
            Ok(found.into_iter().filter(is_owned).collect())
        };
        let plane = DataPlaneRef::of(self.client.clone(), of("namespace"), of("name"));
        let (deployments, kept) = tokio::join!(deployments, plane.kept(data_plane));
        DataPlaneObjects { deployments, live_spec: kept.spec }
    }

    async fn events(&self, facts: &ClusterFacts) -> Result<Vec<Value>, String> {
        let Some(resource) = self.served.of("events.k8s.io", "Event") else {
            return Err("the API server does not serve events.k8s.io".to_owned());
        };
        let mut events = self.events_about(resource, &facts.object).await?;
        for owner in [facts.instance(), facts.data_plane()].into_iter().flatten() {
            if !std::ptr::eq(owner, &*facts.object) {
                events.extend(self.events_about(resource, owner).await?);
            }
        }
        Ok(events)
    }

    async fn events_about(&self, resource: &ServedResource, object: &Value) -> Result<Vec<Value>, String> {
        let of = |field| meta_str(object, field).unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let fields =
            format!("regarding.kind={kind},regarding.name={},regarding.uid={}", of("name"), of("uid"));
        // Events about cluster-scoped objects are in the namespace default.
        let namespace = Some(of("namespace")).filter(|namespace| !namespace.is_empty()).unwrap_or("default");
        let selection =
            Selection { namespace: Some(namespace), fields: Some(&fields), ..Selection::default() };
        reader::list(self.client, resource, &selection).await.map_err(|error| reader::api_message(&error))
    }

    async fn report(&self) -> ReadOutcome {
        self.get("interlock.dev", "Interlock", "", interlock::DEFAULT).await
    }

    /// The user that admission skips, from the installed webhook configuration.
    async fn controller_user(&self) -> Result<String, String> {
        let (group, kind) = ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration");
        match self.get(group, kind, "", meta::install::WEBHOOK_CONFIGURATION).await {
            ReadOutcome::There(configuration) => crate::install::webhooks::bookkeeper_of(&configuration)
                .ok_or_else(|| "the installed webhook names no user".to_owned()),
            ReadOutcome::Missing => Err("Interlock is not installed in this cluster".to_owned()),
            ReadOutcome::Unknown(why) => Err(why),
        }
    }
}

/// Required references of an object by its kind's declaration, and those for traffic.
fn declared_references(gvk: &Gvk, object: &Value) -> Vec<(&'static Link, KindName, Ref)> {
    let is = |kind: &&'static DeclaredKind| kind.name.group == gvk.group && kind.name.kind == gvk.kind;
    let Some(declared) = kinds::schemas(crate::kinds::all()).into_iter().find(is) else { return Vec::new() };
    let namespace = meta_str(object, "namespace").unwrap_or_default();
    let whole = Holder { object, part: object, namespace };
    let mut found = Vec::new();
    let mut read = |links: &'static [Link], holder: &Holder<'_>| {
        for link in links.iter().filter(|link| link.family != Family::Owns) {
            let Some(kind) = link.kind.map(|kind| kinds::served_as(crate::kinds::all(), kind)) else {
                continue;
            };
            for to in (link.read)(holder) {
                if !found.iter().any(|(_, known, other)| *known == kind && *other == to) {
                    found.push((link, kind, to));
                }
            }
        }
    };
    read(declared.links, &whole);
    if let Some(sections) = &declared.sections {
        for (_, part) in (sections.read)(object) {
            read(sections.links, &Holder { part, ..whole });
        }
    }
    found
}

/// Kind and group as the graph writes them.
pub(super) fn name_of(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// The plan, phase and step that last wrote an object, from its annotations.
pub(super) fn written_by(object: &Value) -> Option<[&str; 3]> {
    let of = |key| annotation(object, key).filter(|word| !word.is_empty());
    Some([of(meta::PLAN)?, of(meta::PHASE)?, of(meta::STEP)?])
}
