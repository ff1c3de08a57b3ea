//! The way in for hostile gateways, shared by the fuzz target, the properties and the time-bounded
//! run: `{"gateway": ..., "next": ..., "objects": [...], "allow": "..."}`, read, judged and planned for.
//!
//! Whatever comes in: no panic, and what the resolver says of a flavor holds in a second reading.

use interlock_core::api::stamp::SpecHash;
use interlock_kong::data_plane::flavor::Flavor;
use interlock_kong::data_plane::flavor::change::FlavorChange;
use interlock_kong::data_plane::flavor::compatibility::ProducerConfiguration;
use interlock_kong::data_plane::flavor::flavor_override::{ChangeId, FlavorOverride};
use interlock_kong::data_plane::flavor::gateway::Gateway;
use interlock_kong::data_plane::flavor::group::ProducerGroup;
use interlock_kong::data_plane::flavor::plan::{FlavorPlan, Question};
use interlock_kong::data_plane::flavor::reading::Effective;
use interlock_kong::data_plane::flavor::routes::Inventory;
use interlock_kong::data_plane::flavor::sources::GivenSources;
use interlock_kong::data_plane::flavor::validate::judge;
use serde_json::Value;

use super::kubelet::{Fate, GUESSES, Pod};

const NAMESPACE: &str = "kong";

/// Reads, judges and plans. Panics where the process would, and where a reading does not hold.
pub fn call(body: &[u8]) {
    let Ok(input) = serde_json::from_slice::<Value>(body) else { return };
    let objects = input["objects"].as_array().cloned().unwrap_or_default();
    let (Some(gateway), next) = (check(&input["gateway"], &objects), check(&input["next"], &objects)) else {
        return;
    };
    let routes = Inventory::of(&input["gateway"], &objects, NAMESPACE);
    let sources = GivenSources::of(&objects, NAMESPACE);
    let id = || ChangeId::of("uid", "1", &SpecHash::of("{}"));
    let allowance = FlavorOverride::read(input["allow"].as_str(), id);
    let group = ProducerGroup::of(&input["gateway"], &objects, NAMESPACE, &sources).ok().flatten();
    for configuration in [ProducerConfiguration::Usual, ProducerConfiguration::FieldsOnly] {
        let change = |new: &Gateway| {
            judge(&FlavorChange {
                subject: &gateway.subject,
                live: Some(&gateway.spec.reading),
                stored: Some(&gateway.spec),
                new: &new.spec,
                stopped: gateway.stopped && new.stopped,
                routes: &routes,
                configuration,
                group: group.as_ref(),
                allowance: allowance.as_ref(),
            })
        };
        let kept = change(&gateway);
        assert!(kept.denied.is_empty() && kept.warned.is_empty(), "no change is judged: {kept:?}");
        let findings = next.as_ref().map(&change).unwrap_or_default();
        for finding in findings.denied.iter().chain(&findings.warned) {
            assert!(!finding.text.contains('\n'), "one line each: {}", finding.text);
        }
        for to in Flavor::ALL {
            let plan = FlavorPlan::make(&Question {
                subject: &gateway.subject,
                live: &gateway.spec,
                to,
                routes: &routes,
                configuration,
                group: group.as_ref(),
                outage: true,
                notes: &[],
            });
            let known = gateway.spec.reading.effective.known().is_some();
            assert_eq!(plan.is_ok(), known, "a plan begins where a flavor is known");
            if let Ok(plan) = plan {
                assert!(!plan.to_string().is_empty());
            }
        }
    }
}

/// Reads a gateway, and holds what is said of its flavor against the second reading.
pub fn check(object: &Value, objects: &[Value]) -> Option<Gateway> {
    let gateway = Gateway::read(object, NAMESPACE, &GivenSources::of(objects, NAMESPACE)).ok()??;
    let template = match object["kind"] == "DataPlane" {
        true => &object["spec"]["deployment"]["podTemplateSpec"],
        false => &object["spec"]["template"],
    };
    // The second reading knows one namespace.
    let elsewhere =
        |o: &Value| !o["metadata"]["namespace"].is_null() && o["metadata"]["namespace"] != NAMESPACE;
    if gateway.subject.name.namespace == NAMESPACE && !objects.iter().any(elsewhere) {
        let pod = Pod { template, objects, is_deployment: object["kind"] == "Deployment" };
        for guess in GUESSES {
            if let Some(fate) = pod.fate(guess) {
                let said = &gateway.spec.reading.effective;
                assert!(holds(said, &fate), "{said:?} is said, {fate:?} follows from {guess:?}: {object}");
            }
        }
    }
    Some(gateway)
}

/// Where pods do not start, nothing that is said of them is wrong.
fn holds(said: &Effective, fate: &Fate) -> bool {
    match (said, fate) {
        (_, Fate::NeverStarts) | (Effective::Unknown(_), _) => true,
        (Effective::Known(flavor), Fate::Runs(found)) => flavor.as_str() == found,
        (Effective::Invalid(_), Fate::Rejects)
        | (Effective::Exclusive, Fate::Exits)
        | (Effective::Legacy, Fate::Legacy) => true,
        _ => false,
    }
}
