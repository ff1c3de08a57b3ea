//! Parses Go's durations, as the API server writes them into `?timeout=`.

use std::time::Duration;

/// The `timeout` of a query, when it has one that Go would read.
pub fn timeout_of(query: Option<&str>) -> Option<Duration> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == "timeout").find_map(|(_, value)| parse(value))
}

/// `1m30s`, `2.5s`, `300ms`: not negative, and with a unit.
fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let seconds = number.parse::<f64>().ok()? * unit_seconds(unit)?;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "%C2%B5s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
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
