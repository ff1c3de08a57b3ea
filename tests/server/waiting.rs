//! An OperatorVersion that the cache does not show yet is waited for, by no call.

use std::time::{Duration, Instant};

use interlock::telemetry::metrics::Cap;

use crate::peer::{connect, request};
use crate::world::{patient, until, world};

/// The longest wait, however long the caller would bear it.
const LONGEST: Duration = Duration::from_secs(2);

#[tokio::test]
async fn the_wait_ends_with_the_arrival_and_nothing_else_wakes_it() {
    let world = world(patient()).await;
    let mut peer = connect(&world).await;
    peer.send(request("/mutate?timeout=30s", "", "wait")).await.unwrap();
    world.is_waited_for(2).await;
    for _ in 0..100 {
        world.something_else_arrives();
        tokio::task::yield_now().await;
    }
    world.arrive();
    assert_eq!(peer.answer().await.unwrap().body, "allowed", "and not only at the end of the wait");
    assert_eq!(world.told(), 2, "it was asked again for what it does not wait for");
}

/// The row: 45 waiting creates of 1.4 MB by one tenant answer everybody else with 429.
#[tokio::test]
async fn the_waiting_of_one_namespace_leaves_room_for_the_others() {
    let world = world(patient()).await;
    let body = format!("wait:tenant {}", "x".repeat(1_400_000));
    let mut waiting = Vec::new();
    for _ in 0..45 {
        let mut peer = connect(&world).await;
        peer.send(request("/mutate?timeout=30s", "", &body)).await.unwrap();
        waiting.push(peer);
    }
    // Two of 1.4 MB may wait: the other 43 are decided at once, with what is said at the end of a wait.
    until("the surplus is decided", async || world.metrics.refusals(Cap::Waiting) == 43).await;
    let neighbour = format!("wait:neighbour {}", "x".repeat(3_000_000));
    let mut other = connect(&world).await;
    other.send(request("/mutate?timeout=30s", "", &neighbour)).await.unwrap();
    let large = "x".repeat(6 * 1024 * 1024);
    assert_eq!(connect(&world).await.post("/mutate", &large).await.unwrap().status, 200);
    world.arrive();
    assert_eq!(other.answer().await.unwrap().body, "allowed", "a neighbour may wait");
    let mut decided = [0, 0];
    for mut peer in waiting {
        let answer = peer.answer().await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        decided[usize::from(answer.body == "exhausted")] += 1;
    }
    assert_eq!(decided, [2, 43]);
    assert_eq!(world.metrics.refusals(Cap::InFlightBytes), 0);
}

#[tokio::test]
async fn the_wait_ends_at_half_of_the_callers_timeout() {
    let world = world(patient()).await;
    let mut peer = connect(&world).await;
    let began = Instant::now();
    let answer = peer.post("/mutate?timeout=600ms", "wait").await.unwrap();
    assert_eq!(answer.body, "exhausted");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300) && took < LONGEST, "{took:?}");
}

#[tokio::test]
async fn the_wait_ends_after_two_seconds_whatever_the_caller_would_bear() {
    let world = world(patient()).await;
    let began = Instant::now();
    let answer = connect(&world).await.post("/mutate?timeout=30s", "wait").await.unwrap();
    assert_eq!(answer.body, "exhausted");
    let took = began.elapsed();
    assert!(
        took >= LONGEST && took < Duration::from_secs(15),
        "half of what the caller would bear: {took:?}"
    );
}
