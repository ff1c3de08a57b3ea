//! Hostnames that a listener and a route have in common.

/// The hostname that stands for all.
const ANY: &str = "*";

/// The narrower of two hostnames, where one covers the other; none where they have nothing in common.
///
/// `*.example.com` covers every name with at least one label more, and not `example.com` itself
/// (Gateway API, `HTTPRouteSpec.hostnames`). Case does not matter.
pub fn intersection(left: &str, right: &str) -> Option<String> {
    let (left, right) = (left.to_ascii_lowercase(), right.to_ascii_lowercase());
    if covers(&left, &right) {
        Some(right)
    } else if covers(&right, &left) {
        Some(left)
    } else {
        None
    }
}

/// Whether every name that `narrow` stands for is one of `wide`.
fn covers(wide: &str, narrow: &str) -> bool {
    if wide == ANY || wide == narrow {
        return true;
    }
    // `*.example.com` ends in `.example.com` too, so wildcards compare as names do.
    let suffix = wide.strip_prefix('*').filter(|suffix| suffix.starts_with('.'));
    suffix.is_some_and(|suffix| narrow.len() > suffix.len() && narrow.ends_with(suffix))
}

/// What a route's hostnames and a listener's have in common; none where it is nothing.
pub(super) fn common(listener: Option<&str>, route: &[String]) -> Option<Vec<String>> {
    let listener = listener.filter(|hostname| !hostname.is_empty()).unwrap_or(ANY);
    if route.is_empty() {
        return Some(vec![listener.to_ascii_lowercase()]);
    }
    let mut common: Vec<String> =
        route.iter().filter_map(|hostname| intersection(listener, hostname)).collect();
    common.sort();
    common.dedup();
    (!common.is_empty()).then_some(common)
}
