//! Caps: what is refused, with which answer, and that the rest goes on.

use futures::future::select_all;
use interlock::server::limits::Limits;
use interlock::telemetry::metrics::Cap;
use rstest::rstest;
use tokio::net::TcpStream;

use crate::peer::{Peer, connect, connect_from, request};
use crate::world::{CAP, World, patient, until, world};

#[tokio::test]
async fn a_body_that_announces_too_much_is_answered_413() {
    let world = world(Limits { body_bytes: 1000, ..patient() }).await;
    let mut peer = connect(&world).await;
    let answer = peer.post("/mutate", &"a".repeat(1001)).await.unwrap();
    assert_eq!((answer.status, answer.closes()), (413, true));
    assert!(answer.body.contains("1000 bytes"), "{answer:?}");
    assert_eq!(connect(&world).await.post("/mutate", &"a".repeat(1000)).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_body_without_end_is_answered_413_while_it_streams() {
    let world = world(Limits { body_bytes: 100_000, ..patient() }).await;
    let mut peer = connect(&world).await;
    let head = "POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    peer.send(head).await.unwrap();
    let chunk = format!("2000\r\n{}\r\n", "a".repeat(0x2000));
    for _ in 0..20 {
        peer.send(&chunk).await.unwrap();
    }
    // Not ended, and answered.
    assert_eq!(peer.answer().await.unwrap().status, 413);
    assert_eq!(world.metrics.refusals(Cap::BodyBytes), 1);
}

#[tokio::test]
async fn too_many_bytes_in_memory_are_answered_429() {
    let world = world(Limits { in_flight_bytes: 1000, ..patient() }).await;
    let mut holder = connect(&world).await;
    // All but the last byte: what has come of it is in memory for as long as that is missing.
    // It is less than half of the memory: what stalls with more gives way.
    let mut held = request("/mutate", "", &"a".repeat(450));
    let last = held.split_off(held.len() - 1);
    holder.send(held).await.unwrap();
    let refused = tokio::time::timeout(CAP, async {
        loop {
            let answer = connect(&world).await.post("/mutate", &"a".repeat(600)).await.unwrap();
            if answer.status != 200 {
                return answer;
            }
        }
    });
    let refused = refused.await.expect("the first body is in memory at some time");
    assert_eq!((refused.status, refused.closes()), (429, true));
    assert!(refused.head.to_ascii_lowercase().contains("retry-after: 1"), "{refused:?}");
    holder.send(last).await.unwrap();
    assert_eq!(holder.answer().await.unwrap().status, 200);
    assert_eq!(connect(&world).await.post("/mutate", &"a".repeat(900)).await.unwrap().status, 200);
}

#[rstest]
#[case::encoding("Content-Encoding: gzip\r\n", "application/json", 415, "Content-Encoding")]
#[case::identity("Content-Encoding: identity\r\n", "application/json; charset=utf-8", 200, "allowed")]
#[case::type_("", "text/plain", 415, "application/json")]
#[case::no_type("", "", 415, "application/json")]
#[tokio::test]
async fn types_and_encodings(
    #[case] headers: &str,
    #[case] content_type: &str,
    #[case] status: u16,
    #[case] text: &str,
) {
    let world = world(patient()).await;
    let mut peer = connect(&world).await;
    let request = format!(
        "POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\n{headers}Content-Length: 2\r\n\r\n{{}}"
    );
    peer.send(request).await.unwrap();
    let answer = peer.answer().await.unwrap();
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(answer.body.contains(text), "{answer:?}");
}

/// Whoever is answered while it still sends sees a reset, and the API server does not repeat that.
#[rstest]
#[case::not_in_sync("application/json", 503)]
#[case::not_json("text/plain", 415)]
#[tokio::test]
async fn a_large_body_is_read_before_it_is_refused(#[case] content_type: &str, #[case] status: u16) {
    let world = world(Limits { discard: CAP, ..patient() }).await;
    let gate = world.readiness.gate("instances");
    if status != 503 {
        gate.pass();
    }
    let mut peer = connect(&world).await;
    let body = "a".repeat(4 * 1024 * 1024);
    let head = format!(
        "POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    peer.send(head + &body).await.unwrap();
    let answer = peer.answer().await.unwrap();
    assert_eq!((answer.status, answer.closes()), (status, true), "{answer:?}");
}

#[tokio::test]
async fn a_panic_is_its_own_500_and_nobody_elses() {
    let world = world(patient()).await;
    let mut other = connect(&world).await;
    other.send(request("/mutate", "", "wait")).await.unwrap();
    let mut peer = connect(&world).await;
    assert_eq!(peer.post("/mutate", "panic").await.unwrap().status, 500);
    assert_eq!(peer.post("/mutate", "{}").await.unwrap().status, 200, "even the same connection goes on");
    world.arrive();
    assert_eq!(other.answer().await.unwrap().status, 200);
    assert_eq!(world.metrics.panics(), 1);
}

#[tokio::test]
async fn what_is_no_review_is_answered_400_and_other_paths_404() {
    let world = world(patient()).await;
    let answer = connect(&world).await.post("/mutate", "bad").await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (400, "this is no review\n"));
    assert_eq!(connect(&world).await.post("/elsewhere", "{}").await.unwrap().status, 404);
    let mut peer = connect(&world).await;
    peer.send("GET /mutate HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    assert_eq!(peer.answer().await.unwrap().status, 405);
}

#[tokio::test]
async fn without_tls_there_is_nothing_to_talk_to() {
    let world = world(patient()).await;
    let mut plain = Peer::over(TcpStream::connect(world.address).await.unwrap());
    plain.send("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    assert!(!plain.closed().await.contains("HTTP/1.1 200"));
}

fn in_memory(world: &World) -> usize {
    let text = world.metrics.encode(0);
    let line = text.lines().find_map(|line| line.strip_prefix("interlock_admission_in_flight_bytes "));
    line.expect("the gauge").parse().unwrap()
}

/// Bodies that stop on the way hold the memory of all for a second.
#[tokio::test]
async fn bodies_that_stall_give_back_what_they_have() {
    let limits = Limits { in_flight_bytes: 1000, in_flight_bytes_per_address: 600, ..patient() };
    let world = world(limits).await;
    let mut stalled = Vec::new();
    for address in ["127.0.0.2", "127.0.0.3"] {
        let mut peer = connect_from(&world, address).await.unwrap();
        let mut held = request("/mutate", "", &format!("{{\"a\":\"{}\"}}", "x".repeat(490)));
        held.truncate(held.len() - 1);
        peer.send(held).await.unwrap();
        stalled.push(peer);
    }
    until("both are in memory", async || in_memory(&world) > 900).await;
    let mut peer = connect(&world).await;
    let answer = peer.post("/mutate", &format!("{{\"a\":\"{}\"}}", "x".repeat(90))).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    // The other one is left alone where what the first gave back is enough.
    let (said, ..) = select_all(stalled.iter_mut().map(|peer| Box::pin(peer.answer()))).await;
    assert_eq!(said.unwrap().status, 408);
}

#[tokio::test]
async fn one_address_leaves_memory_to_others() {
    let limits = Limits { in_flight_bytes: 1000, in_flight_bytes_per_address: 400, ..patient() };
    let world = world(limits).await;
    let mut peer = connect_from(&world, "127.0.0.2").await.unwrap();
    let body = format!("{{\"a\":\"{}\"}}", "x".repeat(450));
    assert_eq!(peer.post("/mutate", &body).await.unwrap().status, 429);
}
