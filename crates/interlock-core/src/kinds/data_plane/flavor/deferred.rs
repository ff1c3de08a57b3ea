//! Deferred checks: changes of flavor that admission allowed because their source could not be read,
//! validated once it can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::change::FlavorChange;
use super::compatibility::ProducerConfiguration;
use super::environment::Unknown;
use super::finding::Findings;
use super::gateway::Gateway;
use super::gateway_ref::{FlavorSpec, GatewayRef};
use super::group::ProducerGroup;
use super::plan;
use super::reading::Effective;
use super::routes::Inventory;
use super::validate::judge;

/// Gateways with a deferred check, and their spec before the change.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(BTreeMap<GatewayRef, FlavorSpec>);

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
    pub(super) gateway: Gateway,
    pub(super) routes: Arc<Inventory>,
    pub(super) group: Option<ProducerGroup>,
}

impl Unread {
    /// Records a write of a gateway; `before` is its previous spec.
    pub(super) fn follow(&mut self, written: &Gateway, before: Option<FlavorSpec>) {
        let unread = matches!(written.spec.reading.effective, Effective::Unknown(Unknown::Unseen(_)));
        if let Some(before) = before.filter(|before| unread && before.reading.effective.known().is_some()) {
            self.0.entry(written.subject.clone()).or_insert(before);
        }
    }

    pub(super) fn forget(&mut self, gone: impl Fn(&GatewayRef) -> bool) {
        self.0.retain(|subject, _| !gone(subject));
    }

    /// The changes that can be read now, each reported once; `look` returns the current state of a
    /// gateway, `None` if it is gone.
    pub(super) fn read_now(&mut self, look: impl Fn(&GatewayRef) -> Option<Now>) -> Vec<DeferredChecks> {
        let mut found = Vec::new();
        self.0.retain(|subject, before| {
            let Some(now) = look(subject) else { return false };
            let unread = matches!(now.gateway.spec.reading.effective, Effective::Unknown(Unknown::Unseen(_)));
            if !unread {
                found.extend(judged(before, now));
            }
            unread
        });
        found
    }
}

fn judged(before: &FlavorSpec, now: Now) -> Option<DeferredChecks> {
    let Now { object, gateway: Gateway { subject, spec, stopped }, routes, group } = now;
    let findings = judge(&FlavorChange {
        subject: &subject,
        live: Some(&before.reading),
        stored: Some(before),
        new: &spec,
        stopped,
        routes: &routes,
        configuration: ProducerConfiguration::Usual,
        group: group.as_ref(),
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
