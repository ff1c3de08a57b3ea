//! Decides about objects one after the other, in the order of the API server: decode, the mutating webhook, the
//! schema, the validating webhook.

use anyhow::{Context as _, bail};
use crd_schema::Definition;
use interlock_core::admission::{Config, WebhookEndpoint};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, meta_str};
use interlock_kudo::names::OPERATOR_VERSION;
use interlock_kudo::package::Package;
use serde_json::Value;

use super::decision::ObjectDecision;
use super::manifests::Manifest;
use super::object::{named, namespace_of, same, set_namespace, with_kept_label};
use super::settings;
use super::state::{ClusterState, KnownDefinition};
use super::webhook::{CheckedWrite, Write, ask};
use crate::cli::kudo::rendering;

/// Decides about one object after the other.
pub(super) struct Checker {
    pub(super) state: ClusterState,
    pub(super) config: Config,
    pub(super) user: String,
    /// What is done with each; by default an update where there is a current one, else a creation.
    pub(super) operation: Option<CheckedWrite>,
    /// The current one of the only object.
    pub(super) old: Option<Value>,
    /// Whether rules differ by the labels of namespaces.
    pub(super) has_settings: bool,
}

impl Checker {
    /// Decides about an object, and leaves the state as the object would.
    pub(super) fn check(&mut self, manifest: &Manifest) -> anyhow::Result<ObjectDecision> {
        let given = self.given(manifest)?;
        let gvk = Gvk::of(&given).with_context(|| {
            format!("{}: the object has no apiVersion or no kind: add both", manifest.place)
        })?;
        let decision = ObjectDecision::allowed(manifest, &given);
        if Definition::is(&given) {
            return self.definition(manifest, given, decision);
        }
        let known = self.state.definition(&gvk).cloned();
        match &known {
            None if !self.state.is_guarded(&gvk) => {
                let why = format!(
                    "Interlock has no rules about {} of {}, and no CustomResourceDefinition of it is known: add it \
                     with --objects",
                    gvk.kind,
                    gvk.api_version()
                );
                self.put(given)?;
                Ok(decision.not_checked(why))
            }
            Some(known) if known.definition.version_of(&given).is_none() => {
                Ok(not_served(known, &gvk, manifest, decision))
            }
            _ => {
                let change = self.change(manifest, given)?;
                self.decide(manifest, &gvk, change, known.as_ref())
            }
        }
    }

    /// The object, in the namespace of the current one that was given.
    fn given(&self, manifest: &Manifest) -> anyhow::Result<Value> {
        let mut given = manifest.object.clone();
        let Some(old) = &self.old else { return Ok(self.state.completed(given)) };
        let namespace = namespace_of(old).or(namespace_of(&given)).unwrap_or("default").to_owned();
        if !same(old, &given, &namespace) {
            bail!(
                "--old is {}, -f is {}: give the same object before and after",
                named(old, &namespace),
                named(&given, &namespace)
            );
        }
        if namespace_of(&given).is_none() && namespace_of(old).is_some() {
            set_namespace(&mut given, &namespace);
        }
        Ok(self.state.completed(given))
    }

    /// Takes a definition for the objects after it.
    fn definition(
        &mut self,
        manifest: &Manifest,
        given: Value,
        mut decision: ObjectDecision,
    ) -> anyhow::Result<ObjectDecision> {
        if let Err(error) = Definition::read(&given) {
            let error = crd_schema::FieldError::of_object(error.to_string());
            decision.refuse_by_schema(&[error], 0, manifest);
            return Ok(decision);
        }
        self.put(given)?;
        Ok(decision.not_checked("its schema is asked about the objects after it".to_owned()))
    }

    fn put(&mut self, object: Value) -> anyhow::Result<()> {
        match self.operation {
            Some(CheckedWrite::Delete) => self.state.remove(&object),
            _ => self.state.put(object),
        }
    }

    /// What is written, and over what.
    fn change(&self, manifest: &Manifest, given: Value) -> anyhow::Result<Write> {
        let old = match (&self.old, self.operation) {
            (Some(old), _) => {
                let mut old = old.clone();
                if let Some(namespace) = namespace_of(&given).filter(|_| namespace_of(&old).is_none()) {
                    set_namespace(&mut old, namespace);
                }
                Some(self.state.read(&self.state.completed(old)))
            }
            (None, Some(CheckedWrite::Create)) => None,
            (None, _) => self.state.get(&given),
        };
        let default = if old.is_some() { CheckedWrite::Update } else { CheckedWrite::Create };
        let operation = self.operation.unwrap_or(default);
        let (object, old) = match operation {
            CheckedWrite::Create => (given, Value::Null),
            CheckedWrite::Delete => (Value::Null, old.unwrap_or(given)),
            CheckedWrite::Update => {
                let old = old.with_context(|| {
                    format!(
                        "{}: an update needs the current object: give --old, or a --objects that holds it",
                        manifest.place
                    )
                })?;
                (with_kept_label(given, &old), old)
            }
        };
        Ok(Write { operation, object, old })
    }

