//! What a DataPlane asks for and can never have: the API server refuses the child, whatever its version and settings.
//!
//! Only what is certain is refused here. Whatever else the API server refuses is in the conditions of the DataPlane.

use std::collections::BTreeSet;

use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use serde_json::Value;

use super::child_problem::{ChildProblem, nobody, shown};
use super::pod_fields;
use super::pod_fields::FieldProblems;
use super::pod_template;
use crate::data_plane::flavor::change::Finding;
use crate::data_plane::flavor::gateway_ref::GatewayRef;
use crate::data_plane::rollout::children::{InvalidTemplate, ingress_service};
use crate::data_plane::rollout::side::SideState;
use crate::data_plane::rules::ids::{
    DATA_PLANE_NAME, DATA_PLANE_NOT_CARRIED_OUT, DATA_PLANE_PORTS, DATA_PLANE_SCALING,
    DATA_PLANE_SERVICE_NAME, DATA_PLANE_TEMPLATE,
};

/// The longest value of a label.
const LONGEST_NAME: usize = 63;
/// The most problems of a pod template that are reported.
const TOLD: usize = 16;
/// The most that are known of the stored one.
const KNOWN: usize = 1024;

const INGRESS: &str = "/network/services/ingress";
const PORTS: &str = "spec.network.services.ingress.ports";
const SCALING: &str = "/deployment/scaling/horizontal";
const TEMPLATE: [&str; 2] = ["/deployment/podTemplateSpec", "/deployment/hardened"];

/// What Interlock keeps in a spec and does not carry out, and what to do instead.
const NOT_CARRIED_OUT: [(&str, &str, &str); 3] = [
    (
        "/pluginsToInstall",
        "spec.pluginsToInstall",
        "bring the plugins in the image or in a volume of podTemplateSpec",
    ),
    (
        "/extensions",
        "spec.extensions",
        "set the variables and volumes that they stand for in podTemplateSpec",
    ),
    (
        "/network/konnectCertificate",
        "spec.network.konnectCertificate",
        "mount the certificate by a volume of podTemplateSpec",
    ),
];

/// What is to be said of the children of a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildProblems {
    /// What can never be made.
    pub denied: Vec<ChildProblem>,
    /// What may not be made, or not as it looks.
    pub warned: Vec<Finding>,
}

/// A write of the spec of a DataPlane.
#[derive(Clone, Copy, Debug)]
pub struct SpecChange<'c> {
    pub new: &'c Value,
    /// The stored one.
    pub old: Option<&'c Value>,
    /// Whether Interlock makes the children. What it would make of a pod template is not what others make of it.
    pub is_ours: bool,
}

