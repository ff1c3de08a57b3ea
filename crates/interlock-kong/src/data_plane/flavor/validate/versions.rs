//! RF04, RF08, RF12: effects of Kong versions on a flavor.

use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::change::Findings;
use crate::data_plane::flavor::change::FlavorChange;
use crate::data_plane::flavor::compatibility::ProducerConfiguration;
use crate::data_plane::flavor::reading::{Effective, VARIABLE};
use crate::data_plane::flavor::version::KongVersion;
use crate::data_plane::rules::ids::{FLAVOR_FIELDS, FLAVOR_IMAGE, FLAVOR_VERSION};

/// RF04.
pub(super) fn too_low(change: &FlavorChange<'_>, to: Flavor, findings: &mut Findings) {
    let lowest = KongVersion::new(3, 4, 0);
    untold(change, to, findings);
    if let Some(version) = change.new.reading.version.filter(|version| *version < lowest)
        && to == Flavor::Expressions
    {
        findings.deny(
            FLAVOR_VERSION,
            format!(
                "router flavor expressions on Kong {version} cannot route TCP, UDP, TLS or gRPC and has no HTTPS \
                 redirect; use Kong >= 3.4"
            ),
        );
    }
}

/// RF04: the image does not tell the version.
fn untold(change: &FlavorChange<'_>, to: Flavor, findings: &mut Findings) {
    if to == Flavor::Expressions && change.new.reading.version.is_none() {
        findings.warn(
            FLAVOR_VERSION,
            "router flavor expressions needs Kong >= 3.4, and the image does not tell its version; name it in the tag, \
             such as kong:3.9",
        );
    }
}

/// RF04: Kong before 3.0 ignores the flavor.
pub(super) fn ignored(change: &FlavorChange<'_>, findings: &mut Findings) {
    let new = &change.new.reading;
    let (Some(Flavor::Expressions), Some(version)) = (new.ignored, new.version) else { return };
    if change.stored.is_some_and(|stored| stored.reading.ignored == new.ignored) {
        return;
    }
    findings.deny(
        FLAVOR_VERSION,
        format!(
            "router flavor expressions on Kong {version} has no effect, as Kong before 3.0 has no router flavors; use \
             Kong >= 3.4"
        ),
    );
}

/// RF08, RF12: the same flavor on another version.
pub(super) fn crossings(change: &FlavorChange<'_>, to: Flavor, findings: &mut Findings) {
    let new = &change.new.reading;
    let Some(live) = change.live else { return };
    if change.stored.is_some_and(|stored| stored.reading.version == new.version) {
        return;
    }
    if live.effective == Effective::Legacy && new.effective != Effective::Legacy && !new.said {
        findings.warn(
            FLAVOR_IMAGE,
            format!(
                "moving to Kong 3.x changes the router from the pre-3.0 engine to traditional_compatible; set \
                 {VARIABLE}=traditional to keep it"
            ),
        );
    }
    if live.effective.known() != Some(to) {
        return;
    }
    if live.version.is_some() {
        untold(change, to, findings);
    }
    let (Some(before), Some(after)) = (live.version, new.version) else { return };
    let across = |line: KongVersion| (before < line) != (after < line);
    let mixed = KongVersion::new(3, 7, 0);
    match to {
        Flavor::Expressions if before >= mixed && after < mixed => {
            let text = format!(
                "Kong {after} with expressions does not accept traditional route fields; configuration accepted by \
                 {before} may be rejected"
            );
            match change.configuration {
                ProducerConfiguration::FieldsOnly => findings.deny(FLAVOR_FIELDS, text),
                ProducerConfiguration::Usual => findings.warn(FLAVOR_FIELDS, text),
            }
        }
        Flavor::Expressions if across(KongVersion::new(3, 6, 0)) => findings.warn(
            FLAVOR_IMAGE,
            "from Kong 3.6 on, expressions compare header values case-sensitively; check the routes that match \
             headers",
        ),
        Flavor::TraditionalCompatible if across(KongVersion::new(3, 3, 0)) => findings.warn(
            FLAVOR_IMAGE,
            "from Kong 3.3 on, each path of a route has its own priority under traditional_compatible; check \
             routes with several paths",
        ),
        Flavor::Traditional | Flavor::TraditionalCompatible | Flavor::Expressions => {}
    }
}
