//! Asks a pod: one GET at its own address, which follows no redirect.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use interlock_core::reconcile::{PodAnswer, PodRequest, PodResponse};
use interlock_kong::api::listing::KongListing;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::pod_dialer;

/// From the first packet to the last byte.
const DEADLINE: Duration = Duration::from_secs(2);
/// Kong answers with some ten kilobytes.
const LARGEST: usize = 1 << 20;
/// All pages of a list.
const LISTED: Duration = Duration::from_secs(10);

/// The answer of a pod, or why there is none, as what the pod does. `tls` is what it is asked with over TLS.
pub async fn ask(request: &PodRequest, tls: Option<Arc<ClientConfig>>) -> PodAnswer {
    let address = SocketAddr::new(pod_address(&request.address)?, request.port);
    ask_at(address, request, tls).await
}

async fn ask_at(address: SocketAddr, request: &PodRequest, tls: Option<Arc<ClientConfig>>) -> PodAnswer {
    if !request.all_pages {
        return ask_for(address, request, request.path, tls).await;
    }
    match tokio::time::timeout(LISTED, list(address, request, tls)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("does not list what it has within {} s", LISTED.as_secs())),
    }
}

/// Reads a list to its end, or to the first answer that is none.
async fn list(address: SocketAddr, request: &PodRequest, tls: Option<Arc<ClientConfig>>) -> PodAnswer {
    let mut listing = KongListing::default();
    loop {
        let answer = ask_for(address, request, &listing.next(request.path), tls.clone()).await?;
        if answer.status != 200 {
            return Ok(answer);
        }
        if !listing.take(&answer.body).map_err(|error| error.to_string())? {
            return Ok(PodResponse { body: listing.into_json().into(), ..answer });
        }
    }
}

