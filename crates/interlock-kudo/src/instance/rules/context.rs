//! The rule context of a request about an Instance, and the rejections that end a decision early.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use interlock_core::admission::denial::Denial;
use interlock_core::admission::request::{ObjectChange, Operation, Request};
use interlock_core::admission::review::ReviewObject;
use interlock_core::admission::violations::Violations;
use interlock_core::admission::{CacheWait, RuleContext, WebhookEndpoint};
use interlock_core::api::interlock::RuleAction;
use interlock_core::api::json;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::violation::SpecViolation;
use serde_json::Value;

use super::denials;
use super::type_errors::field_type_errors;
use crate::api::{InstanceSpec, InstanceStatus};
use crate::instance::change::uid::ScheduledOn;
use crate::instance::rules::ids::VERSION_MISSING;
use crate::instance::spec::SpecView;
use crate::operator_version::packages;
use crate::package::Package;

/// The rule context of a request about an Instance.
pub(super) struct Evaluation<'a> {
    pub(super) request: &'a Request<'a>,
    /// The inputs beside the request.
    pub(super) context: &'a RuleContext<'a>,
    /// The violations found so far.
    pub(super) violations: Violations<'a>,
    /// Whether the request newly refers to an OperatorVersion of another namespace: a denial would
    /// disclose its contents to users who may not read it.
    pub(super) refers_to_other_namespace: Cell<bool>,
    /// That the OperatorVersion is waited for, as a warning, empty for none: until it is there, nothing is carried out, so that nothing is
    /// scheduled and completed now.
    pub(super) awaited: OnceCell<String>,
}

/// A rejection, which ends the decision. A violation is none: rules continue after it.
pub(super) enum Rejection {
    /// The object cannot be read, so it can be neither validated nor completed. It is denied, whatever
    /// the settings and the cache are.
    Unreadable(Box<Denial>),
    /// The decision needs an OperatorVersion that the lister lacks: it starts again with it.
    Wait(NamespacedName),
}

impl Rejection {
    /// The stored status violates its schema.
    pub(super) fn unreadable_status(object: &ReviewObject<'_>) -> Self {
        let misfit = object.status.and_then(|raw| json::misfit::<InstanceStatus>(raw.get()));
        Self::Unreadable(Box::new(denials::unreadable("status", misfit)))
    }
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(request: &'a Request<'a>, context: &'a RuleContext<'a>) -> Self {
        let violations = Violations::new(context.lister.actions(request.namespace), context);
        let violations = violations.of_write(request.operation.uid(), request.user, context);
        let awaited = OnceCell::new();
        Self { request, context, violations, refers_to_other_namespace: Cell::default(), awaited }
    }

    /// Records the referenced OperatorVersion, before any rule mentions it.
    pub(super) fn refers(&self, new: &SpecView<'_>, old: Option<&SpecView<'_>>) {
        let version = &new.applied.operator_version;
        let same = old.is_some_and(|old| old.applied.operator_version == *version);
        let elsewhere = !version.name.is_empty() && version.namespace != self.request.namespace;
        self.refers_to_other_namespace.set(elsewhere && !same);
    }

    /// Collects violations of rules about a spec.
    pub(super) fn violated(&self, found: impl IntoIterator<Item = SpecViolation>, instance: &str) {
        for objection in found {
            self.violations.push(denials::from_objection(objection, instance));
        }
    }

    /// `namespace/name`, with the prefix if the name is yet to be generated.
    pub(super) fn instance(&self, object: &ReviewObject<'_>) -> String {
        name_of(self.request, object)
    }

