//! What to do about a gateway. Pure.

use interlock_core::api::object::NamespacedName;
use interlock_core::api::remedy::Remedy;

use super::flavor::gateway_ref::GatewayRef;

/// The remedy for any condition on a gateway that reports a problem.
pub fn of_gateway(gateway: &GatewayRef) -> Remedy {
    let kind = gateway.kind.as_str().to_ascii_lowercase();
    let NamespacedName { namespace, name } = &gateway.name;
    Remedy {
        next: "Find what holds its pods up.".to_owned(),
        command: format!("interlock flavor diagnose {kind}/{name} -n {namespace}"),
    }
}

/// The remedy for a DataPlane that only a person can help; its condition says why.
pub fn of_stalled(data_plane: &NamespacedName) -> Remedy {
    let NamespacedName { namespace, name } = data_plane;
    Remedy {
        next: "Do what the message says.".to_owned(),
        command: format!("interlock why dataplane/{namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::flavor::gateway_ref::GatewayKind;

    #[test]
    fn a_gateway_is_diagnosed() {
        let gateway = GatewayRef { kind: GatewayKind::DataPlane, name: NamespacedName::new("kong", "edge") };
        assert_eq!(of_gateway(&gateway).command, "interlock flavor diagnose dataplane/edge -n kong");
    }
}
