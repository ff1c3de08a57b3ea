//! Dates and durations as Go's `strfmt` reads them.

use chrono::NaiveDate;

/// `2006-01-02`
pub(crate) fn is_date(text: &str) -> bool {
    text.len() == 10 && text.is_ascii() && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// A date, `T`, a time and a zone, in either case.
pub(crate) fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    if !is_date(date) || !time.is_ascii() || time.len() < 9 {
        return false;
    }
    let (clock, rest) = time.split_at(8);
    let numbers: Vec<Option<u8>> = clock.split(':').map(two_digits).collect();
    let [Some(hour), Some(minute), Some(second)] = numbers[..] else { return false };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    hour <= 23 && minute <= 59 && second <= 59 && is_zone(zone)
}

fn two_digits(text: &str) -> Option<u8> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn is_zone(text: &str) -> bool {
    if text == "z" {
        return true;
    }
    let Some(offset) = text.strip_prefix(['+', '-']) else { return false };
    offset
        .split_once(':')
        .is_some_and(|(hours, minutes)| two_digits(hours).is_some() && two_digits(minutes).is_some())
}

/// A duration of Go (`1h30m`), or numbers with the words of `strfmt` (`2 weeks`).
pub(crate) fn is_duration(text: &str) -> bool {
    go_template::go::duration::parse(text).is_some() || is_worded_duration(text)
}

fn is_worded_duration(text: &str) -> bool {
    const UNITS: &str = "ns nano us micro ms milli s sec secs second seconds m min minute minutes h hr hour hours \
                         d day days w wk week weeks";
    let text = text.trim();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - unit.len()];
    let unit = unit.trim().to_lowercase();
    !number.is_empty() && UNITS.split(' ').any(|known| known == unit)
}
