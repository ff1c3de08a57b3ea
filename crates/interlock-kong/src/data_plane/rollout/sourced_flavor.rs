//! The router flavor of a side where it comes from a ConfigMap or Secret.
//!
//! Pods would take such a value up one by one, whenever they start. So the pods of each side get it as a literal: those
//! of the live side the flavor that the last-applied annotation records, those of the preview the present one, which is
//! promoted as any other change is.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey};
use interlock_core::reconcile::{Lookup, Needs, View};
use serde_json::{Value, json};

use super::live_record;
use super::live_record::LiveSide;
use super::view::DataPlaneView;
use crate::api::{API_VERSION, PROXY, condition};
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::environment::Unknown;
use crate::data_plane::flavor::gateway::sources_of;
use crate::data_plane::flavor::reading::{Effective, VARIABLE};
use crate::data_plane::flavor::sources::{FlavorSource, GivenSources, KeyLookup, Nothing, Sources};

/// What gives the specs of a DataPlane their flavors, as it was read.
#[derive(Debug)]
pub struct SourcedFlavors<'r> {
    view: View<'r>,
    given: GivenSources,
    /// Whether the flavor of any of the specs comes from a source: mostly none does.
    any: bool,
}

/// A flavor that a changed source gives to the preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcedFlavorChange {
    /// That of the live pods.
    pub live: Flavor,
    /// That of the preview.
    pub next: Flavor,
    /// What it comes from, for people.
    pub source: String,
}

impl fmt::Display for SourcedFlavorChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "router flavor {} -> {}, of {}", self.live, self.next, self.source)
    }
}

impl<'r> SourcedFlavors<'r> {
    pub fn read(of: &DataPlaneView<'_>, specs: [&Value; 2], view: View<'r>) -> Result<Self, Needs> {
        let any = specs.into_iter().any(|spec| is_sourced(of, spec));
        if !any {
            return Ok(Self { view, given: GivenSources::default(), any });
        }
        let wanted = specs.into_iter().flat_map(|spec| sources_of(&object(of, spec)));
        let keys: BTreeSet<ObjectKey> = wanted.map(|source| key_of(&source)).collect();
        view.have_if_allowed(keys.iter().cloned())?;
        let found = keys.iter().filter_map(|key| match view.known(key)? {
            Lookup::Found(object) => Some(&**object),
            Lookup::Absent | Lookup::Forbidden => None,
        });
        let given = GivenSources::of(found, of.namespace);
        Ok(Self { view, given, any })
    }

    /// The flavor of a spec now, where it comes from a source and is known.
    pub fn now(&self, of: &DataPlaneView<'_>, spec: &Value) -> Option<Flavor> {
        if self.is_sourced(of, spec) { of.flavor(spec, self)?.effective.known() } else { None }
    }

    fn is_sourced(&self, of: &DataPlaneView<'_>, spec: &Value) -> bool {
        self.any && is_sourced(of, spec)
    }

    /// The live side with its flavor, where that comes from a source. With blue/green the recorded one stays until a
    /// promotion; in place, and for pods that were never ready, the present one takes effect at once.
    pub fn of_live(&self, of: &DataPlaneView<'_>, side: LiveSide) -> LiveSide {
        if !self.is_sourced(of, &side.spec) {
            return side;
        }
        let keeps = of.is_blue_green() && live_record::has_served(of);
        let recorded = live_record::recorded_flavor(of, &side.spec).filter(|_| keeps || side.is_stamped);
        let now = self.now(of, &side.spec);
        let sourced = if keeps { recorded.or(now) } else { now.or(recorded) };
        let is_stamped = side.is_stamped && (sourced.is_none() || sourced == live_record::stamped_flavor(of));
        LiveSide { is_stamped, sourced, ..side }
    }

    /// What a changed source stages beside the same spec.
    pub fn staged(
        &self,
        of: &DataPlaneView<'_>,
        side: &LiveSide,
        spec: &Value,
    ) -> Option<SourcedFlavorChange> {
        let live = side.sourced.filter(|_| of.is_blue_green())?;
        let reading = of.flavor(spec, self).filter(|_| self.is_sourced(of, spec))?;
        let next = reading.effective.known().filter(|next| *next != live)?;
        let source =
            reading.keys.first().map_or_else(|| "its sources".to_owned(), |key| key.source.to_string());
        Some(SourcedFlavorChange { live, next, source })
    }

    /// A spec with this flavor as a literal, where it comes from a source. Where nothing sets one, the image decides.
    pub fn pinned<'s>(
        &self,
        of: &DataPlaneView<'_>,
        spec: &'s Value,
        flavor: Option<Flavor>,
    ) -> Cow<'s, Value> {
        let (Some(flavor), true) = (flavor, self.is_sourced(of, spec)) else { return Cow::Borrowed(spec) };
        let now = of.flavor(spec, self);
        match now.is_some_and(|now| !now.said && now.effective == Effective::Known(flavor)) {
            true => Cow::Borrowed(spec),
            false => Cow::Owned(with_literal(spec, flavor)),
        }
    }
}

impl Sources for SourcedFlavors<'_> {
    fn ask(&self, source: &FlavorSource, key: &str) -> KeyLookup {
        match self.view.known(&key_of(source)) {
            None | Some(Lookup::Forbidden) => KeyLookup::Unseen,
            Some(Lookup::Absent) => KeyLookup::NoObject,
            Some(Lookup::Found(_)) => self.given.ask(source, key),
        }
    }
}

/// What a changed source stages, as the status of a DataPlane says; for people.
pub fn staged(status: &Value) -> Option<&str> {
    let found = condition(status, meta::condition::ROUTER_FLAVOR_STAGED);
    found.filter(|found| found["status"] == "True")?["message"].as_str()
}

/// Whether a spec alone does not tell its flavor, as it comes, or may come, from a ConfigMap or Secret.
fn is_sourced(of: &DataPlaneView<'_>, spec: &Value) -> bool {
    let alone = of.flavor(spec, &Nothing).map(|reading| reading.effective);
    matches!(alone, Some(Effective::Unknown(Unknown::Unseen(_))))
}

fn object(of: &DataPlaneView<'_>, spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "DataPlane",
        "metadata": {"namespace": of.namespace, "name": of.name}, "spec": spec,
    })
}

fn key_of(source: &FlavorSource) -> ObjectKey {
    ObjectKey {
        gvk: Gvk::new("v1", source.kind().0),
        namespace: Some(source.name.namespace.clone()),
        name: source.name.name.clone(),
    }
}

/// The variable takes the place of the last entry of its name, as others may refer to it.
fn with_literal(spec: &Value, flavor: Flavor) -> Value {
    const CONTAINERS: &str = "/deployment/podTemplateSpec/spec/containers";
    let mut spec = spec.clone();
    let containers = spec.pointer_mut(CONTAINERS).and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter(|container| container["name"] == PROXY) {
        let mut env = container["env"].as_array().cloned().unwrap_or_default();
        let literal = json!({"name": VARIABLE, "value": flavor.as_str()});
        match env.iter().rposition(|entry| entry["name"] == VARIABLE) {
            Some(place) => env[place] = literal,
            None => env.push(literal),
        }
        container["env"] = Value::Array(env);
    }
    spec
}
