//! The annotation `gateway-operator.konghq.com/service-selector-override`: `k=v,k2=v2`.

use std::collections::BTreeMap;

/// Longest name of a label and longest value.
const NAME_LIMIT: usize = 63;
/// Longest prefix of a label, a DNS subdomain.
const PREFIX_LIMIT: usize = 253;

/// The labels that a value lists; `None` where it is no list of labels.
pub fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let label = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let is_label = is_key(key) && (value.is_empty() || is_name(value));
        is_label.then(|| (key.to_owned(), value.to_owned()))
    };
    text.split(',').map(label).collect()
}

fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

fn is_name(text: &str) -> bool {
    let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= NAME_LIMIT
        && end(text.bytes().next())
        && end(text.bytes().next_back())
        && text.bytes().all(inner)
}

fn is_subdomain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        label.bytes().next().is_some_and(plain)
            && label.bytes().next_back().is_some_and(plain)
            && label.bytes().all(|byte| plain(byte) || byte == b'-')
    };
    text.len() <= PREFIX_LIMIT && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("app=edge", true)]
    #[case("app=edge,example.com/tier=front-1", true)]
    #[case("app=", true)]
    #[case("", false)]
    #[case("app", false)]
    #[case("=edge", false)]
    #[case("app=edge,", false)]
    #[case("app=edge, tier=x", false)]
    #[case("app==edge", false)]
    #[case("app in (a)", false)]
    #[case("-app=edge", false)]
    #[case("Example.com/tier=x", false)]
    #[case("a/b/c=x", false)]
    #[case(&format!("{}=x", "a".repeat(64)), false)]
    #[case(&format!("a={}", "x".repeat(63)), true)]
    fn lists_of_labels(#[case] text: &str, #[case] good: bool) {
        assert_eq!(parse(text).is_some(), good);
    }
}
