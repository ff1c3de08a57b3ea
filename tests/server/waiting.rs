//! An OperatorVersion that the cache does not show yet is waited for, by no call.

use std::time::{Duration, Instant};

use crate::peer::{connect, request};
use crate::world::{quick, world};

#[tokio::test]
async fn the_wait_ends_with_the_arrival() {
    let world = world(quick()).await;
    let mut peer = connect(&world).await;
    let began = Instant::now();
    peer.send(request("/mutate?timeout=30s", "", "wait")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Something else arrives: asked again, and still waiting.
    world.tick();
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.arrive();
    assert_eq!(peer.answer().await.unwrap().body, "allowed");
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_wait_ends_at_half_of_the_callers_timeout() {
    let world = world(quick()).await;
    let began = Instant::now();
    let answer = connect(&world).await.post("/mutate?timeout=600ms", "wait").await.unwrap();
    assert_eq!(answer.body, "exhausted");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(600), "{took:?}");
}

#[tokio::test]
async fn the_wait_ends_after_two_seconds_whatever_the_caller_would_bear() {
    let world = world(quick()).await;
    let began = Instant::now();
    let answer = connect(&world).await.post("/mutate?timeout=30s", "wait").await.unwrap();
    assert_eq!(answer.body, "exhausted");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(3), "{took:?}");
}
