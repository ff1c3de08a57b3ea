//! Kong: DataPlanes and their rollouts, the router flavors of gateways, and what the flavors come from.

pub mod api;
pub mod data_plane;
pub mod flavor_source;
#[cfg(test)]
mod tests;

use interlock_core::kinds::Kinds;

/// The kinds around Kong.
pub static KINDS: Kinds = &[
    &data_plane::DATA_PLANE,
    &data_plane::CONTROL_PLANE,
    &data_plane::DEPLOYMENT,
    &data_plane::SERVICE,
    &data_plane::rollout::watched::DEPLOYMENT,
    &data_plane::rollout::watched::SERVICE,
    &data_plane::rollout::watched::AUTOSCALER,
    &data_plane::rollout::watched::DISRUPTION_BUDGET,
    &data_plane::rollout::watched::POD,
    &data_plane::rollout::watched::ENDPOINT_SLICE,
    &flavor_source::CONFIG_MAP,
    &flavor_source::SECRET,
];

/// These and the kinds of every domain.
#[cfg(test)]
fn all() -> Kinds {
    static ALL: std::sync::LazyLock<Vec<&interlock_core::kinds::Kind>> =
        std::sync::LazyLock::new(|| [KINDS, interlock_core::kinds::KINDS].concat());
    &ALL
}