    /// The object that an execution is scheduled on: the prefix if the name was generated, as the
    /// mutating call does not have the name yet.
    pub(super) fn subject<'s>(
        &'s self,
        change: Option<ObjectChange<'s>>,
        object: &'s ReviewObject<'_>,
    ) -> ScheduledOn<'s> {
        let metadata = change.map_or(&object.metadata, |c| &c.old.metadata);
        let generated = metadata.generate_name.as_deref().filter(|prefix| !prefix.is_empty());
        ScheduledOn {
            namespace: self.request.namespace,
            name: generated.unwrap_or(self.request.name),
            version: change.and_then(|c| c.old.metadata.resource_version.as_deref()).unwrap_or("create"),
        }
    }

    pub(super) fn spec(&self, object: &ReviewObject<'a>) -> Result<SpecView<'a>, Rejection> {
        SpecView::read(object, self.request.namespace)
            .map_err(|_| Rejection::Unreadable(Box::new(self.unreadable(object))))
    }

    /// The denial of an unreadable spec: by its fields, if they are the reason.
    fn unreadable(&self, object: &ReviewObject<'_>) -> Denial {
        let spec = object.spec.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let fields = spec.map(|spec| field_type_errors(&spec, self.own_package(&spec).as_deref()));
        match fields.filter(|fields| !fields.is_empty()) {
            Some(fields) => denials::mistyped(fields),
            _ => {
                let misfit = object.spec.and_then(|raw| json::misfit::<InstanceSpec>(raw.get()));
                denials::unreadable("spec", misfit)
            }
        }
    }

    /// The OperatorVersion of an unreadable spec, if it is in the same namespace: the user may not be
    /// allowed to read another one's.
    fn own_package(&self, spec: &Value) -> Option<Arc<Package>> {
        let version = &spec["operatorVersion"];
        let namespace = version["namespace"].as_str().unwrap_or_default();
        let own = namespace.is_empty() || namespace == self.request.namespace;
        let name = version["name"].as_str().filter(|_| own)?;
        packages(self.context).operator_version(&NamespacedName::new(self.request.namespace, name))
    }

    /// The OperatorVersions that a user who writes this Instance may know: those of its own namespace.
    fn names_beside(&self, key: &NamespacedName) -> Vec<String> {
        match key.namespace == self.request.namespace {
            true => packages(self.context).names_in(&key.namespace),
            false => Vec::new(),
        }
    }

    /// The OperatorVersion of a spec; waits a moment for one that the lister lacks, unless the request is
    /// already denied without it, or its user may not learn by the wait that it is not there. A missing one is a
    /// violation, or awaited.
    pub(super) fn package(
        &self,
        spec: &SpecView<'_>,
        instance: &str,
    ) -> Result<Option<Arc<Package>>, Rejection> {
        let key = spec.version();
        if key.name.is_empty() {
            self.violations.push(denials::version_required(instance));
            return Ok(None);
        }
        if let Some(package) = packages(self.context).operator_version(&key) {
            return Ok(Some(package));
        }
        match (packages(self.context).left_out(&key), self.context.wait) {
            (Some(why), _) => self.violations.push(denials::version_left_out(instance, &key, &why)),
            (None, CacheWait::Wait) if self.violations.refuse() => {}
            (None, CacheWait::Wait) if !self.asks_blindly() => return Err(Rejection::Wait(key)),
            (None, _) => self.missing(&key, instance),
        }
        Ok(None)
    }

    /// Whether the request newly refers to another namespace, before the policy has asked whether its user may.
    pub(super) fn asks_blindly(&self) -> bool {
        self.context.endpoint == WebhookEndpoint::Mutate && self.refers_to_other_namespace.get()
    }

    fn missing(&self, key: &NamespacedName, instance: &str) {
        let names = self.names_beside(key);
        let action = self.context.lister.actions(self.request.namespace).of(VERSION_MISSING);
        // That its user may read it is proven by the last-applied spec, which an update keeps until it is there.
        let unproven =
            self.refers_to_other_namespace.get() && matches!(self.request.operation, Operation::Update(_));
        if action == RuleAction::Deny || unproven || self.context.partial.is_some() {
            let missing = denials::version_missing(instance, key, &names);
            self.violations.push_as(RuleAction::Deny, missing);
            return;
        }
        let warning = if action == RuleAction::Warn { denials::awaited(key, &names) } else { String::new() };
        // A request refers to one OperatorVersion: a second look finds the same.
        let _ = self.awaited.set(warning);
    }
}

pub(super) fn name_of(request: &Request<'_>, object: &ReviewObject<'_>) -> String {
    let generated = object.metadata.generate_name.as_deref().unwrap_or_default();
    let name = if request.name.is_empty() { generated } else { request.name };
    [request.namespace, "/", name].concat()
}
