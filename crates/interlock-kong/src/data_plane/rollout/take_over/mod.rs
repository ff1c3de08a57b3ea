//! DataPlanes that Kong's operator made: taken over with the names and selectors that they have, and handed back.
//!
//! People ask for it by the annotation [`meta::TAKE_OVER`]. Nothing is taken over while Kong's operator may still write
//! it: its Lease must have run out, and none of its writes may be recent. What is kept is recorded first
//! ([`KeptChildren`]); everything else is derived from it and convergent.

mod discovery;
mod field_managers;
mod writer;

use std::sync::Arc;

use interlock_core::api::condition::{Condition, find};
use interlock_core::api::meta;
use interlock_core::api::meta::condition;
use interlock_core::api::object::{ObjectKey, annotation};
use interlock_core::effect::Effect;
use interlock_core::reconcile::{Needs, View};
use serde_json::{Value, json};

use super::children::brings_certificate;
use super::kept;
use super::kept::KeptChildren;
use super::side::Colour;
use super::view::DataPlaneView;

pub use discovery::not_supported;
pub use writer::{LeftAlone, adopt, hand_back, is_at_rest, is_held, lease_key, may_write};

/// Whose a DataPlane is, as far as it was Kong's operator's.
#[derive(Debug)]
pub enum TakeOver {
    /// Nothing was taken over, and nothing is to be.
    NotAsked,
    Done(Box<TakenOver>),
    /// It is another operator's.
    LeftAlone(LeftAlone),
    /// This has to be written first.
    Write(Vec<Effect>),
}

/// A DataPlane that was taken over.
#[derive(Clone, Debug)]
pub struct TakenOver {
    pub kept: KeptChildren,
    /// The ControllerRevision that records it.
    pub record: Arc<Value>,
    /// Namespace of Kong's operator; `None` where it is gone, or where the annotation was taken off. `Err` with what is
    /// wrong with the annotation, which matters where Kong's operator may write again.
    pub operator: Result<Option<String>, LeftAlone>,
    /// Whether it is to be handed back.
    pub hands_back: bool,
}

/// Whose a DataPlane is.
pub fn decide(of: &DataPlaneView<'_>, view: &View<'_>) -> Result<TakeOver, Needs> {
    let asked = annotation(of.object, meta::TAKE_OVER);
    let managed = managed(of);
    let reason = managed.as_ref().map(|managed| managed.reason.as_str());
    let was_ours = matches!(
        reason,
        Some(condition::TAKEN_OVER | condition::ANOTHER_MANAGER_WRITES | condition::TAKE_OVER_REFUSED)
    );
    let is_made_by_us = || {
        let selector = of.reported_selector();
        selector.is_none_or(|selector| Colour::of_selector(of.uid, selector).is_some())
    };
    match (asked, reason) {
        (None, Some(condition::HANDED_BACK)) => return Ok(TakeOver::LeftAlone(handed_back())),
        (None, _) if !was_ours => return Ok(TakeOver::NotAsked),
        (Some(_), None) if is_made_by_us() => return Ok(TakeOver::NotAsked),
        _ => {}
    }
    let key = kept::key(of);
    let operator = asked.map_or(Ok(None), operator);
    // What is read before there is one is read with it.
    let others = match (asked, reason, &operator) {
        (Some(_), reason, Ok(operator)) if reason != Some(condition::TAKEN_OVER) => {
            discovery::read_by_name(of, operator.as_deref())
        }
        _ => Vec::new(),
    };
    view.have([key.clone()].into_iter().chain(others))?;
    Ok(match view.get(&key)? {
        Some(record) => match KeptChildren::read(of, record) {
            Some(kept) => {
                let hands_back = asked.is_none();
                TakeOver::Done(Box::new(TakenOver { kept, record: record.clone(), operator, hands_back }))
            }
            None => TakeOver::LeftAlone(LeftAlone::refused(format!(
                "ControllerRevision {} is no record of this DataPlane: delete it",
                key.name
            ))),
        },
        None if asked.is_none() && reason == Some(condition::TAKEN_OVER) => {
            TakeOver::LeftAlone(handed_back())
        }
        None if asked.is_none() => TakeOver::NotAsked,
        None => match operator {
            Err(refused) => TakeOver::LeftAlone(refused),
            Ok(operator) => match discovery::discover(of, operator.as_deref(), view)? {
                Ok(writes) => TakeOver::Write(writes),
                Err(refused) => TakeOver::LeftAlone(refused),
            },
        },
    })
}

/// What is said of a DataPlane that was handed back.
fn handed_back() -> LeftAlone {
    let message = format!(
        "it is Kong's operator's again: start that, or set annotation {} to have Interlock take it over",
        meta::TAKE_OVER
    );
    LeftAlone::new(condition::HANDED_BACK, message)
}

/// The condition `Managed`.
pub fn managed(of: &DataPlaneView<'_>) -> Option<Condition> {
    find(&of.conditions(), condition::MANAGED).cloned()
}

/// The namespace that a value of the annotation names; `None` where Kong's operator is gone.
fn operator(value: &str) -> Result<Option<String>, LeftAlone> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = (1..=63).contains(&value.len())
        && value.bytes().all(|byte| inner(byte) || byte == b'-')
        && value.bytes().next().is_some_and(inner)
        && value.bytes().next_back().is_some_and(inner);
    match value {
        meta::OPERATOR_UNINSTALLED => Ok(None),
        value if is_label => Ok(Some(value.to_owned())),
        value => {
            let shown: String = value.chars().take(63).collect();
            Err(LeftAlone::refused(format!(
                "annotation {} is \"{shown}\": write the namespace of Kong's operator, such as kong-system, or \"{}\" where it \
                 is gone",
                meta::TAKE_OVER,
                meta::OPERATOR_UNINSTALLED
            )))
        }
    }
}

impl TakenOver {
    /// The Secrets of Kong's operator that may have its finalizer, which would keep them for ever once it is gone.
    pub fn secrets(&self, of: &DataPlaneView<'_>) -> Vec<ObjectKey> {
        if brings_certificate(of.spec()) {
            return Vec::new();
        }
        self.kept.certificates.iter().map(|name| of.key_of("v1", "Secret", name)).collect()
    }

    /// What `Managed` says. `keeps_finalizers` = the Secrets could not be looked at.
    pub fn message(&self, of: &DataPlaneView<'_>, keeps_finalizers: bool) -> String {
        let mut text =
            format!("taken over from Kong's operator; these keep their names: {}", self.kept.names());
        let secrets: Vec<String> = self.secrets(of).into_iter().map(|secret| secret.name).collect();
        if keeps_finalizers && !secrets.is_empty() {
            text.push_str(&format!(
                "; Interlock may not write Secrets: take the finalizer off, or they stay when the DataPlane is deleted (`kubectl \
                 patch secret {} -n {} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'`)",
                secrets.join(" "),
                of.namespace
            ));
        }
        if self.hands_back {
            text.push_str(
                "; it is handed back when its rollout is over: promote what is staged, or set the spec back",
            );
        }
        text
    }
}

/// The patch that takes the finalizer of Kong's operator off an object; `None` where it has none.
pub fn without_finalizer(found: &Value) -> Option<Effect> {
    let finalizers = writer::other_finalizers(found)?;
    Effect::patch_of(ObjectKey::of(found)?, found, json!({"metadata": {"finalizers": finalizers}}))
}
