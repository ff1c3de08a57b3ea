//! A GatewayClass whose Gateways Envoy Gateway merges is reconciled: what carries out the policies of all of them.

use std::collections::BTreeSet;

use gateway_policies::{NodeKey, ObjectKind};
use interlock_core::api::object::meta_str;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::reconcile::{Needs, ReconcileStep, Reconciler, View};

use super::fleet_writes::{FleetWrites, fleet_writes};
use super::gateway::{AGAIN, unread};
use super::idle::Idle;
use crate::policies::attachments::AttachmentGraph;

/// Reconciles GatewayClasses.
pub(crate) static RECONCILER: Reconciler =
    Reconciler { name: "merged-gateways", capability: &POLICIES, reconcile };

fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let (Some(graph), Some(name)) = (view.lister::<AttachmentGraph>(), meta_str(view.object(), "name"))
    else {
        return Ok(ReconcileStep::Await(None));
    };
    if unread(view).is_some() {
        return Ok(ReconcileStep::Await(Some(AGAIN)));
    }
    let class = NodeKey::new(ObjectKind::GatewayClass, "", name);
    // They may have been merged by an EnvoyProxy of another namespace, or are not any more.
    let (wanted, mut namespaces) = graph.decide(|linked| {
        let wanted = linked.enforcement.wanted_of_class(&linked.index, &class);
        linked.wake_restated();
        let namespaces = linked.enforcement.written.namespaces_of(&class);
        (wanted, namespaces.into_iter().map(str::to_owned).collect::<BTreeSet<_>>())
    });
    let wanted = match wanted {
        Err(Idle::Kuadrant | Idle::Awaits(_)) => return Ok(ReconcileStep::Await(None)),
        Err(Idle::Lacks(_)) => None,
        Ok(wanted) => wanted,
    };
    namespaces.extend(wanted.iter().map(|own| own.rendered.fleet.namespace.clone()));
    let FleetWrites { effects, refused } = fleet_writes(view, &namespaces, wanted.as_ref())?;
    graph.decide(|linked| {
        let written = &mut linked.enforcement.written;
        refused.into_iter().for_each(|(patched, own)| written.refuse(&class, patched, own));
    });
    Ok(if effects.is_empty() { ReconcileStep::Await(None) } else { ReconcileStep::Write(effects) })
}
