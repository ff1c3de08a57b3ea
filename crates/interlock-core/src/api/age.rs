//! How long something has been so, as kubectl writes it.

use jiff::Timestamp;

/// `45s`, `2m5s`, `3h4m`, `2d3h`: the two largest units; `0s` where a clock runs behind.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, below: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{below}"),
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => two(minutes, "m", seconds % 60, "s"),
        (0, hours, minutes) => two(hours, "h", minutes % 60, "m"),
        (days, hours, _) => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0s")]
    #[case(-5, "0s")]
    #[case(59, "59s")]
    #[case(60, "1m")]
    #[case(125, "2m5s")]
    #[case(3600, "1h")]
    #[case(11_100, "3h5m")]
    #[case(86_400, "1d")]
    #[case(183_700, "2d3h")]
    fn ages(#[case] seconds: i64, #[case] expected: &str) {
        let since = Timestamp::UNIX_EPOCH;
        assert_eq!(age(since, since + jiff::SignedDuration::from_secs(seconds)), expected);
    }
}
