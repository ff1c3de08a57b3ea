//! The pod template of the Deployment, as Interlock merges it.

use crate::data_plane::rules::ids::DATA_PLANE_TEMPLATE;
use std::collections::BTreeSet;

use serde_json::Value;

use super::child_problem::{ChildProblem, nobody, shown};
use crate::data_plane::rollout::children::{brings_certificate, deployment};
use crate::data_plane::rollout::side::{DeploymentIdentity, SideState};

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const HOOKS: [&str; 2] = ["postStart", "preStop"];
/// The fields of a probe that are no handler: any other may be one that a newer API server knows.
const TIMING: [&str; 6] = [
    "failureThreshold",
    "initialDelaySeconds",
    "periodSeconds",
    "successThreshold",
    "terminationGracePeriodSeconds",
    "timeoutSeconds",
];

/// What the API server never takes of the template that is made of a spec, as long as no more is found.
pub(super) fn problems(spec: &Value, most: usize, found: &mut Vec<ChildProblem>) {
    let identity = DeploymentIdentity { name: String::new(), selector: String::new() };
    // Whether one is made is not known here: one that is not would be a volume less.
    let certificate = (!brings_certificate(spec)).then_some("certificate");
    match deployment(&nobody(), spec, &identity, SideState::Live, None, certificate) {
        Ok(made) => Pod { spec: &made["spec"]["template"]["spec"], most, found }.containers(),
        // Another rule is about the image.
        Err(error) if error.field.ends_with(".image") => {}
        Err(error) => {
            found.push(problem(error.field, error.problem.to_string(), "correct the field, or leave it out"));
        }
    }
}

fn problem(field: String, detail: String, next: &'static str) -> ChildProblem {
    ChildProblem { rule: DATA_PLANE_TEMPLATE, field, detail, next }
}

struct Pod<'p> {
    spec: &'p Value,
    most: usize,
    found: &'p mut Vec<ChildProblem>,
}

impl Pod<'_> {
    fn containers(&mut self) {
        let spec = self.spec;
        let volumes: BTreeSet<&str> = elements(&spec["volumes"]).filter_map(|v| v["name"].as_str()).collect();
        let mut names = BTreeSet::new();
        for list in ["initContainers", "containers"] {
            for container in elements(&spec[list]) {
                let name = container["name"].as_str().unwrap_or_default();
                let place = format!("spec.deployment.podTemplateSpec.spec.{list}[name={}]", shown(name));
                if !names.insert(name) {
                    let detail = "a container before it has the same name".to_owned();
                    self.add(problem(place.clone(), detail, "give each container a name of its own"));
                }
                self.container(container, &place, &volumes);
            }
        }
    }

    fn container(&mut self, container: &Value, place: &str, volumes: &BTreeSet<&str>) {
        if container["image"].as_str().is_none_or(str::is_empty) {
            self.say(place, "image", "is not set", "name the image of the container");
        }
        for probe in PROBES {
            let is_timing = |(name, _): (&String, &Value)| TIMING.contains(&name.as_str());
            if container[probe].as_object().is_some_and(|probe| probe.iter().all(is_timing)) {
                let next = "add exec, grpc, httpGet or tcpSocket to it, or write {} for no probe";
                self.say(place, probe, "has no handler", next);
            }
        }
        for hook in HOOKS {
            if container["lifecycle"][hook].as_object().is_some_and(serde_json::Map::is_empty) {
                let next = "add exec, httpGet, sleep or tcpSocket to it, or leave it out";
                self.say(place, &format!("lifecycle.{hook}"), "has no handler", next);
            }
        }
        for mount in elements(&container["volumeMounts"]) {
            let name = mount["name"].as_str().unwrap_or_default();
            if !volumes.contains(name) {
                let field = format!(
                    "volumeMounts[mountPath={}]",
                    shown(mount["mountPath"].as_str().unwrap_or_default())
                );
                let detail = format!("names volume \"{}\", which the template does not have", shown(name));
                self.say(
                    place,
                    &field,
                    &detail,
                    "add the volume to spec.deployment.podTemplateSpec.spec.volumes, or correct the name",
                );
            }
        }
        let mut ports = BTreeSet::new();
        for name in elements(&container["ports"]).filter_map(|port| port["name"].as_str()) {
            if !name.is_empty() && !ports.insert(name) {
                let detail = format!("two ports have the name \"{}\"", shown(name));
                self.say(place, "ports", &detail, "give each port a name of its own");
            }
        }
    }

    fn say(&mut self, place: &str, field: &str, detail: &str, next: &'static str) {
        self.add(problem(format!("{place}.{field}"), detail.to_owned(), next));
    }

    fn add(&mut self, problem: ChildProblem) {
        if self.found.len() < self.most {
            self.found.push(problem);
        }
    }
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
