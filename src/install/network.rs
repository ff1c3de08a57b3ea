//! Which traffic may reach the pods, and optionally which may leave them.

use interlock_core::api::meta::install;
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::InstallOptions;
use super::metadata::{namespaced, strings};

/// Usual ports of API servers; the policy applies to the port behind their Service.
const API_SERVER: [i32; 2] = [443, 6443];
const DNS: i32 = 53;
/// The ports of a gateway's pods that are asked: `admin` in charts; the admin API and the status API of DataPlanes.
const GATEWAY: [i32; 3] = [8001, 8444, 8100];

/// Ingress: the webhook, from the API servers where their addresses are known, else from anywhere, as an
/// API server has no label; and the metrics, from anywhere, as the API server authorizes their readers. A node reaches its own pods whatever a policy is, so probes still work. Egress
/// is not restricted: the ports differ between clusters, and a process that cannot reach the API server is
/// never ready.
pub(super) fn ingress(options: &InstallOptions) -> NetworkPolicy {
    let peer = |cidr: String| NetworkPolicyPeer {
        ip_block: Some(IPBlock { cidr, except: None }),
        ..NetworkPolicyPeer::default()
    };
    let from: Vec<_> = options.api_servers.iter().map(|range| peer(range.to_string())).collect();
    let rule = NetworkPolicyIngressRule {
        ports: Some(vec![port("TCP", i32::from(install::WEBHOOK_PORT))]),
        from: (!from.is_empty()).then_some(from),
    };
    let metrics = NetworkPolicyIngressRule {
        ports: Some(vec![port("TCP", i32::from(install::METRICS_PORT))]),
        from: None,
    };
    let spec = NetworkPolicySpec { ingress: Some(vec![rule, metrics]), ..of_our_pods("Ingress") };
    NetworkPolicy { metadata: namespaced(install::NAME, options), spec: Some(spec) }
}

/// Egress: the API server, DNS, and the Admin API and status API of gateways. An overlay of its own, never part of the
/// base: users have to adapt it to the cluster.
pub fn egress(options: &InstallOptions) -> NetworkPolicy {
    let mut ports: Vec<_> = API_SERVER.map(|number| port("TCP", number)).into();
    ports.extend([port("TCP", DNS), port("UDP", DNS)]);
    ports.extend(GATEWAY.map(|number| port("TCP", number)));
    let rule = NetworkPolicyEgressRule { ports: Some(ports), to: None };
    let spec = NetworkPolicySpec { egress: Some(vec![rule]), ..of_our_pods("Egress") };
    NetworkPolicy { metadata: namespaced(install::EGRESS_POLICY, options), spec: Some(spec) }
}

fn of_our_pods(direction: &str) -> NetworkPolicySpec {
    let name = [("app.kubernetes.io/name".to_owned(), "interlock".to_owned())].into();
    NetworkPolicySpec {
        pod_selector: Some(LabelSelector { match_labels: Some(name), match_expressions: None }),
        policy_types: Some(strings([direction])),
        ..NetworkPolicySpec::default()
    }
}

fn port(protocol: &str, number: i32) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some(protocol.to_owned()),
        port: Some(IntOrString::Int(number)),
        end_port: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::install::{Layout, Part, objects};

    /// Only the overlay restricts egress.
    #[test]
    fn an_installation_restricts_nothing_that_goes_out() {
        for layout in [Layout::Together, Layout::Split] {
            let all = objects(Part::All, &InstallOptions { layout, ..InstallOptions::default() });
            let policies: Vec<_> = all.iter().filter(|o| o["kind"] == "NetworkPolicy").collect();
            assert_eq!(policies.len(), 1, "{policies:#?}");
            assert_eq!(policies[0]["spec"]["policyTypes"], json!(["Ingress"]));
            assert_eq!(policies[0]["spec"].get("egress"), None);
        }
    }

    #[test]
    fn only_api_servers_come_in_where_their_addresses_are_known() {
        let api_servers = vec!["10.0.0.0/24".parse().unwrap(), "10.1.0.7".parse().unwrap()];
        let rule =
            json!(ingress(&InstallOptions { api_servers, ..InstallOptions::default() }))["spec"]["ingress"]
                [0]
            .clone();
        let blocks = json!([{"ipBlock": {"cidr": "10.0.0.0/24"}}, {"ipBlock": {"cidr": "10.1.0.7/32"}}]);
        assert_eq!((&rule["from"], &rule["ports"][0]["port"]), (&blocks, &json!(9443)));
        assert_eq!(json!(ingress(&InstallOptions::default()))["spec"]["ingress"][0].get("from"), None);
    }

    /// Policies add up: the overlay's does not restrict ingress.
    #[test]
    fn the_overlay_restricts_only_what_goes_out() {
        let policy = json!(egress(&InstallOptions::default()));
        assert_ne!(policy["metadata"]["name"], install::NAME);
        assert_eq!(policy["spec"]["policyTypes"], json!(["Egress"]));
        assert_eq!(policy["spec"].get("ingress"), None);
    }
}
