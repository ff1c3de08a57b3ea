//! Deferred checks: changes of flavor that admission allowed because their source could not be read,
//! validated once it can be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::change::{Findings, FlavorChange};
use super::compatibility::ProducerConfiguration;
use super::environment::{SourceKey, Unknown};
use super::gateway::Gateway;
use super::gateway_ref::{FlavorSpec, GatewayRef};
use super::group::ProducerGroup;
use super::plan;
use super::reading::Effective;
use super::routes::Inventory;
use super::sources::FlavorSource;
use super::validate::judge;

/// How often the sources of a change are asked for by request before it is given up: they may not exist yet.
const MOST_READS: u8 = 6;
/// Pause between two of these.
const READ_AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// The most sources that are asked for at a time, and of one namespace: others go on after [`SOON`].
const MOST_AT_A_TIME: usize = 64;
const MOST_OF_NAMESPACE: usize = 16;
const SOON: SignedDuration = SignedDuration::from_secs(1);

/// Gateways with a deferred check.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(BTreeMap<GatewayRef, Pending>);

/// A change whose flavor, before or after it, could not be read.
#[derive(Clone, Debug)]
struct Pending {
    /// What ran before it.
    object: Arc<Value>,
    /// Its flavor, where that was known.
    before: Option<FlavorSpec>,
    /// How often its sources were read by request, and when they are to be again; `None` before the first look at it.
    reads: u8,
    due: Option<Timestamp>,
}

/// A change that would have been denied.
#[derive(Clone, Debug)]
pub struct DeferredChecks {
    /// The projection of the gateway.
    pub object: Arc<Value>,
    subject: GatewayRef,
    from: Effective,
    to: Effective,
    findings: Findings,
}

/// The current state of a gateway.
pub(super) struct Now {
    pub(super) object: Arc<Value>,
    /// What ran before the change, as read now.
    pub(super) before: Option<FlavorSpec>,
    pub(super) gateway: Gateway,
}

/// What a change is judged by beside the gateway.
pub(super) struct Surroundings {
    pub(super) routes: Arc<Inventory>,
    pub(super) group: Option<ProducerGroup>,
}

impl Unread {
    /// Records a change of the flavor of a gateway; `before` is what ran until then, and its spec.
    pub(super) fn follow(&mut self, written: &Gateway, before: Option<(Arc<Value>, FlavorSpec)>) {
        let Some((object, before)) = before else { return };
        let (from, to) = (&before.reading.effective, &written.spec.reading.effective);
        let is_due = match (unseen(from), unseen(to)) {
            (Some(from), Some(to)) => from != to,
            (Some(_), None) => to.known().is_some(),
            (None, Some(_)) => from.known().is_some(),
            (None, None) => false,
        };
        if is_due {
            let before = from.known().is_some().then_some(before);
            self.0.entry(written.subject.clone()).or_insert(Pending { object, before, reads: 0, due: None });
        }
    }

    /// The sources to be read by request now, and when to ask again; `unknown` returns those of a gateway, which ran this
    /// before.
    pub(super) fn take_due(
        &mut self,
        now: Timestamp,
        unknown: impl Fn(&GatewayRef, &Value) -> BTreeSet<FlavorSource>,
    ) -> (BTreeSet<FlavorSource>, Option<Timestamp>) {
        let (mut wanted, mut next) = (BTreeSet::new(), None);
        let mut of_namespace: BTreeMap<String, usize> = BTreeMap::new();
        self.0.retain(|subject, pending| {
            let unknown = unknown(subject, &pending.object);
            // What a label makes known is not asked for.
            if unknown.is_empty() {
                return true;
            }
            let due = pending.due.unwrap_or(now);
            let asked = of_namespace.entry(subject.name.namespace.clone()).or_default();
            let has_room = wanted.len() < MOST_AT_A_TIME && *asked < MOST_OF_NAMESPACE;
            let again = match due <= now {
                true if pending.reads >= MOST_READS => return false,
                true if has_room => {
                    *asked += unknown.len();
                    wanted.extend(unknown);
                    pending.reads += 1;
                    now + READ_AGAIN
                }
                true => now + SOON,
                false => due,
            };
            pending.due = Some(again);
            next = Some(next.map_or(again, |next: Timestamp| next.min(again)));
            true
        });
        (wanted, next)
    }

    /// Forgets what another process reads by request, some time after it was seen: it has reported it.
    pub(super) fn leave(&mut self, now: Timestamp, is_read: impl Fn(&GatewayRef, &Value) -> bool) {
        self.0.retain(|subject, pending| {
            let seen = *pending.due.get_or_insert(now);
            now < seen + READ_AGAIN || !is_read(subject, &pending.object)
        });
    }

    pub(super) fn forget(&mut self, gone: impl Fn(&GatewayRef) -> bool) {
        self.0.retain(|subject, _| !gone(subject));
    }

    /// The changes that can be read now, each reported once; `look` returns the current state of a gateway
    /// that ran this before, `None` if it is gone.
    pub(super) fn read_now(
        &mut self,
        look: impl Fn(&GatewayRef, &Value) -> Option<Now>,
        surroundings: impl Fn(&GatewayRef) -> Surroundings,
    ) -> Vec<DeferredChecks> {
        let mut found = Vec::new();
        self.0.retain(|subject, pending| {
            let Some(now) = look(subject, &pending.object) else { return false };
            let Some(before) = pending.before.as_ref().or(now.before.as_ref()) else { return false };
            let is_unread =
                [&now.gateway.spec, before].iter().any(|it| unseen(&it.reading.effective).is_some());
            if !is_unread {
                let before = before.clone();
                found.extend(judged(&before, now, &surroundings(subject)));
            }
            is_unread
        });
        found
    }
}

fn unseen(effective: &Effective) -> Option<&SourceKey> {
    match effective {
        Effective::Unknown(Unknown::Unseen(key)) => Some(key),
        _ => None,
    }
}

fn judged(before: &FlavorSpec, now: Now, around: &Surroundings) -> Option<DeferredChecks> {
    let Now { object, gateway: Gateway { subject, spec, stopped }, .. } = now;
    let findings = judge(&FlavorChange {
        subject: &subject,
        live: Some(&before.reading),
        stored: Some(before),
        new: &spec,
        stopped,
        routes: &around.routes,
        configuration: ProducerConfiguration::Usual,
        group: around.group.as_ref(),
        allowance: None,
    });
    let (from, to) = (before.reading.effective.clone(), spec.reading.effective);
    (!findings.denied.is_empty()).then_some(DeferredChecks { object, subject, from, to, findings })
}

impl DeferredChecks {
    /// One line for people.
    pub fn message(&self) -> String {
        let Self { subject, from, to, findings, .. } = self;
        let why: Vec<String> = findings.denied.iter().map(ToString::to_string).collect();
        let next = to.known().map(|to| format!("; next: `{} --outage`", plan::command(subject, to)));
        format!(
            "router flavor {from} -> {to} was admitted, as its source could not be read then, and would have been \
             refused: {}{}",
            why.join("; "),
            next.unwrap_or_default()
        )
    }
}
