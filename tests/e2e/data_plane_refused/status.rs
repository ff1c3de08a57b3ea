//! A status that cannot be written: an Event says why, and the children are made all the same.

use rstest::rstest;

use super::*;
use crate::support::answering::Refusal;

#[rstest]
#[case::conflict(
    "conflicted",
    409,
    "Conflict",
    "Operation cannot be fulfilled on dataplanes: the object has been modified; please apply your changes to the latest version and try again",
    "Conflict"
)]
#[case::too_many(
    "crowded",
    429,
    "TooManyRequests",
    "the server has received too many requests and has asked us to try again later",
    "TooManyRequests"
)]
#[case::fails(
    "failing",
    500,
    "InternalError",
    "Internal error occurred: etcdserver: request timed out",
    "ApiServerUnavailable"
)]
fn a_status_that_cannot_be_written_is_told_of_in_an_event(
    #[case] name: &str,
    #[case] code: u16,
    #[case] status_reason: &'static str,
    #[case] message: &'static str,
    #[case] reason: &str,
) {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("no-status");
    let path = format!("/dataplanes/{name}/status");
    world.answering.refuse(Refusal { code, reason: status_reason, message, path: path.clone() });
    let plane = Plane::create(&ns, name, &spec());
    plane.await_child("deployments", &plane.deployment());
    plane.await_child("services", &plane.ingress());
    plane.await_one_event(reason, message);

    world.answering.pass(&path);
    plane.await_well();
    plane.await_one_event(reason, message);
}