    fn decide(
        &mut self,
        manifest: &Manifest,
        gvk: &Gvk,
        mut change: Write,
        known: Option<&KnownDefinition>,
    ) -> anyhow::Result<ObjectDecision> {
        let present = if change.object.is_null() { &change.old } else { &change.object };
        let mut decision = ObjectDecision::allowed(manifest, present);
        if known.is_none() && is_custom(gvk) && change.operation != CheckedWrite::Delete {
            decision.note = Some(format!(
                "only the rules are asked: no CustomResourceDefinition of {} is known, which may refuse more; add it with \
                 --objects, where the cluster has one",
                gvk.kind
            ));
        }
        if self.has_settings
            && let Some(namespace) = decision.namespace.clone()
        {
            self.state.ensure_namespace(&namespace)?;
        }
        let schema = known.filter(|_| change.operation != CheckedWrite::Delete);
        let version = schema.and_then(|known| Some((known, known.definition.version_of(&change.object)?)));
        if let Some((known, version)) = version {
            let decoded = version.decode(&mut change.object);
            if !decoded.is_valid() {
                decision.refuse_by_schema(&decoded.errors, decoded.omitted, manifest);
                decision.note = note(known);
                return Ok(decision);
            }
        }
        let is_guarded = self.state.is_guarded(gvk);
        if self.state.is_mutated(gvk)
            && !self.endpoint(WebhookEndpoint::Mutate, &mut change, manifest, &mut decision)?
        {
            return Ok(decision);
        }
        if let Some((known, version)) = version {
            let old = Some(&change.old).filter(|old| !old.is_null());
            change.object = version.written(change.object, old);
            let found = version.validate(&known.definition, &change.object, old);
            decision.unevaluated = found.unevaluated.clone();
            if !found.is_valid() {
                decision.refuse_by_schema(&found.errors, found.omitted, manifest);
                decision.note = note(known);
                return Ok(decision);
            }
        }
        if is_guarded && !self.endpoint(WebhookEndpoint::Validate, &mut change, manifest, &mut decision)? {
            return Ok(decision);
        }
        decision.object = change.object.clone();
        if *gvk == Gvk::new(meta::KUDO_API_VERSION, OPERATOR_VERSION.kind)
            && change.operation != CheckedWrite::Delete
        {
            decision.warnings.extend(rendered(&change.object));
        }
        if *gvk == Gvk::new(meta::INTERLOCK_API_VERSION, "Interlock")
            && change.operation != CheckedWrite::Delete
        {
            decision.warnings.extend(settings::ignored(&change.object, self.state.kinds()));
        }
        match change.operation {
            CheckedWrite::Delete => self.state.remove(&change.old)?,
            _ if meta_str(&change.object, "name").is_some() => self.state.put(change.object)?,
            _ => {}
        }
        Ok(decision)
    }

    /// Asks an endpoint; whether it allows the change.
    fn endpoint(
        &self,
        endpoint: WebhookEndpoint,
        change: &mut Write,
        manifest: &Manifest,
        decision: &mut ObjectDecision,
    ) -> anyhow::Result<bool> {
        let answer = ask(endpoint, change, &self.user, &self.state, &self.config)?;
        decision.add_answer(&answer, manifest);
        if endpoint == WebhookEndpoint::Mutate {
            decision.patch = answer.patch.clone();
            change.object = answer.object.clone();
        }
        decision.object = change.object.clone();
        Ok(answer.is_allowed())
    }
}

/// What the templates of an OperatorVersion say when they are rendered, which admission does not do.
fn rendered(operator_version: &Value) -> Vec<String> {
    let Ok(spec) = serde_json::from_value(operator_version["spec"].clone()) else { return Vec::new() };
    let name = NamespacedName::new("", meta_str(operator_version, "name").unwrap_or_default());
    let found = rendering::findings(&Package::new(name, spec));
    found.errors.into_iter().chain(found.warnings).collect()
}

/// Whether a kind has a definition; groups of Kubernetes itself are `apps`, or end with `.k8s.io`.
fn is_custom(gvk: &Gvk) -> bool {
    gvk.group.contains('.') && (!gvk.group.ends_with(".k8s.io") || gvk.group.starts_with("gateway."))
}

/// The API server has no such version.
fn not_served(
    known: &KnownDefinition,
    gvk: &Gvk,
    manifest: &Manifest,
    mut decision: ObjectDecision,
) -> ObjectDecision {
    let definition = &known.definition;
    let served: Vec<String> =
        definition.versions.iter().map(|version| format!("{}/{}", definition.group, version.name)).collect();
    let message = format!("{} is not served: write one of {}", gvk.api_version(), served.join(", "));
    decision.refuse_by_schema(&[crd_schema::FieldError::of_key("apiVersion", message)], 0, manifest);
    decision.note = note(known);
    decision
}

/// Whose definition refuses.
fn note(known: &KnownDefinition) -> Option<String> {
    let name = &known.definition.name;
    (!known.is_given).then(|| {
        format!(
            "the definition {name} is Interlock's own: where the cluster has another, add it with --objects"
        )
    })
}
