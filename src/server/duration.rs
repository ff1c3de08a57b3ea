//! The time that a caller waits for an answer, which the API server writes into `?timeout=`.

use std::time::Duration;

use go_template::go::duration;

/// The `timeout` of a query, when it has one that Go would read.
pub fn timeout_of(query: Option<&str>) -> Option<Duration> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let mut timeouts = pairs.filter(|(key, _)| *key == "timeout");
    let nanos = timeouts.find_map(|(_, value)| duration::parse(&value.replace("%C2%B5", "\u{b5}")))?;
    Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("timeout=5s", Some(5_000))]
    #[case("a=b&timeout=1m30s", Some(90_000))]
    #[case("timeout=2.5s", Some(2_500))]
    #[case("timeout=300ms", Some(300))]
    #[case("timeout=0", Some(0))]
    #[case("timeout=", None)]
    #[case("timeout=5", None)]
    #[case("timeout=-5s", None)]
    #[case("timeout=5y", None)]
    #[case("timeout=99999999999999999999h", None)]
    #[case("", None)]
    fn timeouts(#[case] query: &str, #[case] millis: Option<u64>) {
        assert_eq!(timeout_of(Some(query)), millis.map(Duration::from_millis));
    }
}
