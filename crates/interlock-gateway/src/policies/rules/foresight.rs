//! What a write would change for the policies and paths of others, in the words of the conditions.

use std::collections::BTreeSet;

use gateway_policies::{Event, Finding, NodeKey, ObjectKind, Path, PolicyId, Refusal, RefusalReason};
use interlock_core::kinds::NAMESPACE;
use interlock_core::kinds::inventory::ReadKinds;
use serde_json::Value;

use super::whole::{opened, replaced_whole};
use super::write::Write;
use crate::policies::attachments::AttachmentGraph;
use crate::policies::generic::Precedence;
use crate::policies::linked::LinkedObjects;

/// The sentences about a write.
#[derive(Default)]
pub(super) struct Foreseen {
    /// What it changes.
    pub(super) warnings: Vec<String>,
    /// That new paths of the written route have no authentication.
    pub(super) uncovered: Option<String>,
}

/// What can be said of a write. What rests on objects that are not read is not said.
pub(super) fn foresee(graph: &AttachmentGraph, read: &dyn ReadKinds, write: &Write) -> Foreseen {
    let foreseen = graph.ask(|linked| {
        let Some(event) = event(linked, write) else { return Foreseen::default() };
        let whole = match &event {
            Event::ApplyPolicy(policy) => {
                let merges = write.new.as_ref().is_some_and(|new| new["spec"]["mergeType"].is_string());
                replaced_whole(linked, policy, merges)
            }
            _ => Vec::new(),
        };
        let difference = match linked.index.difference(event) {
            Ok(difference) => difference,
            Err(over) => return Foreseen { warnings: vec![over.to_string()], uncovered: None },
        };
        let mut findings = difference.findings();
        findings.extend(opened(linked, &difference));
        let overridden: BTreeSet<PolicyId> = findings
            .iter()
            .filter_map(|finding| match finding {
                Finding::Overridden { policy, .. } => Some(policy.clone()),
                _ => None,
            })
            .collect();
        let is_said = |finding: &&Finding| match finding {
            Finding::Replaced { policy, .. } => !overridden.contains(policy),
            _ => is_sure(linked, read, finding),
        };
        let said = findings.iter().filter(is_said);
        let said = said.map(|finding| by_naming(write, finding).unwrap_or_else(|| finding.to_string()));
        let is_uncovered = |finding: &&Finding| match finding {
            Finding::Uncovered { kind, example, .. } => {
                let has_requests =
                    matches!(example.route.kind, ObjectKind::HttpRoute | ObjectKind::GrpcRoute);
                &**kind == AUTH
                    && has_requests
                    && is_written(write, &example.route)
                    && are_policies_read(linked, read, kind, example)
            }
            _ => false,
        };
        let uncovered = findings.iter().find(is_uncovered).map(Finding::to_string);
        Foreseen { warnings: said.chain(whole).collect(), uncovered }
    });
    foreseen.unwrap_or_else(|| Foreseen { warnings: vec![BUSY.to_owned()], uncovered: None })
}

const BUSY: &str = "many writes are judged now, so what this one would change is not foreseen";

/// The kind that guards routes.
const AUTH: &str = "AuthPolicy";

/// Whether a route is the object that is written.
fn is_written(write: &Write, route: &NodeKey) -> bool {
    let name = route.kind.name();
    let is = |object: &Value| object["kind"] == name && object["metadata"]["name"] == *route.name;
    write.new.as_ref().is_some_and(is)
}

/// What the index would take in.
fn event(linked: &LinkedObjects, write: &Write) -> Option<Event> {
    let Some(new) = &write.new else { return linked.index.deletion(write.old.as_ref()?).ok() };
    match linked.as_indexed(new) {
        Some(policy) => linked.index.event(&policy).ok(),
        None if linked.is_policy(new) => linked.index.deletion(new).ok(),
        None => linked.index.event(new).ok(),
    }
}

/// Whether a finding is one of the kind, and all that it rests on is read.
fn is_sure(linked: &LinkedObjects, read: &dyn ReadKinds, finding: &Finding) -> bool {
    match finding {
        // What a selector does not select any more is no target that is missed.
        Finding::Detached { policy, target } => {
            !linked.is_selecting(policy) && is_kind_read(read, target.kind, &target.namespace)
        }
        Finding::Conflicted { policy, .. } | Finding::OverLimit { policy, .. } => {
            linked.kinds.precedence(&policy.kind) != Some(Precedence::All)
        }
        Finding::Opened { kind, example, .. } => are_policies_read(linked, read, kind, example),
        Finding::Uncovered { .. } => false,
        Finding::NotAdmitted { route, refused } => {
            refused.iter().all(|refusal| is_read(read, route, refusal))
        }
        Finding::Overridden { .. } | Finding::Replaced { .. } => true,
    }
}

fn are_policies_read(linked: &LinkedObjects, read: &dyn ReadKinds, kind: &str, path: &Path) -> bool {
    let Some(own) = linked.kinds.get(kind) else { return false };
    let mut namespaces = path.nodes().map(|node| &*node.namespace).filter(|name| !name.is_empty());
    namespaces.all(|namespace| read.is_read(own.kind.group(), own.kind.kubernetes_kind(), namespace))
}

/// Whether what a refusal rests on is read.
fn is_read(read: &dyn ReadKinds, route: &NodeKey, refusal: &Refusal) -> bool {
    let mut parent = refusal.parent.split('/');
    let (kind, namespace) = (parent.next().unwrap_or_default(), parent.next().unwrap_or(&route.namespace));
    let all = |kinds: &[ObjectKind]| kinds.iter().all(|kind| is_kind_read(read, *kind, namespace));
    match refusal.reason {
        RefusalReason::ParentNotFound if kind == ObjectKind::Gateway.name() => all(&[ObjectKind::Gateway]),
        RefusalReason::ParentNotFound if kind == ObjectKind::ListenerSet.name() => {
            all(&[ObjectKind::ListenerSet, ObjectKind::Gateway])
        }
        RefusalReason::ParentNotFound => all(&[ObjectKind::XListenerSet, ObjectKind::Gateway]),
        RefusalReason::ClassNotFound => is_kind_read(read, ObjectKind::GatewayClass, ""),
        RefusalReason::NamespaceUnknown => read.is_read(NAMESPACE.group, NAMESPACE.kind, ""),
        _ => true,
    }
}

fn is_kind_read(read: &dyn ReadKinds, kind: ObjectKind, namespace: &str) -> bool {
    read.is_read(kind.group(), kind.name(), namespace)
}

/// The sentence about a policy that targets a rule by its position, where the write gives that rule a name.
fn by_naming(write: &Write, finding: &Finding) -> Option<String> {
    let Finding::Detached { policy, target } = finding else { return None };
    let (new, old) = (write.new.as_ref()?, write.old.as_ref()?);
    let number: usize = target.section.as_deref()?.strip_prefix("rule-")?.parse().ok()?;
    let name = |object: &Value| {
        let rule = &object["spec"]["rules"][number.checked_sub(1)?];
        rule["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
    };
    let name =
        name(new).filter(|_| is_written(write, target) && target.is_position() && name(old).is_none())?;
    let route = target.object();
    Some(format!(
        "naming rule {number} of {route} detaches {policy}, which targets {target}; let it target #{name}"
    ))
}