async fn ask_for(
    address: SocketAddr,
    request: &PodRequest,
    path: &str,
    tls: Option<Arc<ClientConfig>>,
) -> PodAnswer {
    let answer = async {
        let stream = pod_dialer::dial(address).await.map_err(|e| format!("cannot be reached: {e}"))?;
        let Some(name) = &request.tls else { return get(stream, address.ip(), path).await };
        let tls = tls.ok_or("needs a client certificate, and Interlock has none")?;
        let name = ServerName::try_from(name.clone()).map_err(|_| "has no valid name".to_owned())?;
        let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(|error| refused(&error))?;
        get(stream, address.ip(), path).await
    };
    match tokio::time::timeout(DEADLINE, answer).await {
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

/// Why there is no TLS connection.
fn refused(error: &std::io::Error) -> String {
    let problem = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let said = match problem {
        Some(rustls::Error::InvalidCertificate(_)) => "has a certificate that is not of Interlock's CA",
        Some(rustls::Error::AlertReceived(_)) => "does not accept Interlock's certificate",
        _ => "does not speak TLS",
    };
    said.to_owned()
}

async fn get<S>(stream: S, host: IpAddr, path: &str) -> PodAnswer
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| format!("broke the connection off: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path)
        .header(header::HOST, host.to_string())
        .header(header::ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|error| format!("cannot be asked: {error}"))?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let server = answer.headers().get(header::SERVER).and_then(|server| server.to_str().ok());
        let server = server.map(str::to_owned);
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        let body = body.map_err(|_| "answers more than it should".to_owned())?;
        Ok(PodResponse { status, server, body: body.to_bytes().as_ref().into() })
    };
    let answer = answer.await;
    connection.abort();
    answer
}

#[cfg(test)]
mod tests {
    use interlock_core::certificate::CertificateRequest;
    use jiff::Timestamp;
    use rstest::rstest;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::server::WebPkiClientVerifier;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::cluster::certificates::signing::SigningAuthority;
    use crate::cluster::certificates::stored::certificates;

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

    async fn get(address: SocketAddr, path: &str) -> PodAnswer {
        let stream = TcpStream::connect(address).await.map_err(|e| format!("cannot be reached: {e}"))?;
        super::get(stream, address.ip(), path).await
    }

    fn response(status: &str, body: &str) -> String {
        format!(
            "HTTP/1.1 {status}\r\nServer: kong/3.9.1\r\nLocation: /elsewhere\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    #[rstest]
    #[case::ready("200 OK", 200)]
    #[case::redirect("301 Moved Permanently", 301)]
    #[case::unready("503 Service Unavailable", 503)]
    #[tokio::test]
    async fn the_first_answer_counts(#[case] status: &str, #[case] expected: u16) {
        let answer = get(server(response(status, "{}")).await, "/status/ready").await.unwrap();
        assert_eq!((answer.status, answer.body.as_ref()), (expected, b"{}".as_slice()));
        assert_eq!(answer.server.as_deref(), Some("kong/3.9.1"));
    }

    /// A server of TLS with a certificate of `by`, for clients of the same CA; it answers one request.
    async fn server_of(by: &SigningAuthority) -> SocketAddr {
        let pair = by.sign(&request().1, Timestamp::now()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(certificates(by.bundle().as_bytes()));
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_client_cert_verifier(clients.build().unwrap());
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let config = builder.with_single_cert(certificates(pair.certificate.as_bytes()), key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(stream).await
            else {
                return;
            };
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response("200 OK", "{}").as_bytes()).await;
            std::future::pending::<()>().await;
        });
        address
    }

    /// A request over TLS, and the certificate that it expects.
    fn request() -> (PodRequest, CertificateRequest) {
        let names = vec!["*.admin.kong.svc".to_owned()];
        let asked = CertificateRequest {
            secret: serde_json::Value::Null,
            common_name: "edge".to_owned(),
            names,
            keeps_found: false,
            is_awaited: false,
        };
        let tls = Some("pod.admin.kong.svc".to_owned());
        (PodRequest { address: "10.0.0.1".to_owned(), port: 8444, tls, path: "/", all_pages: false }, asked)
    }

    fn client(of: &SigningAuthority) -> Option<Arc<ClientConfig>> {
        Some(Arc::new(of.client_config().unwrap()))
    }

    #[tokio::test]
    async fn over_tls_both_show_a_certificate_of_the_ca() {
        let now = Timestamp::now();
        let (ours, others) = (SigningAuthority::new(now).unwrap(), SigningAuthority::new(now).unwrap());
        let (asked, _) = request();
        let answer = ask_at(server_of(&ours).await, &asked, client(&ours)).await.unwrap();
        assert_eq!((answer.status, answer.server.as_deref()), (200, Some("kong/3.9.1")));
        let of_another = ask_at(server_of(&others).await, &asked, client(&ours)).await;
        assert_eq!(of_another, Err("has a certificate that is not of Interlock's CA".to_owned()));
        let elsewhere = PodRequest { tls: Some("pod.other.kong.svc".to_owned()), ..asked.clone() };
        let of_another = ask_at(server_of(&ours).await, &elsewhere, client(&ours)).await;
        assert_eq!(of_another, Err("has a certificate that is not of Interlock's CA".to_owned()));
        let plain = ask_at(server(response("200 OK", "{}")).await, &asked, client(&ours)).await;
        assert_eq!(plain, Err("does not speak TLS".to_owned()));
        let without = ask_at(server_of(&ours).await, &asked, None).await;
        assert_eq!(without, Err("needs a client certificate, and Interlock has none".to_owned()));
    }

    #[tokio::test]
    async fn a_body_has_a_limit() {
        let fits = get(server(response("200 OK", &"x".repeat(LARGEST))).await, "/").await;
        assert_eq!(fits.unwrap().body.len(), LARGEST);
        let more = get(server(response("200 OK", &"x".repeat(LARGEST + 1))).await, "/").await;
        assert_eq!(more, Err("answers more than it should".to_owned()));
    }

    /// A server that answers one request after the other with these texts.
    async fn pages(answers: Vec<String>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
            std::future::pending::<()>().await;
        });
        address
    }

    fn list_request() -> PodRequest {
        PodRequest { address: "10.0.0.1".to_owned(), port: 8444, tls: None, path: "/routes", all_pages: true }
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end() {
        let first =
            response("200 OK", r#"{"data":[{"name":"a"}],"offset":"1","next":"http://127.0.0.1:1/x"}"#);
        let last = response("200 OK", r#"{"data":[{"name":"b"},{}],"next":null}"#);
        let answer = ask_at(pages(vec![first.clone(), last]).await, &list_request(), None).await.unwrap();
        assert_eq!((answer.status, answer.body.as_ref()), (200, br#"["a","b",null]"#.as_slice()));
        let refused = pages(vec![first.clone(), response("401 Unauthorized", "{}")]).await;
        assert_eq!(ask_at(refused, &list_request(), None).await.unwrap().status, 401);
        let garbage = pages(vec![first, response("200 OK", "<html>")]).await;
        let answer = ask_at(garbage, &list_request(), None).await;
        assert_eq!(answer, Err("answers no list of Kong's Admin API".to_owned()));
    }

    #[tokio::test]
    async fn a_closed_port_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(get(address, "/").await.unwrap_err().starts_with("cannot be reached"));
    }
}
