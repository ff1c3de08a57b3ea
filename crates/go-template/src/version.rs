//! Versions, parsed and compared like `Masterminds/semver` 1.5.

use std::cmp::Ordering;
use std::fmt;

use super::error::Failure;

/// A version; minor and patch may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SemVersion {
    /// Major, minor and patch.
    pub(super) numbers: [i64; 3],
    pub(super) prerelease: String,
    pub(super) metadata: String,
    /// The original text.
    pub(super) original: String,
}

impl fmt::Display for SemVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn invalid() -> Failure {
    Failure::new("Invalid Semantic Version")
}

impl SemVersion {
    /// Parses a version.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let (rest, metadata) = match text.split_once('+') {
            Some((rest, metadata)) => (rest, Some(metadata)),
            None => (text, None),
        };
        let (rest, prerelease) = match rest.split_once('-') {
            Some((rest, prerelease)) => (rest, Some(prerelease)),
            None => (rest, None),
        };
        if !prerelease.is_none_or(is_identifier) || !metadata.is_none_or(is_identifier) {
            return Err(invalid());
        }
        let mut numbers = [0; 3];
        let parts: Vec<&str> = rest.strip_prefix('v').unwrap_or(rest).split('.').collect();
        if parts.len() > 3 {
            return Err(invalid());
        }
        for (number, part) in numbers.iter_mut().zip(parts) {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(invalid());
            }
            *number = part.parse().map_err(|_| {
                Failure::new(format!(
                    "Error parsing version segment: strconv.ParseInt: parsing \"{part}\": value out of range"
                ))
            })?;
        }
        Ok(Self {
            numbers,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        })
    }

    /// Precedence, which ignores metadata.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_prerelease(&self.prerelease, &other.prerelease),
            }
        })
    }
}

fn is_identifier(text: &str) -> bool {
    text.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

fn compare_prerelease(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                // The library considers 1 and 01 different, the first being lower.
                (Ok(x), Ok(y)) if x == y && a != b => Ordering::Less,
                (Ok(x), Ok(y)) => x.cmp(&y),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}
