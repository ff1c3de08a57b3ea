//! Reads everything that explains an object: the object, its references, its owners, and the Events about
//! both.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::api::interlock;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::api::resource::Resource;
use interlock_core::kinds;
use interlock_core::kinds::INSTANCE;
use interlock_core::kinds::story::{Asked, Reading, Story, Subject, Told, Which};
use interlock_core::topology::KindName;
use interlock_core::topology::schema::{DeclaredKind, Family, Holder, Link, Ref};
use kube::Client;
use serde_json::Value;

use crate::cli::common::discovery::{ServedKinds, ServedResource};
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};

/// Length of the followed chain of owners: an Instance, a DataPlane, a Deployment, a ReplicaSet, a Pod and spare.
const MAX_OWNERS: usize = 8;

/// The objects that were read.
pub(super) struct ClusterFacts {
    pub(super) object: Arc<Value>,
    /// Its references, in the order of their declaration.
    pub(super) references: Vec<FoundReference>,
    /// Its owner, then the owner's owner, up to the Instance if there is one.
    pub(super) owners: Vec<Owner>,
    /// What the stories have asked for, by their capability.
    pub(super) readings: BTreeMap<&'static str, Vec<Reading>>,
    /// Events about the object, and about those of whom there are stories; the error where they may not be listed.
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
    /// The stories that there are to tell, each with the object or the owner that it is about.
    pub(super) fn stories(&self) -> Vec<(&'static Story, &Value)> {
        let owners = self.owners.iter().filter_map(|owner| match &owner.found {
            ReadOutcome::There(object) => Some(&**object),
            _ => None,
        });
        let objects: Vec<&Value> = [&*self.object].into_iter().chain(owners).collect();
        let kinds = crate::kinds::all().iter().filter_map(|kind| Some((kind.resource, kind.story?)));
        let about = |(kind, story): (Resource, &'static Story)| {
            let is = |object: &&&Value| is_of(object, kind.group, kind.kind);
            Some((story, *objects.iter().find(is)?))
        };
        kinds.filter_map(about).collect()
    }

    /// The stories of the object, each with the object that it is about.
    pub(super) fn told(&self) -> Vec<(Subject<'_>, Told)> {
        let tell = |(story, root): (&'static Story, _)| {
            let readings = self.readings.get(story.capability).map_or(&[][..], Vec::as_slice);
            let subject = Subject { root, object: &self.object, readings };
            (subject, (story.tell)(&subject))
        };
        self.stories().into_iter().map(tell).collect()
    }

    /// Whether an Instance has made the object, or is it.
    pub(super) fn is_of_an_instance(&self) -> bool {
        self.stories().iter().any(|(_, root)| is_instance(root))
    }
}

fn is_of(object: &Value, group: &str, kind: &str) -> bool {
    Gvk::of(object).is_some_and(|gvk| gvk.group == group && gvk.kind == kind)
}

fn is_instance(object: &Value) -> bool {
    is_of(object, INSTANCE.group, INSTANCE.kind)
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
            readings: BTreeMap::new(),
            events: Ok(Vec::new()),
            controller_user: Err(String::new()),
            report: ReadOutcome::Missing,
        };
        let (readings, events, controller_user, report) =
            tokio::join!(self.readings(&facts), self.events(&facts), self.controller_user(), self.report());
        (facts.readings, facts.events) = (readings, events);
        (facts.controller_user, facts.report) = (controller_user, report);
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

    /// What the stories ask for.
    async fn readings(&self, facts: &ClusterFacts) -> BTreeMap<&'static str, Vec<Reading>> {
        let stories = facts.stories().into_iter().map(|(story, root)| async move {
            let mut read = Vec::new();
            while let Some(asked) = (story.next)(root, &read) {
                read.push(self.reading(&asked).await);
            }
            (story.capability, read)
        });
        futures::future::join_all(stories).await.into_iter().collect()
    }

    async fn reading(&self, Asked { group, kind, namespace, which }: &Asked) -> Reading {
        match which {
            Which::Name(name) => match self.get(group, kind, namespace, name).await {
                ReadOutcome::There(object) => Ok(vec![Value::clone(&object)]),
                ReadOutcome::Missing => Ok(Vec::new()),
                ReadOutcome::Unknown(why) => Err(why),
            },
            Which::Labels(labels) => {
                let resource = self.served.of(group, kind);
                let resource = resource.ok_or_else(|| format!("the API server does not serve {group}"))?;
                let selection =
                    Selection { namespace: Some(namespace), labels: Some(labels), ..Selection::default() };
                let found = reader::list(self.client, resource, &selection).await;
                found.map_err(|error| reader::api_message(&error))
            }
        }
    }

    async fn events(&self, facts: &ClusterFacts) -> Result<Vec<Value>, String> {
        let Some(resource) = self.served.of("events.k8s.io", "Event") else {
            return Err("the API server does not serve events.k8s.io".to_owned());
        };
        let mut events = self.events_about(resource, &facts.object).await?;
        for (_, owner) in facts.stories() {
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
