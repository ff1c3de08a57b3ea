//! The certificate of the admin API: one for both sides, so that no promotion changes a pod template.

use interlock_core::certificate::CertificateRequest;
use serde_json::json;

use super::owner::{ChildMetadata, DataPlaneOwner};
use crate::api::labels;
use crate::data_plane::rollout::side::SideState;

/// The longest common name that a certificate may have (RFC 5280).
const LONGEST: usize = 64;

/// The request for it: Kong's name and labels; the names are those that its clients find the pods under.
pub fn certificate(owner: &DataPlaneOwner) -> CertificateRequest {
    let services = [SideState::Live, SideState::Preview].map(|state| owner.admin_name(state));
    let names: Vec<String> = services.iter().flat_map(|service| names(service, &owner.namespace)).collect();
    let labels = [(labels::SERVICE_SECRET, services[0].as_str())];
    CertificateRequest {
        secret: json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": owner.metadata(&owner.certificate_name(), &labels, ChildMetadata::default()),
            "type": "kubernetes.io/tls",
        }),
        common_name: names.first().filter(|name| name.len() <= LONGEST).unwrap_or(&owner.name).clone(),
        names,
        keeps_found: owner.kept.is_some(),
        is_awaited: false,
    }
}

/// A pod behind a headless Service has a name below that of the Service.
fn names(service: &str, namespace: &str) -> [String; 4] {
    let service = format!("{service}.{namespace}.svc");
    let whole = format!("{service}.cluster.local");
    [format!("*.{service}"), service, format!("*.{whole}"), whole]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> DataPlaneOwner {
        DataPlaneOwner {
            namespace: "kong".to_owned(),
            name: name.to_owned(),
            uid: "u-1".to_owned(),
            service_selector: None,
            kept: None,
        }
    }

    #[test]
    fn it_has_kongs_names_and_labels() {
        let made = certificate(&owner("edge"));
        assert_eq!(made.common_name, "*.dataplane-admin-edge.kong.svc");
        for name in
            ["*.dataplane-admin-edge.kong.svc", "*.dataplane-admin-edge-preview.kong.svc.cluster.local"]
        {
            assert!(made.names.iter().any(|there| there == name), "{:?}", made.names);
        }
        let metadata = &made.secret["metadata"];
        assert_eq!(metadata["name"], "dataplane-edge-certificate");
        assert_eq!(
            metadata["labels"],
            json!({
                "app": "edge",
                "gateway-operator.konghq.com/managed-by": "dataplane",
                "gateway-operator.konghq.com/service-secret": "dataplane-admin-edge",
            })
        );
        assert_eq!(metadata["ownerReferences"][0]["uid"], "u-1");
        assert!(made.secret["data"].is_null());
    }

    #[test]
    fn a_long_common_name_is_none() {
        let name = "a".repeat(60);
        assert_eq!(certificate(&owner(&name)).common_name, name);
    }
}
