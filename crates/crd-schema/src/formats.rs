//! The formats that the API server asks of strings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::go_text;

/// Formats that the API server asks and this crate does not.
const UNEVALUATED: [&str; 8] =
    ["bsonobjectid", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor"];

/// Whether a format is one that only the API server asks.
pub(crate) fn is_unevaluated(format: &str) -> bool {
    UNEVALUATED.contains(&format)
}

/// Whether a text has a format; `None` for one that the API server does not ask.
pub(crate) fn is(format: &str, text: &str) -> Option<bool> {
    Some(match format {
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => matches(&MAC, text),
        "uuid" => matches(&UUID, text),
        "uuid3" => matches(&UUID, text) && is_uuid_version(text, b'3'),
        "uuid4" => matches(&UUID, text) && is_uuid_version(text, b'4'),
        "uuid5" => matches(&UUID, text) && is_uuid_version(text, b'5'),
        "byte" => matches(&BASE64, text),
        "date" => go_text::is_date(text),
        "duration" => go_text::is_duration(text),
        "date-time" | "datetime" => go_text::is_date_time(text),
        "k8s-short-name" => text.len() <= 63 && matches(&LABEL, text),
        "k8s-long-name" => text.len() <= 253 && text.split('.').all(|label| matches(&LABEL, label)),
        _ => return None,
    })
}

static MAC: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2})$|^([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}$").ok()
});
static UUID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
static BASE64: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$").ok()
});
static LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").ok());
static HOST_LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^[a-zA-Z0-9\p{S}\p{L}]([-a-zA-Z0-9\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?$").ok()
});

pub(crate) fn matches(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn is_uuid_version(text: &str, version: u8) -> bool {
    text.bytes().filter(|byte| *byte != b'-').nth(12) == Some(version)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let plain = length.len() <= 3 && !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    plain && length.parse::<u16>().is_ok_and(|length| length <= most)
}

/// A URI with a scheme, or a path from the root.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control() || c == ' ') {
        return false;
    }
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    let has_scheme = scheme.is_some_and(|scheme| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    has_scheme || text.starts_with('/')
}

fn is_email(text: &str) -> bool {
    let address = text.rsplit_once('<').and_then(|(_, rest)| rest.strip_suffix('>')).unwrap_or(text);
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !address.contains(char::is_whitespace)
    })
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && !text.is_empty()
        && text.trim_end_matches('.').split('.').all(|label| matches(&HOST_LABEL, label))
}
