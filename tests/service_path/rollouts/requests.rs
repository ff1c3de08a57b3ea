//! What a rollout asks of the API server, as its audit log tells.

use std::collections::BTreeMap;

use super::*;
use crate::support::audit::{Audit, Request, tally};

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

#[test]
fn a_promotion_asks_little_and_waits_in_silence() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::on(service_path::cluster_with(&["--audit"]), definition("ours").expect("our own"));
    let Some(audit) = Audit::of(&ground.cluster) else { return };
    ground.produce();
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");
    audit.settle(&ground.cluster);
    let start = await_silence(&audit, audit.since(0).1, "creation");

    ground.stage("kong:3.9");
    ground.await_rolled_out("AwaitingPromotion");
    let waiting = await_silence(&audit, start, "staging");
    ground.rollout(&["promote", "edge", "--wait"]);
    ground.await_rolled_out("WaitingForChange");
    let end = await_silence(&audit, waiting, "the promotion");

    let all: Vec<Request> = audit.since(start).0;
    let asked = about_rollouts(&all);
    let writes = asked.iter().filter(|request| request.writes()).count();
    let mut verbs: BTreeMap<&str, usize> = BTreeMap::new();
    for request in &asked {
        *verbs.entry(request.verb.as_str()).or_default() += 1;
    }
    announce(&format!(
        "counted: a rollout with its promotion: {verbs:?}; {:?}; log {start} to {end}",
        tally(asked.clone())
    ));
    assert!(asked.len() <= MOST, "{} requests: {:#?}", asked.len(), tally(asked));
    assert!(asked.len() - writes <= MOST_READS, "{} reads: {:#?}", asked.len() - writes, tally(asked));
}
