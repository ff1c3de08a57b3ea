//! Checks `Host` where every caller that reaches a port of this machine may read, against DNS rebinding: a foreign page could
//! resolve its own name to this address, and read what a browser on this machine may read.

use std::net::IpAddr;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};

/// Answers requests that name this machine.
pub async fn only(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_loopback(host) {
        return next.run(request).await;
    }
    let text = "this port is answered at 127.0.0.1, [::1] and localhost only; from another machine use kubectl \
                port-forward\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("localhost", true)]
    #[case("localhost:8080", true)]
    #[case("127.0.0.1:8080", true)]
    #[case("127.0.0.2", true)]
    #[case("[::1]", true)]
    #[case("[::1]:8080", true)]
    #[case("[::1]:", false)]
    #[case("10.0.0.1:8080", false)]
    #[case("localhost.evil.example:8080", false)]
    #[case("127.0.0.1.evil.example", false)]
    #[case("evil.example:8080", false)]
    #[case("", false)]
    fn a_name_of_this_machine(#[case] host: &str, #[case] loopback: bool) {
        assert_eq!(is_loopback(host), loopback);
    }
}
