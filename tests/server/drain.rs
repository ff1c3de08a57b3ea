//! The way out: say it, go on answering, close, and lose nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::peer::{connect, request};
use crate::world::{CAP, patient, until, world};

#[tokio::test]
async fn until_the_cache_is_in_sync_callers_are_sent_elsewhere() {
    let world = world(patient()).await;
    let gate = world.readiness.gate("instances");
    let answer = connect(&world).await.post("/mutate", "{}").await.unwrap();
    assert_eq!((answer.status, answer.closes()), (503, true));
    assert!(answer.head.to_ascii_lowercase().contains("retry-after: 1"), "{answer:?}");
    let mut prober = connect(&world).await;
    prober.send("GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let answer = prober.answer().await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (503, "[-]instances failed: not started\n"));
    gate.pass();
    prober.send("GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    assert_eq!(prober.answer().await.unwrap().body, "ok");
    assert_eq!(connect(&world).await.post("/mutate", "{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_and_closes_what_is_idle() {
    let world = world(patient()).await;
    let (mut busy, mut idle) = (connect(&world).await, connect(&world).await);
    assert_eq!(idle.post("/mutate", "{}").await.unwrap().status, 200);
    busy.send(request("/mutate?timeout=30s", "", "wait")).await.unwrap();
    world.is_waited_for(1).await;

    world.shutdown.begin();
    let mut late = connect(&world).await;
    late.send("GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let answer = late.answer().await.unwrap();
    assert_eq!((answer.status, answer.closes()), (503, true), "not ready any more");
    let answer = connect(&world).await.post("/mutate", "{}").await.unwrap();
    assert_eq!((answer.status, answer.closes()), (200, true), "but answering");

    world.shutdown.close();
    assert_eq!(idle.closed().await, "");
    assert!(!world.served.is_finished(), "a review is in flight");
    world.arrive();
    let answer = busy.answer().await.unwrap();
    assert_eq!((answer.status, answer.closes()), (200, true));
    tokio::time::timeout(CAP, world.served).await.expect("it ends").unwrap();
    assert!(tokio::net::TcpStream::connect(world.address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn a_caller_that_never_lets_go_does_not_hold_up_the_end_for_ever() {
    let world = world(patient()).await;
    let mut stuck = connect(&world).await;
    stuck.send("POST /mutate HTTP/1.1\r\nContent-").await.unwrap();
    world.shutdown.close();
    tokio::time::timeout(CAP, world.served).await.expect("it ends").unwrap();
}

/// Callers with a pool, as the API server has: none loses a call while a replica stops, as long
/// as it goes elsewhere when it is told to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_under_load_lose_nothing_while_it_stops() {
    let world = Arc::new(world(patient()).await);
    let (stopped, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (world, stopped, calls) = (world.clone(), stopped.clone(), calls.clone());
            tokio::spawn(async move {
                let mut peer = connect(&world).await;
                loop {
                    let answer = peer.post("/validate", "{}").await.expect("an answer");
                    assert_eq!(answer.status, 200);
                    calls.fetch_add(1, Ordering::Relaxed);
                    if answer.closes() {
                        if stopped.load(Ordering::SeqCst) {
                            return;
                        }
                        peer = connect(&world).await;
                    }
                }
            })
        })
        .collect();
    let calls_are =
        async |number: usize| until("callers call", async || calls.load(Ordering::Relaxed) >= number).await;
    calls_are(500).await;
    world.shutdown.begin();
    calls_are(calls.load(Ordering::Relaxed) + 50).await;
    stopped.store(true, Ordering::SeqCst);
    for caller in callers {
        tokio::time::timeout(CAP, caller).await.expect("it goes elsewhere").expect("without a lost call");
    }
    world.shutdown.close();
}
