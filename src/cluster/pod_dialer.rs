//! How a pod is dialled: at its own address.
//!
//! The fake pods of a demo have addresses that nothing reaches. The build feature `pod-proxy`, which the image never
//! has, dials them through the proxy that `INTERLOCK_POD_PROXY` names.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;

#[cfg(not(feature = "pod-proxy"))]
pub async fn dial(pod: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect(pod).await
}

/// Dials a pod, by the CONNECT of a proxy where one is named.
#[cfg(feature = "pod-proxy")]
pub async fn dial(pod: SocketAddr) -> io::Result<TcpStream> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let Ok(proxy) = std::env::var("INTERLOCK_POD_PROXY") else { return TcpStream::connect(pod).await };
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://")).await?;
    stream.write_all(format!("CONNECT {pod} HTTP/1.1\r\nHost: {pod}\r\n\r\n").as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte, as what follows the head is the pod's.
        head.push(stream.read_u8().await?);
        if head.len() > 4096 {
            return Err(io::Error::other("the proxy's answer has no end"));
        }
    }
    match head.starts_with(b"HTTP/1.1 200 ") {
        true => Ok(stream),
        false => Err(io::Error::other(String::from_utf8_lossy(&head).lines().next().unwrap_or_default())),
    }
}