impl SpecChange<'_> {
    /// What is wrong with the changed fields of the spec, and was not before.
    pub fn problems(&self) -> ChildProblems {
        let mut found = self.problems_of(self.new, false);
        if let Some(old) = self.old.filter(|_| found != ChildProblems::default()) {
            let before = self.problems_of(old, true);
            found.denied.retain(|problem| !before.denied.contains(problem));
            found.warned.retain(|finding| !before.warned.contains(finding));
        }
        found
    }

    /// The problems of one of the specs, in the fields that are changed.
    fn problems_of(&self, spec: &Value, is_stored: bool) -> ChildProblems {
        let is_changed = |path: &str| self.old.is_none_or(|old| old.pointer(path) != self.new.pointer(path));
        let most = if is_stored { KNOWN } else { TOLD };
        let mut found = ChildProblems::default();
        if is_changed(INGRESS) {
            self.service(spec, &mut found);
        }
        if is_changed(SCALING) {
            scaling(spec, &mut found);
        }
        if self.is_ours && TEMPLATE.into_iter().any(is_changed) {
            let fields = spec.pointer(TEMPLATE[0]).map(|template| pod_fields::problems(template, most));
            let FieldProblems { wrong, unknown } = fields.unwrap_or_default();
            // What has a value of another type is merged into another problem.
            if wrong.is_empty() || is_stored {
                pod_template::problems(spec, most, &mut found.denied);
            }
            found.denied.extend(wrong);
            found.warned.extend(unknown.warned);
        }
        if self.is_ours {
            let is_set = |path: &str| match spec.pointer(path) {
                None | Some(Value::Null) => false,
                Some(Value::Array(items)) => !items.is_empty(),
                Some(_) => true,
            };
            for (_, field, instead) in NOT_CARRIED_OUT.into_iter().filter(|(path, ..)| is_set(path)) {
                let text = format!("{field} is kept, and not carried out by Interlock: {instead}");
                found.warned.push(Finding::new(DATA_PLANE_NOT_CARRIED_OUT, text));
            }
        }
        found
    }

    /// The Service that the traffic comes through.
    fn service(&self, spec: &Value, found: &mut ChildProblems) {
        let listed = spec.pointer(INGRESS).and_then(|ingress| ingress["ports"].as_array());
        let (mut numbers, mut names, mut node_ports) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for port in listed.into_iter().flatten() {
            let protocol = port["protocol"].as_str().filter(|text| !text.is_empty()).unwrap_or("TCP");
            let number = port["port"].as_u64().unwrap_or_default();
            // Kong's operator takes the first port of each number, Interlock that of each number and protocol.
            if !numbers.insert((number, if self.is_ours { protocol } else { "" })) {
                let text = format!(
                    "{PORTS}: {number}/{} is listed twice, and only the first one is taken",
                    shown(protocol)
                );
                found.warned.extend(self.is_ours.then(|| Finding::new(DATA_PLANE_PORTS, text)));
                continue;
            }
            let name = port["name"].as_str().filter(|name| !name.is_empty());
            if let Some(name) = name.filter(|name| !names.insert(*name)) {
                let detail = format!("two ports have the name \"{}\"", shown(name));
                found.denied.push(port_problem(detail, "give each port a name of its own"));
            }
            let node_port = port["nodePort"].as_u64().filter(|number| *number != 0);
            if let Some(number) = node_port.filter(|number| !node_ports.insert((*number, protocol))) {
                let detail = format!("two ports have the nodePort {number}");
                found
                    .denied
                    .push(port_problem(detail, "give each port a nodePort of its own, or leave it out"));
            }
        }
        let made = ingress_service(&nobody(), spec, SideState::Live, "");
        if let Some(InvalidTemplate { field, problem }) = made.err().filter(|_| self.is_ours) {
            let name = spec.pointer(INGRESS).and_then(|ingress| ingress["name"].as_str());
            let (rule, detail) = match name.filter(|_| field.ends_with("ingress.name")) {
                Some(name) => (DATA_PLANE_SERVICE_NAME, format!("\"{}\" {problem}", shown(name))),
                None => (DATA_PLANE_PORTS, problem.to_string()),
            };
            found.denied.push(ChildProblem {
                rule,
                field,
                detail,
                next: "correct the field, or leave it out",
            });
        }
    }
}

fn port_problem(detail: String, next: &'static str) -> ChildProblem {
    ChildProblem { rule: DATA_PLANE_PORTS, field: PORTS.to_owned(), detail, next }
}

/// The HorizontalPodAutoscaler.
fn scaling(spec: &Value, found: &mut ChildProblems) {
    let number = |field: &str| spec.pointer(SCALING)?[field].as_i64();
    let (least, most) = (number("minReplicas").unwrap_or(1), number("maxReplicas"));
    if let Some(most) = most.filter(|most| *most < least.max(1)) {
        found.denied.push(ChildProblem {
            rule: DATA_PLANE_SCALING,
            field: "spec.deployment.scaling.horizontal.maxReplicas".to_owned(),
            detail: format!("{most} is less than minReplicas, which is {least}"),
            next: "set maxReplicas to at least minReplicas",
        });
    }
}

/// A denial of a name from which no child can be made.
pub fn name_refusal(subject: &GatewayRef) -> Option<Denial> {
    let length = subject.name.name.len();
    (length > LONGEST_NAME).then(|| {
        let detail = format!("has {length} characters, and at most {LONGEST_NAME} fit");
        Denial::invalid(
            DATA_PLANE_NAME,
            "the name of a DataPlane is a label of everything that is made of it, and this one is too long for a label",
            vec![ViolationField::new("metadata.name", FieldReason::Invalid, detail)],
        )
        .next(format!("choose a name of at most {LONGEST_NAME} characters (`kubectl get dataplanes` lists those there are)"))
    })
}

/// A denial for these problems, if there are any.
pub fn refusal(subject: &GatewayRef, problems: Vec<ChildProblem>) -> Option<Denial> {
    problems.into_iter().map(|problem| denial(subject, problem)).reduce(|mut first, next| {
        first.join(next);
        first
    })
}

fn denial(subject: &GatewayRef, problem: ChildProblem) -> Denial {
    let (child, fields) = match problem.rule {
        DATA_PLANE_TEMPLATE => ("Deployment", "pod.spec"),
        DATA_PLANE_SCALING => ("HorizontalPodAutoscaler", "horizontalpodautoscaler.spec"),
        _ => ("Service", "service.spec"),
    };
    let sentence = format!("no {child} can be made of {subject}: the API server refuses one like this");
    let field = ViolationField::new(problem.field, FieldReason::Invalid, problem.detail);
    let next = format!("{} (`kubectl explain {fields}` tells what its fields take)", problem.next);
    Denial::invalid(problem.rule, sentence, vec![field]).next(next)
}
