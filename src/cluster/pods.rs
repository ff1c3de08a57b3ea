//! Asks a pod: one GET at its own address, which follows no redirect.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use interlock_core::reconcile::{PodAnswer, PodRequest, PodResponse};

use super::pod_dialer;

/// From the first packet to the last byte.
const DEADLINE: Duration = Duration::from_secs(2);
/// Kong answers with some ten kilobytes.
const LARGEST: usize = 1 << 20;

/// The answer of a pod, or why there is none, as what the pod does.
pub async fn ask(request: &PodRequest) -> PodAnswer {
    let address = SocketAddr::new(pod_address(&request.address)?, request.port);
    match tokio::time::timeout(DEADLINE, get(address, request.path)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("does not answer within {} s", DEADLINE.as_secs())),
    }
}

/// The address as one that a pod can have. Who may write the status of a pod decides on the text; it names
/// neither this process's own host nor the metadata service of a cloud.
fn pod_address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| "has no valid IP address".to_owned())?;
    let local = match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    };
    let canonical = address.to_canonical();
    match local || canonical.is_unspecified() || canonical.is_multicast() {
        true => Err(format!("has the address {address}, which no pod can have")),
        false => Ok(address),
    }
}

async fn get(address: SocketAddr, path: &str) -> PodAnswer {
    let stream = pod_dialer::dial(address).await.map_err(|e| format!("cannot be reached: {e}"))?;
    let broken = |error: hyper::Error| format!("broke the connection off: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path)
        .header(header::HOST, address.ip().to_string())
        .header(header::ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|error| format!("cannot be asked: {error}"))?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        let body = body.map_err(|_| "answers more than it should".to_owned())?;
        Ok(PodResponse { status, body: body.to_bytes().as_ref().into() })
    };
    let answer = answer.await;
    connection.abort();
    answer
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[rstest]
    #[case::pod("10.244.0.7", true)]
    #[case::pod_of_ipv6("fd00:10:244::7", true)]
    #[case::name("localhost", false)]
    #[case::with_port("10.244.0.7:80", false)]
    #[case::empty("", false)]
    #[case::own_host("127.0.0.1", false)]
    #[case::own_host_of_ipv6("::1", false)]
    #[case::own_host_mapped("::ffff:127.0.0.1", false)]
    #[case::any("0.0.0.0", false)]
    #[case::metadata_service("169.254.169.254", false)]
    #[case::link_local("fe80::1", false)]
    #[case::group("224.0.0.1", false)]
    fn only_an_address_of_a_pod_is_dialled(#[case] address: &str, #[case] expected: bool) {
        assert_eq!(pod_address(address).is_ok(), expected);
    }

    /// A server that answers one request with this text, and then says nothing.
    async fn server(answer: String) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            std::future::pending::<()>().await;
        });
        address
    }

    fn response(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nLocation: /elsewhere\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[rstest]
    #[case::ready("200 OK", 200)]
    #[case::redirect("301 Moved Permanently", 301)]
    #[case::unready("503 Service Unavailable", 503)]
    #[tokio::test]
    async fn the_first_answer_counts(#[case] status: &str, #[case] expected: u16) {
        let answer = get(server(response(status, "{}")).await, "/status/ready").await.unwrap();
        assert_eq!((answer.status, answer.body.as_ref()), (expected, b"{}".as_slice()));
    }

    #[tokio::test]
    async fn a_body_has_a_limit() {
        let fits = get(server(response("200 OK", &"x".repeat(LARGEST))).await, "/").await;
        assert_eq!(fits.unwrap().body.len(), LARGEST);
        let more = get(server(response("200 OK", &"x".repeat(LARGEST + 1))).await, "/").await;
        assert_eq!(more, Err("answers more than it should".to_owned()));
    }

    #[tokio::test]
    async fn a_closed_port_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(get(address, "/").await.unwrap_err().starts_with("cannot be reached"));
    }
}
