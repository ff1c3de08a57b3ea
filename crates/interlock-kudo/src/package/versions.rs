//! Versions, as leniently as KUDO's client parses them.

use semver::Version;

/// Parses `1.2.3`, and also `v1`, `1.2` and leading zeros: these errors of the package's author do not
/// matter here.
pub fn parse(text: &str) -> Option<Version> {
    let text = text.trim().trim_start_matches('v');
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts = Vec::new();
    for part in numbers.split('.') {
        parts.push(part.parse::<u64>().ok()?);
    }
    if parts.is_empty() || parts.len() > 3 {
        return None;
    }
    parts.resize(3, 0);
    let core = parts.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
    Version::parse(&format!("{core}{rest}")).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1.2.3", Some("1.2.3"))]
    #[case("v1.36.3", Some("1.36.3"))]
    #[case("0.1", Some("0.1.0"))]
    #[case("1", Some("1.0.0"))]
    #[case("1.16.0-rc1", Some("1.16.0-rc1"))]
    #[case("1.02.3", Some("1.2.3"))]
    #[case("", None)]
    #[case("one", None)]
    #[case("1.2.3.4", None)]
    fn versions_are_read_leniently(#[case] text: &str, #[case] version: Option<&str>) {
        assert_eq!(parse(text).map(|v| v.to_string()).as_deref(), version);
    }
}
