//! The two sides of a DataPlane, and the names of what belongs to them.
//!
//! Names are a function of the DataPlane's name, so that what is made again has the name that it had. Which side is
//! live is recorded by its selector, never inferred from age.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest name of a Service, and value of a label.
const LONGEST: usize = 63;

/// Hexadecimal digits that keep cut names apart.
const HASH: usize = 8;

/// One of the two sets of pods. Each promotion makes the other one live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Colour {
    /// The first.
    Blue,
    /// The second.
    Green,
}

impl Colour {
    /// The colour's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blue => "blue",
            Self::Green => "green",
        }
    }

    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Blue => Self::Green,
            Self::Green => Self::Blue,
        }
    }

    /// Value of the label that selects its pods: a UUIDv5 of the DataPlane's uid, as Kong's are UUIDs.
    pub fn selector(self, uid: &str) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{uid}/{}", self.as_str()).as_bytes()).to_string()
    }

    /// The colour with that selector; `None` for a selector that another operator made.
    pub fn of_selector(uid: &str, selector: &str) -> Option<Self> {
        [Self::Blue, Self::Green].into_iter().find(|colour| colour.selector(uid) == selector)
    }
}

/// Name and selector of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentIdentity {
    pub name: String,
    /// Value of the label that selects its pods.
    pub selector: String,
}

impl DeploymentIdentity {
    /// Those that Interlock gives to a colour of the DataPlane with this name and uid.
    pub fn of(data_plane: &str, uid: &str, colour: Colour) -> Self {
        Self { name: deployment_name(data_plane, colour), selector: colour.selector(uid) }
    }
}

/// What a set of pods is to a DataPlane: Kong's values of the labels `dataplane-deployment-state` and
/// `dataplane-service-state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideState {
    /// It has the traffic.
    Live,
    /// It has what is staged, and waits for a promotion.
    Preview,
}

impl SideState {
    /// The value of the labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Preview => "preview",
        }
    }
}

/// Name of the Deployment of a colour.
pub fn deployment_name(data_plane: &str, colour: Colour) -> String {
    bounded(&format!("dataplane-{data_plane}"), &format!("-{}", colour.as_str()))
}

/// Name of the ingress Service, unless the spec fixes one for the live side.
pub fn ingress_name(data_plane: &str, state: SideState) -> String {
    bounded(&format!("dataplane-ingress-{data_plane}"), suffix(state))
}

/// Name of the admin Service.
pub fn admin_name(data_plane: &str, state: SideState) -> String {
    bounded(&format!("dataplane-admin-{data_plane}"), suffix(state))
}

/// Name of the Secret that the pods mount for the certificate of their Admin API, unless the template names another.
pub fn certificate_name(data_plane: &str) -> String {
    bounded(&format!("dataplane-{data_plane}"), "-certificate")
}

/// Name of the preview's Service beside a live one whose name the spec fixes.
pub fn preview_of(service: &str) -> String {
    bounded(service, suffix(SideState::Preview))
}

fn suffix(state: SideState) -> &'static str {
    match state {
        SideState::Live => "",
        SideState::Preview => "-preview",
    }
}

/// A name that fits: a longer one is cut, and a hash of the whole keeps two of them apart. So it does where a name
/// has dots, which those of Services cannot have.
fn bounded(name: &str, suffix: &str) -> String {
    if name.len() + suffix.len() <= LONGEST && !name.contains('.') {
        return format!("{name}{suffix}");
    }
    let hash = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).simple().to_string();
    let kept = LONGEST - suffix.len() - HASH - 1;
    let cut: String = name.replace('.', "-").chars().take(kept).collect();
    format!("{}-{}{suffix}", cut.trim_end_matches('-'), &hash[..HASH])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_known_by_its_selector() {
        for colour in [Colour::Blue, Colour::Green] {
            assert_eq!(Colour::of_selector("u-1", &colour.selector("u-1")), Some(colour));
            assert_eq!(Colour::of_selector("u-2", &colour.selector("u-1")), None, "of another DataPlane");
            assert_ne!(colour.selector("u-1"), colour.other().selector("u-1"));
        }
    }

    #[test]
    fn names_fit_and_stay_apart() {
        assert_eq!(deployment_name("edge", Colour::Blue), "dataplane-edge-blue");
        assert_eq!(admin_name("edge", SideState::Preview), "dataplane-admin-edge-preview");
        let long = "a".repeat(63);
        let all = [
            deployment_name(&long, Colour::Blue),
            deployment_name(&long, Colour::Green),
            deployment_name(&format!("{}b", &long[1..]), Colour::Blue),
            ingress_name(&long, SideState::Live),
            ingress_name(&long, SideState::Preview),
            admin_name(&long, SideState::Live),
            preview_of(&long),
            ingress_name("edge.v1", SideState::Live),
            ingress_name("edge-v1", SideState::Live),
        ];
        assert!(all.iter().all(|name| name.len() <= LONGEST && !name.contains('.')), "{all:?}");
        let apart: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(apart.len(), all.len(), "{all:?}");
    }
}
