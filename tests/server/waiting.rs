//! An OperatorVersion that the cache does not show yet is waited for, by no call.

use std::time::{Duration, Instant};

use crate::peer::{connect, request};
use crate::world::{patient, world};

/// The longest wait, however long the caller would bear it.
const LONGEST: Duration = Duration::from_secs(2);

#[tokio::test]
async fn the_wait_ends_with_the_arrival() {
    let world = world(patient()).await;
    let mut peer = connect(&world).await;
    peer.send(request("/mutate?timeout=30s", "", "wait")).await.unwrap();
    world.is_waited_for(1).await;
    // Something else arrives: asked again, and still waiting.
    world.tick();
    world.is_waited_for(2).await;
    world.arrive();
    assert_eq!(peer.answer().await.unwrap().body, "allowed", "and not only at the end of the wait");
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
