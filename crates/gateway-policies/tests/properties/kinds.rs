//! An inherited kind and a direct one.

use std::sync::Arc;

use gateway_policies::{ObjectKind, PolicyClass, PolicyKind, Rules, TargetKind, Violation, rules_under};
use serde_json::{Map, Value};

pub fn all() -> [Arc<dyn PolicyKind>; 2] {
    [Arc::new(Limit), Arc::new(Certificate)]
}

struct Limit;

impl PolicyKind for Limit {
    fn name(&self) -> &str {
        "LimitPolicy"
    }

    fn group(&self) -> &str {
        "example.org"
    }

    fn targets(&self) -> &[TargetKind] {
        const {
            &[
                TargetKind::whole(ObjectKind::GatewayClass),
                TargetKind::with_sections(ObjectKind::Gateway),
                TargetKind::with_sections(ObjectKind::ListenerSet),
                TargetKind::with_sections(ObjectKind::XListenerSet),
                TargetKind::with_sections(ObjectKind::HttpRoute),
                TargetKind::with_sections(ObjectKind::GrpcRoute),
                TargetKind::with_sections(ObjectKind::TlsRoute),
                TargetKind::with_sections(ObjectKind::TcpRoute),
                TargetKind::with_sections(ObjectKind::UdpRoute),
            ]
        }
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        rules_under(block, "limits")
    }
}

struct Certificate;

impl PolicyKind for Certificate {
    fn name(&self) -> &str {
        "CertificatePolicy"
    }

    fn group(&self) -> &str {
        "example.org"
    }

    fn class(&self) -> PolicyClass {
        PolicyClass::Direct
    }

    fn targets(&self) -> &[TargetKind] {
        const { &[TargetKind::with_sections(ObjectKind::Gateway), TargetKind::with_sections(ObjectKind::Service)] }
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        rules_under(block, "limits")
    }
}
