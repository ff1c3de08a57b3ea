//! Callers that do nothing, or little of it at a time.

use std::time::Duration;

use interlock::server::limits::Limits;
use interlock::telemetry::metrics::Cap;
use tokio::net::TcpStream;

use crate::peer::{Peer, connect, connect_from, request};
use crate::world::{CAP, patient, until, world};

/// The limit that a test is about.
const SHORT: Duration = Duration::from_millis(300);

/// A limit that no test waits for.
const FOREVER: Duration = Duration::from_secs(600);

#[tokio::test]
async fn no_handshake_is_not_waited_for() {
    let world = world(Limits { handshake: Duration::from_secs(2), ..patient() }).await;
    let mut silent = Peer::over(TcpStream::connect(world.address).await.unwrap());
    silent.closed().await;
    assert_eq!(world.metrics.refusals(Cap::HandshakeDeadline), 1);
    let mut honest = connect(&world).await;
    assert_eq!(honest.post("/mutate", "{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn headers_that_trickle_do_not_hold_a_connection() {
    let world = world(Limits { headers: SHORT, ..patient() }).await;
    let mut slow = connect(&world).await;
    slow.send("POST /mutate HTTP/1.1\r\n").await.unwrap();
    for _ in 0..50 {
        if slow.send("X-A: b\r\n").await.is_err() {
            break;
        }
        // A caller that trickles: well below any deadline between two bytes, beyond it in all.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    slow.closed().await;
    assert_eq!(world.metrics.refusals(Cap::HeadersDeadline), 1);
}

#[tokio::test]
async fn a_body_that_trickles_is_answered_408() {
    let world = world(Limits { body: SHORT, ..patient() }).await;
    let mut slow = connect(&world).await;
    slow.send(
        "POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    )
    .await
    .unwrap();
    let answer = slow.answer().await.unwrap();
    assert_eq!((answer.status, answer.closes()), (408, true), "{answer:?}");
    assert_eq!(world.metrics.refusals(Cap::BodyDeadline), 1);
}

#[tokio::test]
async fn an_idle_connection_outlives_every_other_deadline() {
    let world = world(Limits { headers: SHORT, body: SHORT, ..patient() }).await;
    let mut pooled = connect(&world).await;
    for _ in 0..3 {
        assert_eq!(pooled.post("/validate", "{}").await.unwrap().body, "allowed");
        // Longer than every deadline but that of idle connections.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // Half a request is not idle, however long the connection was.
    pooled.send("POST /validate HTTP/1.1\r\n").await.unwrap();
    pooled.closed().await;
    assert_eq!(world.metrics.refusals(Cap::HeadersDeadline), 1);
}

#[tokio::test]
async fn an_idle_connection_is_closed_at_its_limit() {
    let world = world(Limits { idle: Duration::from_secs(2), ..patient() }).await;
    let mut pooled = connect(&world).await;
    assert_eq!(pooled.post("/validate", "{}").await.unwrap().status, 200);
    assert_eq!(pooled.closed().await, "");
    assert_eq!(world.metrics.refusals(Cap::Idle), 1);
}

/// The API server pools connections for 90 s; it must be the first to let go.
#[test]
fn the_idle_limit_is_above_the_pool_of_the_api_server() {
    assert!(Limits::default().idle >= Duration::from_secs(120));
}

#[tokio::test]
async fn who_never_asks_is_let_go_early_in_a_crowd_and_only_then() {
    let world =
        world(Limits { connections: 7, idle: FOREVER, idle_unused_when_crowded: SHORT, ..patient() }).await;
    let mut alone = connect(&world).await;
    let mut spare = connect(&world).await;
    // Longer than it would be borne in a crowd.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(alone.post("/mutate", "{}").await.unwrap().status, 200, "not crowded");
    let mut crowd = Vec::new();
    for _ in 0..5 {
        crowd.push(connect_from(&world, "127.0.0.2").await.unwrap());
    }
    until("most of them are let go", async || world.metrics.refusals(Cap::Idle) >= 3).await;
    assert_eq!(alone.post("/mutate", "{}").await.unwrap().status, 200, "it has asked before");
    assert_eq!(spare.post("/mutate", "{}").await.unwrap().status, 200, "a review came from its address");
}

#[tokio::test]
async fn many_slow_callers_do_not_keep_an_honest_one_waiting() {
    let world = world(Limits { handshake: FOREVER, headers: FOREVER, ..patient() }).await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        slow.push(TcpStream::connect(world.address).await.unwrap());
    }
    for _ in 0..20 {
        let mut half = connect(&world).await;
        half.send(&request("/mutate", "", "{}")[..30]).await.unwrap();
    }
    let honest = async { connect(&world).await.post("/mutate", "{}").await.unwrap().status };
    assert_eq!(tokio::time::timeout(CAP, honest).await, Ok(200));
}
