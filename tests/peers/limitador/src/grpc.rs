//! A service of gRPC with one method that takes and gives one message.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// gRPC's.
const UNAVAILABLE: HeaderValue = HeaderValue::from_static("14");

/// Answers a message.
pub type Decide = dyn Fn(&[u8]) -> anyhow::Result<Vec<u8>> + Send + Sync;

async fn answer(
    decide: Arc<Decide>,
    request: Request<Incoming>,
) -> Result<Response<impl Body<Data = Bytes, Error = Infallible>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    // A message of gRPC: whether it is compressed, its length, and itself.
    let decided = body.get(5..).context("no message").and_then(|message| decide(message));
    let mut trailers = HeaderMap::new();
    let mut frame = BytesMut::new();
    match decided {
        Ok(answer) => {
            frame.put_u8(0);
            frame.put_u32(answer.len() as u32);
            frame.put_slice(&answer);
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
        }
        Err(error) => {
            eprintln!("{error:#}");
            trailers.insert("grpc-status", UNAVAILABLE);
        }
    }
    let body = Full::new(frame.freeze()).with_trailers(async { Some(Ok(trailers)) });
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    Ok(response)
}

/// Serves at an address, for ever.
pub async fn serve(address: &str, decide: Arc<Decide>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| address.to_owned())?;
    loop {
        let (socket, _) = listener.accept().await?;
        let decide = decide.clone();
        let service = hyper::service::service_fn(move |request| answer(decide.clone(), request));
        tokio::spawn(async move {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            if let Err(error) = builder.serve_connection(TokioIo::new(socket), service).await {
                eprintln!("{error}");
            }
        });
    }
}
