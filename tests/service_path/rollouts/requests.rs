//! What a rollout asks of the API server, as its audit log tells.

use std::collections::BTreeMap;

use super::*;
use crate::support::audit::{Audit, Request, tally};

/// Requests of a creation, from it to rest, but those of the status: the children of a live side and of an idle preview,
/// the stamp, the history.
const MOST_OF_CREATION: usize = 10;
/// Of these more where another controller writes its condition just before the rollout's record: the object is read, its
/// revision is found to be there, and the write is tried again.
const MOST_OF_CONFLICT: usize = 5;
/// Where it writes it between two writes of the rollout's status, the object is read and the status written again.
const MOST_OF_STATUS_CONFLICT: usize = 1;
/// Writes of its status: four, and one more for each time that the count of pods is seen to change on the way.
const MOST_STATUSES: usize = 6;
/// Requests of a rollout with its promotion, from the edit to rest: children of two sides, status, Events.
const MOST: usize = 45;
/// Of these, reads: what is watched is not read again.
const MOST_READS: usize = 6;

fn about_rollouts(requests: &[Request]) -> Vec<&Request> {
    let is_review = |request: &&Request| request.resource.ends_with("reviews");
    requests.iter().filter(|request| !request.is_about_leases() && !is_review(request)).collect()
}

/// Waits until a look at the lease's renewals finds nothing else asked.
fn await_silence(audit: &Audit, from: u64, after: &str) -> u64 {
    let mut at = from;
    wait_until(&format!("nothing is asked any more after {after}"), CAP, || {
        let (seen, end) = audit.while_renewed(at, 6);
        at = end;
        let rest = tally(about_rollouts(&seen));
        if rest.is_empty() { Ok(end) } else { Err(format!("{rest:?}")) }
    })
}

/// A control plane that tells what it is asked, and where its log ends once nothing more is asked.
fn counted() -> Option<(Ground, Audit, u64)> {
    let ground = Ground::on(service_path::cluster_with(&["--audit"]), definition("ours").expect("our own"));
    let audit = Audit::of(&ground.cluster)?;
    ground.produce();
    audit.settle(&ground.cluster);
    let start = await_silence(&audit, audit.since(0).1, "the installation");
    Some((ground, audit, start))
}

/// The same with a DataPlane at rest.
fn resting() -> Option<(Ground, Audit, u64)> {
    let (ground, audit, start) = counted()?;
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");
    let start = await_silence(&audit, start, "creation");
    Some((ground, audit, start))
}

/// How often each verb was asked.
fn verbs<'r>(requests: &[&'r Request]) -> BTreeMap<&'r str, usize> {
    let mut verbs = BTreeMap::new();
    for request in requests {
        *verbs.entry(request.verb.as_str()).or_default() += 1;
    }
    verbs
}

/// Of one pod, as by default.
#[test]
fn a_creation_asks_little() {
    if !service_path::inside() {
        return;
    }
    let Some((ground, audit, start)) = counted() else { return };
    let mut one = spec("kong:3.8");
    one["deployment"]["replicas"] = json!(1);
    ground.create(one);
    ground.await_rolled_out("WaitingForChange");
    await_silence(&audit, start, "creation");
    let all = audit.since(start).0;
    let asked = about_rollouts(&all);
    announce(&format!("counted: a creation: {:?}; {:?}", verbs(&asked), tally(asked.clone())));
    let in_order: Vec<_> = asked.iter().map(|request| format!("{} {}", request.verb, request.uri)).collect();
    let statuses = in_order.iter().filter(|request| request.contains("/status?")).count();
    assert!(statuses <= MOST_STATUSES, "{statuses} of the status: {in_order:#?}");
    let conflicts = |resource: &str| {
        let count =
            asked.iter().filter(|request| request.resource == resource && request.code == 409).count();
        assert!(count <= 1, "{count} conflicts of {resource}: {in_order:#?}");
        count
    };
    let most = MOST_OF_CREATION
        + conflicts("dataplanes") * MOST_OF_CONFLICT
        + conflicts("dataplanes/status") * MOST_OF_STATUS_CONFLICT;
    assert!(in_order.len() - statuses <= most, "{}: {in_order:#?}", in_order.len());
}

/// What is gone is known from the watch, and what it was from the stamp: nothing is read before it is back.
#[test]
fn a_deleted_deployment_is_back_by_one_write() {
    if !service_path::inside() {
        return;
    }
    let Some((ground, audit, start)) = resting() else { return };
    let before = ground.admin.read(&ground.path("deployments", BLUE)).ok();
    ground.admin.delete(&ground.path("deployments", BLUE)).ok();
    ground.await_child("deployments", BLUE, "is back with its pods", |found| {
        found["metadata"]["uid"] != before["metadata"]["uid"] && found["status"]["readyReplicas"] == 2
    });
    ground.await_event("LiveChildRecreated", BLUE);
    await_silence(&audit, start, "healing");
    let all = audit.since_with_watches(start).0;
    let asked = about_rollouts(&all);
    announce(&format!("counted: healing: {:?}; {:?}", verbs(&asked), tally(asked.clone())));
    let is_told = |request: &&Request| matches!(request.resource.as_str(), "dataplanes/status" | "events");
    let (told, others): (Vec<&Request>, Vec<&Request>) = asked.iter().copied().partition(is_told);
    assert_eq!(others.iter().filter(|request| request.writes()).count(), 1, "{:#?}", tally(others));
    let first = asked[0];
    assert_eq!(
        (first.verb.as_str(), first.resource.as_str(), first.name.as_str()),
        ("patch", "deployments", BLUE)
    );
    assert!(told.iter().all(|request| request.writes()), "{told:#?}");
}

#[test]
fn a_promotion_asks_little_and_waits_in_silence() {
    if !service_path::inside() {
        return;
    }
    let Some((ground, audit, start)) = resting() else { return };
    ground.stage("kong:3.9");
    ground.await_rolled_out("AwaitingPromotion");
    let waiting = await_silence(&audit, start, "staging");
    ground.rollout(&["promote", "edge", "--wait"]);
    ground.await_rolled_out("WaitingForChange");
    let end = await_silence(&audit, waiting, "the promotion");

    let all: Vec<Request> = audit.since(start).0;
    let asked = about_rollouts(&all);
    let writes = asked.iter().filter(|request| request.writes()).count();
    announce(&format!(
        "counted: a rollout with its promotion: {:?}; {:?}; log {start} to {end}",
        verbs(&asked),
        tally(asked.clone())
    ));
    assert!(asked.len() <= MOST, "{} requests: {:#?}", asked.len(), tally(asked));
    assert!(asked.len() - writes <= MOST_READS, "{} reads: {:#?}", asked.len() - writes, tally(asked));
}
