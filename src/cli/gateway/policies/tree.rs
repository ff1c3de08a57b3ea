//! `interlock policies tree`: the Gateways with what hangs below them, and the policies of each node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::Args;
use gateway_policies::{Level, NodeKey, Object, ObjectKind, PolicyId, RefusalReason, decode};
use interlock_core::api::display::one_line;
use interlock_gateway::policies::PolicySurvey;
use serde_json::{Value, json};

use super::source::{FilesFlag, Source, at_most_one_stdin};
use crate::cli::common::output;
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::TargetFlags;

/// Flags of `tree`.
#[derive(Args, Debug)]
pub(super) struct TreeFlags {
    #[command(flatten)]
    input: FilesFlag,
    #[command(flatten)]
    form: OutputFlag,
}

/// The nodes below a node, in the order of the rules.
#[derive(Default)]
struct Children(BTreeMap<(usize, NodeKey), Children>);

impl Children {
    fn insert(&mut self, nodes: impl IntoIterator<Item = (usize, NodeKey)>) {
        nodes.into_iter().fold(self, |at, node| at.0.entry(node).or_default());
    }

    fn nodes<'a>(&'a self, found: &mut BTreeSet<&'a NodeKey>) {
        for ((_, node), below) in &self.0 {
            found.insert(node);
            below.nodes(found);
        }
    }
}

/// All Gateways, and the listeners of them that carry no route whatever it is.
#[derive(Default)]
struct Tree {
    root: Children,
    refused: BTreeMap<NodeKey, RefusalReason>,
}

/// A pair of a route and a listener or a parent that does not carry it.
struct RefusedPair {
    route: String,
    parent: String,
    reason: &'static str,
}

/// Prints the tree.
pub(super) async fn run(target: &TargetFlags, flags: &TreeFlags) -> anyhow::Result<()> {
    at_most_one_stdin(flags.input.files.iter())?;
    let source = Source::read(target, &flags.input.files).await?;
    let survey = source.survey();
    let tree = tree(&survey, source.objects());
    let refused = refused(&survey);
    let others = outside(&survey, &tree);
    if tree.root.0.is_empty() {
        output::note(match source.gaps.is_none() {
            true => "there are no Gateways",
            false => "there are no Gateways among the objects that can be seen",
        });
    }
    let others_json: Vec<Value> = others.iter().map(|node| node_json(&survey, node)).collect();
    let pair = |own: &RefusedPair| json!({"route": own.route, "parent": own.parent, "reason": own.reason});
    let answer = source.complete(
        &survey,
        json!({
            "tree": json_of(&survey, &tree, &tree.root),
            "refused": refused.iter().map(pair).collect::<Vec<_>>(),
            "otherTargets": others_json,
        }),
    );
    Ok(flags.form.output.print(&answer, || text(&survey, &tree, &refused, &others))?)
}

/// All Gateways with their listeners, and all paths.
fn tree(survey: &PolicySurvey, objects: &[Value]) -> Tree {
    let mut tree = Tree::default();
    for object in objects.iter().filter(|object| object["kind"] == "Gateway") {
        let Ok(Object::Gateway(gateway)) = decode(object) else { continue };
        let class = NodeKey::new(ObjectKind::GatewayClass, "", &gateway.spec.gateway_class_name);
        tree.root.insert([(0, class.clone()), (0, gateway.key.clone())]);
        for own in survey.index().listeners(&gateway.key) {
            let object = own.key.object();
            let set = (object != gateway.key).then_some(object);
            tree.refused.extend(own.refusal.map(|reason| (own.key.clone(), reason)));
            let nodes = [Some(class.clone()), Some(gateway.key.clone()), set, Some(own.key)];
            tree.root.insert(nodes.into_iter().flatten().map(|node| (0, node)));
        }
    }
    for path in survey.index().paths() {
        tree.root.insert(path.nodes().map(|node| {
            let place = if *node == path.rule { path.rule_index } else { 0 };
            (place, node.clone())
        }));
    }
    tree
}

fn refused(survey: &PolicySurvey) -> Vec<RefusedPair> {
    let routes = survey.index().routes();
    let pairs = routes.flat_map(|(route, links)| links.refused.iter().map(move |refused| (route, refused)));
    pairs
        .map(|(route, refused)| RefusedPair {
            route: route.to_string(),
            parent: refused.parent.clone(),
            reason: survey.reason(refused).0,
        })
        .collect()
}

/// Targets that the tree does not have: Services, and objects that are absent or carried by no listener.
fn outside<'a>(survey: &'a PolicySurvey, tree: &Tree) -> Vec<&'a NodeKey> {
    let mut inside = BTreeSet::new();
    tree.root.nodes(&mut inside);
    survey.nodes().filter(|node| !inside.contains(node)).collect()
}

fn json_of(survey: &PolicySurvey, tree: &Tree, children: &Children) -> Vec<Value> {
    let nodes = children.0.iter();
    nodes
        .map(|((_, node), below)| {
            let mut value = node_json(survey, node);
            if let Some(reason) = tree.refused.get(node) {
                value["refused"] = reason.name().into();
            }
            value["children"] = json_of(survey, tree, below).into();
            value
        })
        .collect()
}

fn node_json(survey: &PolicySurvey, node: &NodeKey) -> Value {
    let mut policies: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for id in survey.attached(node) {
        policies.entry(&id.kind).or_default().push(id.qualified_name());
    }
    json!({"node": node.to_string(), "policies": policies})
}

fn text(survey: &PolicySurvey, tree: &Tree, refused: &[RefusedPair], others: &[&NodeKey]) -> String {
    let mut out = String::new();
    nodes_text(survey, tree, &tree.root, 0, &mut out);
    if !others.is_empty() {
        out += "\nother targets\n";
    }
    for node in others {
        line(&mut out, 1, &node.to_string());
        policies_text(survey, node, 2, &mut out);
    }
    if !refused.is_empty() {
        out += "\nrefused\n";
    }
    for RefusedPair { route, parent, reason } in refused {
        line(&mut out, 1, &format!("{route} by {parent}: {reason}"));
    }
    out
}

fn nodes_text(survey: &PolicySurvey, tree: &Tree, children: &Children, depth: usize, out: &mut String) {
    for ((place, node), below) in &children.0 {
        let section = node.section.as_deref().unwrap_or_default();
        let name = match node.level() {
            Level::Listener => match tree.refused.get(node) {
                Some(reason) => format!("listener {section}: {reason}"),
                None => format!("listener {section}"),
            },
            Level::Rule if node.is_position() || section.starts_with('#') => format!("rule {place}"),
            Level::Rule => format!("rule {place} {section}"),
            _ => node.to_string(),
        };
        line(out, depth, &name);
        policies_text(survey, node, depth + 1, out);
        nodes_text(survey, tree, below, depth + 1, out);
    }
}

/// The policies of a node; of one that is not accepted, why.
fn policies_text(survey: &PolicySurvey, node: &NodeKey, depth: usize, out: &mut String) {
    for id in survey.attached(node) {
        line(out, depth, &format!("* {}", policy_text(survey, id)));
    }
}

fn policy_text(survey: &PolicySurvey, id: &PolicyId) -> String {
    let name = format!("{} {}", id.kind, id.qualified_name());
    match survey.acceptance(id).filter(|accepted| accepted.status != "True") {
        Some(accepted) => format!("{name}: {}: {}", accepted.reason, accepted.message),
        None => name,
    }
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{}", "  ".repeat(depth), one_line(text));
}
