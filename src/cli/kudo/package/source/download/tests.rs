use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use axum::body::Body;
use rstest::rstest;

use super::*;
use crate::cli::kudo::package::source::server::Server;

fn get(downloads: &mut Downloads, url: &str, most: usize) -> Result<String, String> {
    let file = downloads.get(&address(url).unwrap(), most);
    file.map(|file| String::from_utf8(file).unwrap()).map_err(|error| error.text())
}

fn answered(status: u16, location: &str) -> Response<Body> {
    Response::builder().status(status).header(header::LOCATION, location).body(Body::empty()).unwrap()
}

#[test]
fn a_file_is_downloaded_over_redirects() {
    let server = Server::answering(|path| match path {
        "/a" => answered(302, "/b/"),
        "/b/" => answered(308, "c"),
        _ => answered(404, ""),
    });
    server.put("/b/c", "content");
    let mut downloads = Downloads::new().unwrap();
    assert_eq!(get(&mut downloads, &server.url("/a"), 7).unwrap(), "content");
    assert_eq!(*server.asked.lock().unwrap(), ["/a", "/b/", "/b/c"]);
}

#[rstest]
#[case::gone("/gone", "why:   the answer is 404 Not Found\n  next:  check the address: there is nothing")]
#[case::forbidden("/closed", "why:   the answer is 401 Unauthorized\n  next:  download it with a program")]
#[case::circle("/circle", "why:   there are more than 5 redirects")]
#[case::nowhere("/nowhere", "why:   the answer 302 Found names no address")]
#[case::file("/file", "file:///etc/passwd is no address of HTTP or HTTPS")]
#[case::password("/password", "the address at 127.0.0.1 has a user or a password")]
#[case::large("/large", "why:   it has more than 10 bytes")]
fn what_is_not_downloaded_says_why(#[case] path: &str, #[case] expected: &str) {
    let server = Server::answering(|path| match path {
        "/circle" => answered(302, "/circle"),
        "/nowhere" => Response::builder().status(302).body(Body::empty()).unwrap(),
        "/file" => answered(302, "file:///etc/passwd"),
        "/password" => answered(302, "http://me:s3cret@127.0.0.1/"),
        "/closed" => answered(401, ""),
        // Without a length in its header.
        "/large" => Response::new(Body::from_stream(futures::stream::iter(
            ["12345", "67890", "1"].map(Ok::<_, io::Error>),
        ))),
        _ => answered(404, ""),
    });
    let error =
        get(&mut Downloads::new().unwrap(), &server.url(&format!("{path}?sig=s3cret")), 10).unwrap_err();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

#[test]
fn a_server_that_is_silent_is_not_waited_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/a.tgz", listener.local_addr().unwrap());
    let mut downloads = Downloads::new().unwrap();
    downloads.patience.answer = Duration::from_millis(50);
    let error = get(&mut downloads, &url, 10).unwrap_err();
    assert!(error.contains("why:   no answer came within 50ms\n"), "{error}");
    // One that begins and does not go on.
    let slow = std::thread::spawn(move || {
        let (first, _) = listener.accept().unwrap();
        let (mut next, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let _ = next.read(&mut request).unwrap();
        next.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1").unwrap();
        // Until the other side has gone.
        let _ = next.read(&mut request);
        drop(first);
    });
    downloads.patience = Patience { answer: Duration::from_secs(60), whole: Duration::from_millis(500) };
    let error = get(&mut downloads, &url, 10).unwrap_err();
    assert!(error.contains("why:   no answer came within 500ms\n"), "{error}");
    drop(downloads);
    slow.join().unwrap();
}

#[test]
fn a_command_downloads_so_much_and_no_more() {
    let server = Server::start();
    let url = server.put("/a", "12345");
    let mut downloads = Downloads::new().unwrap();
    (downloads.bytes, downloads.files) = (9, 3);
    assert_eq!(get(&mut downloads, &url, 100).unwrap(), "12345");
    let error = get(&mut downloads, &url, 100).unwrap_err();
    assert!(error.contains("why:   it has more than 4 bytes"), "{error}");
    downloads.bytes = 100;
    assert_eq!(get(&mut downloads, &url, 100).unwrap(), "12345");
    let error = get(&mut downloads, &url, 100).unwrap_err();
    assert!(error.contains("why:   a command downloads at most 64 files"), "{error}");
}

#[test]
fn a_closed_port_is_named() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let error = get(&mut Downloads::new().unwrap(), &format!("http://127.0.0.1:{port}/a?b"), 1).unwrap_err();
    assert!(
        error.starts_with(&format!("error: http://127.0.0.1:{port}/a cannot be downloaded\n")),
        "{error}"
    );
    assert!(error.contains("why:   Connection refused\n"), "{error}");
}

#[rstest]
#[case::file("file:///etc/passwd", "file:///etc/passwd is no address of HTTP or HTTPS")]
#[case::ftp("ftp://host/a.tgz", "is no address of HTTP or HTTPS")]
#[case::user("https://me@host/a.tgz", "the address at host has a user or a password")]
#[case::no_host("https://", "it is no address")]
#[case::other("oci://me:s3cret@host/a", "oci://host/a is no address of HTTP or HTTPS")]
fn an_address_is_of_http(#[case] text: &str, #[case] expected: &str) {
    let error = address(text).unwrap_err().text();
    assert!(error.contains(expected) && error.contains("next:  "), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

/// A server with TLS that answers each connection so; its certificate, in DER.
fn with_tls(answer: &'static str) -> (String, Vec<u8>) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate.clone()], key).unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // It waits for connections until the process ends.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
            // A client that does not trust the certificate goes.
            if stream.read(&mut [0; 2048]).is_ok() {
                let _ = stream.write_all(answer.as_bytes());
                let _ = stream.flush();
            }
        }
    });
    (format!("https://localhost:{port}/a.tgz"), certificate.to_vec())
}

#[test]
fn a_certificate_has_to_be_trusted() {
    let (url, certificate) =
        with_tls("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ncontent");
    let mut downloads = Downloads::new().unwrap();
    let error = get(&mut downloads, &url, 10).unwrap_err();
    assert!(error.contains("why:   invalid peer certificate: UnknownIssuer\n"), "{error}");
    downloads.roots = Some(vec![certificate]);
    assert_eq!(get(&mut downloads, &url, 10).unwrap(), "content");
}

#[test]
fn encryption_is_not_dropped_by_a_redirect() {
    let server = Server::start();
    let plain = server.put("/a.tgz", "content");
    let answer =
        format!("HTTP/1.1 302 Found\r\nLocation: {plain}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let (url, certificate) = with_tls(answer.leak());
    let mut downloads = Downloads::new().unwrap();
    downloads.roots = Some(vec![certificate]);
    let error = get(&mut downloads, &url, 10).unwrap_err();
    assert!(error.contains("which is not encrypted"), "{error}");
    assert!(server.asked.lock().unwrap().is_empty());
}
