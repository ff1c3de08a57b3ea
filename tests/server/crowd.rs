//! Many connections at once: which are kept, and that a new one is always taken.

use std::time::Duration;

use interlock::server::limits::Limits;
use interlock::telemetry::metrics::Cap;

use crate::peer::{Peer, connect, connect_from, request};
use crate::world::{CAP, World, patient, until, world};

/// Addresses that are not the API server's.
const TENANT: &str = "127.0.0.2";
const OTHER_TENANT: &str = "127.0.0.3";

async fn is_answered(peer: &mut Peer) -> bool {
    matches!(peer.post("/mutate", "{}").await, Ok(answer) if answer.status == 200)
}

async fn probed(world: &World, address: &str, count: usize) -> Vec<Peer> {
    let mut idle = Vec::new();
    for _ in 0..count {
        let mut peer = connect_from(world, address).await.unwrap();
        assert_eq!(peer.get("/livez").await.unwrap().status, 200);
        idle.push(peer);
    }
    idle
}

/// The row: 1,023 connections that each have asked for /livez, and no new one is accepted.
#[tokio::test]
async fn idle_connections_of_one_address_keep_nobody_out() {
    let world = world(Limits { connections: 100, ..patient() }).await;
    let mut pooled = connect(&world).await;
    assert!(is_answered(&mut pooled).await);
    let _idle = probed(&world, TENANT, 99).await;
    let mut new = tokio::time::timeout(CAP, connect(&world)).await.expect("it is accepted");
    assert!(is_answered(&mut new).await && is_answered(&mut pooled).await);
    assert_eq!(world.metrics.refusals(Cap::ConnectionsPerAddress), 99 - 64);
}

/// Every address stays below its cap, and together they fill the port.
#[tokio::test]
async fn idle_connections_of_many_addresses_give_way_before_those_of_reviews() {
    let world = world(Limits { connections: 40, ..patient() }).await;
    let mut pooled = connect(&world).await;
    assert!(is_answered(&mut pooled).await);
    let _idle = [probed(&world, TENANT, 20).await, probed(&world, OTHER_TENANT, 30).await];
    let mut new = tokio::time::timeout(CAP, connect(&world)).await.expect("it is accepted");
    assert!(is_answered(&mut new).await && is_answered(&mut pooled).await);
    assert!(world.metrics.refusals(Cap::Connections) > 0);
}

/// Forged reviews make connections look like the API server's: those of whoever has many go first.
#[tokio::test]
async fn forged_reviews_do_not_hold_the_port() {
    let limits = Limits { connections: 20, connections_per_address: 8, ..patient() };
    let world = world(limits).await;
    let mut pooled = connect(&world).await;
    assert!(is_answered(&mut pooled).await);
    let mut forged = Vec::new();
    for _ in 0..25 {
        let mut peer = connect_from(&world, TENANT).await.unwrap();
        assert!(is_answered(&mut peer).await);
        forged.push(peer);
    }
    let mut new = tokio::time::timeout(CAP, connect(&world)).await.expect("it is accepted");
    assert!(is_answered(&mut new).await && is_answered(&mut pooled).await);
}

#[tokio::test]
async fn bodies_that_do_not_come_give_way() {
    let world = world(Limits { connections: 10, ..patient() }).await;
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut peer = connect_from(&world, TENANT).await.unwrap();
        let mut held = request("/mutate", "", "{}");
        held.truncate(held.len() - 1);
        peer.send(held).await.unwrap();
        slow.push(peer);
    }
    let mut new = tokio::time::timeout(CAP, connect(&world)).await.expect("it is accepted");
    assert!(is_answered(&mut new).await);
}

/// An answer that nobody takes keeps its connection no longer than a body that does not come.
#[tokio::test]
async fn answers_that_nobody_reads_give_way() {
    let world = world(Limits { connections: 10, ..patient() }).await;
    let mut deaf = Vec::new();
    for _ in 0..10 {
        let mut peer = connect_from(&world, TENANT).await.unwrap();
        // More than the sockets hold.
        peer.send(request("/mutate", "", "large:20000000")).await.unwrap();
        deaf.push(peer);
    }
    let mut new = tokio::time::timeout(CAP, connect(&world)).await.expect("it is accepted");
    assert!(is_answered(&mut new).await);
}

/// Whoever has many reviews under way makes room for one of another address.
#[tokio::test]
async fn reviews_of_one_address_do_not_fill_the_port() {
    let world = world(Limits { connections: 12, ..patient() }).await;
    let mut waiting = Vec::new();
    for _ in 0..12 {
        let mut peer = connect_from(&world, TENANT).await.unwrap();
        peer.send(request("/mutate?timeout=30s", "", "wait")).await.unwrap();
        waiting.push(peer);
    }
    let mut new = tokio::time::timeout(CAP, connect(&world)).await.expect("it is accepted");
    assert!(is_answered(&mut new).await);
    world.arrive();
    let mut answered = 0;
    for peer in &mut waiting {
        answered += usize::from(peer.answer().await.is_ok_and(|answer| answer.status == 200));
    }
    assert_eq!(answered, 11, "one gave way");
}

/// The API server has a connection for each review that is under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_200_reviews_from_one_address_loses_none() {
    let world = world(patient()).await;
    let mut open = futures::future::join_all((0..200).map(|_| connect(&world))).await;
    for _ in 0..2 {
        for peer in &mut open {
            peer.send(request("/mutate?timeout=30s", "", "wait:burst")).await.unwrap();
        }
        until("they are all there", async || world.told() >= 200).await;
        world.arrive();
        for peer in &mut open {
            let answer = peer.answer().await.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    assert_eq!(world.metrics.refusals(Cap::Connections), 0);
    assert_eq!(world.metrics.refusals(Cap::ConnectionsPerAddress), 0);
}

/// What has carried a review is kept for as long as the API server pools it, and then gives way.
#[tokio::test]
async fn what_the_api_server_has_let_go_of_gives_way() {
    let pooled = Duration::from_millis(200);
    let limits = Limits { connections_per_address: 3, pooled, ..patient() };
    let world = world(limits).await;
    let mut kept = Vec::new();
    for _ in 0..6 {
        let mut peer = connect(&world).await;
        assert!(is_answered(&mut peer).await);
        kept.push(peer);
    }
    let (mut oldest, mut more) = (kept.remove(0), Vec::new());
    let comes = async {
        loop {
            let mut peer = connect(&world).await;
            assert!(is_answered(&mut peer).await);
            more.push(peer);
            // As the API server goes on making them.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        rest = oldest.closed() => assert_eq!(rest, ""),
        () = comes => {}
    }
    assert!(world.metrics.refusals(Cap::ConnectionsPerAddress) > 0);
    assert_eq!(world.metrics.refusals(Cap::Idle), 0);
}
