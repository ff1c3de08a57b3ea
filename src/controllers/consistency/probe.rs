//! Probes the configuration of a pod: one GET at its own address, which follows no redirect.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use interlock_core::kinds::data_plane::flavor::running::pod::AdminEndpoint;
use interlock_core::kinds::data_plane::flavor::running::report::StatusReport;

/// From the first packet to the last byte.
const DEADLINE: Duration = Duration::from_secs(2);
/// Kong answers with some ten kilobytes.
const LARGEST: usize = 1 << 20;

/// The report of a pod's Admin API, or why there is none.
pub async fn report(endpoint: &AdminEndpoint) -> Result<StatusReport, String> {
    let AdminEndpoint { address, port } = endpoint;
    let asked = tokio::time::timeout(DEADLINE, get(address, *port)).await;
    let body = match asked {
        Ok(answer) => answer.map_err(|why| format!("its Admin API (port {port}) {why}"))?,
        Err(_) => {
            return Err(format!(
                "its Admin API (port {port}) does not answer within {} s",
                DEADLINE.as_secs()
            ));
        }
    };
    StatusReport::read(&body)
}

async fn get(address: &str, port: u16) -> Result<Bytes, String> {
    let stream = TcpStream::connect((address, port)).await.map_err(|e| format!("cannot be reached: {e}"))?;
    let broken = |error: hyper::Error| format!("broke the connection off: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let connection = tokio::spawn(connection);
    let request = Request::get("/")
        .header(header::HOST, address)
        .header(header::ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|error| format!("cannot be asked: {error}"))?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(broken)?;
        // A redirect counts as any other status that is not 200.
        if answer.status() != StatusCode::OK {
            return Err(format!("answers {}", answer.status().as_u16()));
        }
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        body.map(|body| body.to_bytes()).map_err(|_| "answers more than it should".to_owned())
    };
    let answer = answer.await;
    connection.abort();
    answer
}
