use rstest::rstest;

use super::*;

fn answer(code: u16, message: &str, reason: &str) -> Error {
    Error::Api(Box::new(Status { code, ..Status::failure(message, reason) }))
}

fn broken(source: impl Into<BoxError>) -> Error {
    let address = "https://10.0.0.1:6443".to_owned();
    Error::Service(Box::new(AtAddress { address, source: source.into() }))
}

fn io_error(kind: io::ErrorKind, inner: impl Into<BoxError>) -> io::Error {
    io::Error::new(kind, inner)
}

fn tls(why: CertificateError) -> Error {
    broken(io_error(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(why)))
}

const WHAT: &str = "Instance team/demo cannot be read";

#[rstest]
#[case::credentials(
    answer(401, "Unauthorized", "Unauthorized"),
    1,
    "why:   Unauthorized\n  next:  log in again, or choose other credentials with --context or --kubeconfig; `kubectl auth \
     whoami` shows whom the API server sees"
)]
#[case::right(
    answer(
        403,
        "instances.kudo.dev \"demo\" is forbidden: User \"alice\" cannot get resource \"instances\" in API group \
         \"kudo.dev\" in the namespace \"team\"",
        "Forbidden"
    ),
    1,
    "next:  ask an administrator for the verb get on instances.kudo.dev in namespace team; `kubectl auth can-i get \
     instances.kudo.dev -n team` tells when you have it"
)]
#[case::right_everywhere(
    answer(
        403,
        "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        "Forbidden"
    ),
    1,
    "next:  ask an administrator for the verb list on pods in the whole cluster; `kubectl auth can-i list pods -A` \
     tells when you have it"
)]
#[case::no_user(
    answer(
        403,
        "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        "Forbidden"
    ),
    1,
    "next:  log in, or choose other credentials"
)]
#[case::not_found(
    answer(404, "instances.kudo.dev \"demo\" not found", "NotFound"),
    3,
    "why:   instances.kudo.dev \"demo\" not found\n  next:  choose another namespace with -n"
)]
#[case::not_served(
    answer(404, "the server could not find the requested resource", "NotFound"),
    3,
    "why:   the API server does not serve this kind\n  next:  install its definition, such as those of `interlock render \
     crds`"
)]
#[case::group_not_served(
    answer(404, "404 page not found\n", "Failed to parse error data"),
    3,
    "why:   the API server does not serve this kind\n"
)]
#[case::refused(
    answer(422, "denied the request: plan deploy runs\nNext: wait", "Invalid"),
    1,
    "why:   denied the request: plan deploy runs\n         Next: wait\n"
)]
#[case::busy(answer(429, "too many requests", "TooManyRequests"), 3, "next:  try again")]
#[case::down(answer(503, "", "ServiceUnavailable"), 3, "why:   ServiceUnavailable\n  next:  try again")]
#[case::connection(
    broken(io_error(io::ErrorKind::ConnectionRefused, "x")),
    3,
    "where: https://10.0.0.1:6443\n  why:   the connection was refused\n  next:  check that the API server runs"
)]
#[case::timeout(
    broken(tower::timeout::error::Elapsed::new()),
    3,
    "where: https://10.0.0.1:6443\n  why:   no answer came in time\n"
)]
#[case::host(
    broken(io::Error::other("failed to lookup address information: Name or service not known")),
    3,
    "why:   the name of the host is not known\n"
)]
#[case::unreachable(
    broken(io::Error::from_raw_os_error(113)),
    3,
    "where: https://10.0.0.1:6443\n  why:   No route to host\n"
)]
#[case::ca(
    tls(CertificateError::UnknownIssuer),
    3,
    "why:   the certificate of the API server is of a CA that the kubeconfig does not trust\n  next:  correct server and \
     certificate-authority-data"
)]
#[case::expired(tls(CertificateError::Expired), 3, "why:   the certificate of the API server has expired\n")]
#[case::name(
    tls(CertificateError::NotValidForName),
    3,
    "why:   the certificate of the API server is for another name\n"
)]
#[case::no_tls(
    broken(io_error(io::ErrorKind::InvalidData, rustls::Error::DecryptError)),
    3,
    "why:   no TLS connection was established\n  next:  correct server of the cluster"
)]
fn what_is_printed(#[case] error: Error, #[case] code: u8, #[case] expected: &str) {
    let found = of_api(WHAT, &error);
    let text = found.text();
    assert_eq!(found.exit().code(), code, "{text}");
    assert!(text.starts_with("error: Instance team/demo cannot be read\n"), "{text}");
    assert!(text.contains(expected), "{text}");
    for raw in ["ApiError", "Status {", "ServiceError", "(os error", "InvalidCertificate", "UnknownIssuer"] {
        assert!(!text.contains(raw), "{raw}: {text}");
    }
}

/// A plug-in prints credentials; its error holds what it printed.
#[test]
fn credentials_are_not_shown() {
    let error = kube::client::AuthError::AuthExec("token: s3cret".to_owned());
    let text = of_api(WHAT, &Error::Auth(error)).text();
    assert!(!text.contains("s3cret") && text.contains("usable credentials"), "{text}");
}

#[rstest]
#[case::answer(answer(403, "pods is forbidden", "Forbidden"), "pods is forbidden")]
#[case::connection(broken(io_error(io::ErrorKind::ConnectionRefused, "x")), "the connection was refused")]
fn a_reason_is_one_line(#[case] error: Error, #[case] expected: &str) {
    assert_eq!(reason(&error), expected);
}
