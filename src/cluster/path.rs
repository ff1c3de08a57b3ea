//! Paths of the API server; no other code builds one from names.

use std::iter::once;

use interlock_core::api::path::{NotASegment, segment};
use interlock_core::effect::ApiFailure;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Escaped characters of a segment: all except RFC 3986's unreserved ones, and the colon of RBAC names and
/// of the port of a proxied pod.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Characters of a segment that a message shows.
const SHOWN: usize = 100;

/// The path of a collection, or of an object or subresource `below` it.
///
/// # Errors
/// A segment that would escape its place, such as `other/secrets/x` or `..`: no such object exists, and no
/// request is sent.
pub fn of(
    api_version: &str,
    namespace: Option<&str>,
    plural: &str,
    below: &[&str],
) -> Result<String, ApiFailure> {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let scope = namespace.map(|namespace| ["namespaces", namespace]).into_iter().flatten();
    let segments = api_version.split('/').chain(scope).chain(once(plural)).chain(below.iter().copied());
    let mut path = format!("/{root}");
    for text in segments {
        let text = segment(text).map_err(|why| refused(text, why))?;
        path.push('/');
        path.extend(utf8_percent_encode(text, ESCAPED));
    }
    Ok(path)
}

/// A failure inside this process, before any request.
fn refused(text: &str, why: NotASegment) -> ApiFailure {
    let shown: String = text.chars().take(SHOWN).collect();
    ApiFailure {
        code: 0,
        reason: "Local".to_owned(),
        message: format!("{shown:?} {why}, so it cannot be a part of the path of a request"),
        namespace_terminating: false,
    }
}

/// The escaped value of a query parameter.
pub fn query(value: &str) -> String {
    utf8_percent_encode(value, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::core("v1", Some("ns"), "configmaps", &["a"], "/api/v1/namespaces/ns/configmaps/a")]
    #[case::group("apps/v1", Some("ns"), "deployments", &[], "/apis/apps/v1/namespaces/ns/deployments")]
    #[case::status("interlock.dev/v1alpha1", None, "interlocks", &["default", "status"], "/apis/interlock.dev/v1alpha1/interlocks/default/status")]
    #[case::of_rbac("rbac.authorization.k8s.io/v1", None, "clusterroles", &["system:a b?c#d"], "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b%3Fc%23d")]
    fn paths(
        #[case] api_version: &str,
        #[case] namespace: Option<&str>,
        #[case] plural: &str,
        #[case] below: &[&str],
        #[case] expected: &str,
    ) {
        assert_eq!(of(api_version, namespace, plural, below).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case::name("v1", "ns", "configmaps", "../secrets/x")]
    #[case::above("v1", "ns", "configmaps", "..")]
    #[case::escaped("v1", "ns", "configmaps", "x%2Fstatus")]
    #[case::empty("v1", "ns", "configmaps", "")]
    #[case::namespace("v1", "ns/secrets/x?", "configmaps", "a")]
    #[case::api_version("../v1", "ns", "configmaps", "a")]
    #[case::plural("v1", "ns", "configmaps/..", "a")]
    fn an_escaping_path_is_never_requested(
        #[case] api_version: &str,
        #[case] namespace: &str,
        #[case] plural: &str,
        #[case] name: &str,
    ) {
        let failure = of(api_version, Some(namespace), plural, &[name]).unwrap_err();
        assert_eq!((failure.code, failure.reason.as_str()), (0, "Local"));
        assert!(failure.message.contains("cannot be a part of the path"), "{}", failure.message);
    }
}
