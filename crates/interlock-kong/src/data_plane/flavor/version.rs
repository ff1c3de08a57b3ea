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
        let (_, tag) = repository_and_tag(image)?;
        let (version, count) = numbers(tag.strip_prefix('v').unwrap_or(tag))?;
        (count >= 2).then_some(Self(version))
    }

    /// Whether a version that a pod reports, such as `3.4.3.19-enterprise-edition`, is that of its image's tag, of
    /// which `3.9` stands for each `3.9.x`; `None` where one of them tells no version, or the image is not named as
    /// Kong's are: an image of another name may have versions of its own.
    pub fn agrees(image: &str, reported: &str) -> Option<bool> {
        let (repository, tag) = repository_and_tag(image)?;
        if !["kong", "kong-gateway"].contains(&repository) {
            return None;
        }
        let (wanted, count) =
            numbers(tag.strip_prefix('v').unwrap_or(tag)).filter(|(_, count)| *count >= 2)?;
        let (reported, _) = numbers(reported)?;
        Some(wanted[..count] == reported[..count])
    }

    /// Whether it has the setting `router_flavor` (Kong 3.0).
    pub fn has_flavors(self) -> bool {
        self >= Self::new(3, 0, 0)
    }
}

/// The last word of an image's repository, and its tag.
fn repository_and_tag(image: &str) -> Option<(&str, &str)> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    name.rsplit_once('/').map_or(name, |(_, last)| last).split_once(':')
}

/// The numbers before a dash, up to four, and how many there are.
fn numbers(text: &str) -> Option<([u32; 4], usize)> {
    let text = text.split_once('-').map_or(text, |(numbers, _)| numbers);
    let (mut numbers, mut count) = ([0; 4], 0);
    for part in text.split('.') {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *numbers.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    Some((numbers, count))
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

    #[rstest]
    #[case("kong:3.9", "3.9.1", Some(true))]
    #[case("kong:3.9.1", "3.9.1", Some(true))]
    #[case("kong:3.9.0", "3.9.1", Some(false))]
    #[case("kong:3.9", "3.8.1", Some(false))]
    #[case(
        "registry.local:5000/kong/kong-gateway:3.4.3.19-ubuntu",
        "3.4.3.19-enterprise-edition",
        Some(true)
    )]
    #[case("kong/kong-gateway:3.4.3.19", "3.4.3.18-enterprise-edition", Some(false))]
    #[case("kong:3.9.1.2", "3.9.1", Some(false))]
    #[case::moving_tag("kong:3", "3.9.1", None)]
    #[case::no_tag("kong@sha256:0123", "3.9.1", None)]
    #[case::own_image("shop/edge:1.2", "3.9.1", None)]
    #[case::no_version("kong:3.9", "unknown", None)]
    #[case::too_long("kong:3.9", "3.9.1.2.3", None)]
    fn a_reported_version_is_compared_with_the_tag(
        #[case] image: &str,
        #[case] reported: &str,
        #[case] agrees: Option<bool>,
    ) {
        assert_eq!(KongVersion::agrees(image, reported), agrees);
    }
}
