//! HTTP/1.1 over TLS and nothing else.

use std::time::Duration;

use interlock::server::limits::Limits;
use rstest::rstest;

use crate::peer::{Peer, connect, connect_with, trusting};
use crate::world::{patient, world};

/// Waits for the rest of a request for a while only.
fn closing() -> Limits {
    let limit = Duration::from_secs(5);
    Limits { headers: limit, body: limit, idle: limit, ..patient() }
}

#[tokio::test]
async fn http2_is_not_on_offer() {
    let world = world(closing()).await;
    let error = connect_with(&world, trusting(&world, &["h2"])).await.expect_err("no protocol in common");
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    // As the API server asks on loopback: it takes what there is.
    let stream = connect_with(&world, trusting(&world, &["h2", "http/1.1"])).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(Peer::over(stream).post("/mutate", "{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn an_http2_preface_is_refused() {
    let world = world(closing()).await;
    let mut peer = Peer::over(connect_with(&world, trusting(&world, &[])).await.unwrap());
    peer.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let rest = peer.closed().await;
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 4"), "{rest:?}");
}

/// Requests that two readers might cut differently: at most one answer, then the end, so that
/// nothing after the first cut is ever taken for a request.
#[rstest]
#[case::both_lengths("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")]
#[case::two_lengths("Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}")]
#[case::signed_length("Content-Length: +2\r\n\r\n{}")]
#[case::folded("Content-Length: 2\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n{}")]
#[case::space_before_colon("Content-Length : 2\r\n\r\n{}")]
#[case::unknown_coding("Transfer-Encoding: chunked, xchunked\r\n\r\n0\r\n\r\n")]
#[case::bad_chunk("Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n")]
#[tokio::test]
async fn ambiguous_requests_end_the_connection(#[case] headers: &str) {
    let world = world(closing()).await;
    let mut peer = connect(&world).await;
    let second =
        "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let first = "POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n";
    peer.send(format!("{first}{headers}{second}")).await.unwrap();
    let answers = peer.closed().await;
    assert!(answers.matches("HTTP/1.1 ").count() <= 1, "{answers}");
    let length_is_clear = headers.ends_with("chunked\r\n\r\n0\r\n\r\n") && !headers.contains("xchunked");
    assert!(length_is_clear || !answers.contains("200 OK"), "{answers}");
}
