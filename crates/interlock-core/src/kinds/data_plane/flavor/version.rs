//! The version of Kong, from the name of an image.

use std::fmt;

/// A version of Kong; Enterprise counts a fourth number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KongVersion([u32; 4]);

impl KongVersion {
    /// The version with these first numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self([major, minor, patch, 0])
    }

    /// The default if an image names no version: the last one for which the table is strictest about a
    /// rolling change to `expressions`.
    pub const ASSUMED: Self = Self::new(3, 6, 0);

    /// The version of an image such as `kong:3.9`, `registry:5000/kong/kong-gateway:3.4.3.19-ubuntu` or
    /// `kong:v3.9.1@sha256:...`; `None` for moving tags (`latest`, `3`) and bare digests.
    pub fn of_image(image: &str) -> Option<Self> {
        let name = image.split_once('@').map_or(image, |(name, _)| name);
        let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
        let (_, tag) = last.split_once(':')?;
        let tag = tag.strip_prefix('v').unwrap_or(tag);
        let numbers = tag.split_once('-').map_or(tag, |(numbers, _)| numbers);
        let mut version = [0; 4];
        let mut count = 0;
        for part in numbers.split('.') {
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            *version.get_mut(count)? = part.parse().ok()?;
            count += 1;
        }
        (count >= 2).then_some(Self(version))
    }

    /// Whether it has the setting `router_flavor` (Kong 3.0).
    pub fn has_flavors(self) -> bool {
        self >= Self::new(3, 0, 0)
    }
}

impl fmt::Display for KongVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch, enterprise] = self.0;
        write!(f, "{major}.{minor}")?;
        match (patch, enterprise) {
            (0, 0) => Ok(()),
            (patch, 0) => write!(f, ".{patch}"),
            (patch, enterprise) => write!(f, ".{patch}.{enterprise}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("kong:3.9", Some("3.9"))]
    #[case("kong/kong-gateway:3.4.3.19", Some("3.4.3.19"))]
    #[case("kong:3.3-ubuntu", Some("3.3"))]
    #[case("kong:v3.9.1", Some("3.9.1"))]
    #[case("registry.local:5000/kong/kong-gateway:3.7.1", Some("3.7.1"))]
    #[case("kong:3.9.1@sha256:0123", Some("3.9.1"))]
    #[case("kong:2.8.4-alpine", Some("2.8.4"))]
    #[case("kong@sha256:0123", None)]
    #[case("registry.local:5000/kong", None)]
    #[case("kong:latest", None)]
    #[case("kong:nightly-20260101", None)]
    #[case("kong:3", None)]
    #[case("kong:3.9.1.2.3", None)]
    #[case("kong:3..1", None)]
    #[case("kong:99999999999.1", None)]
    #[case("", None)]
    fn images(#[case] image: &str, #[case] version: Option<&str>) {
        assert_eq!(KongVersion::of_image(image).map(|v| v.to_string()).as_deref(), version);
    }
}
