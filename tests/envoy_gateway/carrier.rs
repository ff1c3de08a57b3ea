//! That what is rendered reaches Envoy in the form that it has, held against a policy that is written by hand.

use std::time::Duration;

use crate::site::{self, HOST, PORT};
use crate::support::envoy_gateway::{EnvoyGateway, condition};
use crate::support::limitador::Limitador;
use crate::support::{service_path, wait_until};

const LIMITS: &str = r#"
- namespace: app/gw/HTTPRoute/app/api
  max_value: 3
  seconds: 3600
  conditions: ['descriptors[0]["limit.get__1"] == "1"']
  variables: []
"#;

#[test]
fn a_composite_filter_limits_one_route_of_a_real_envoy() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start(&cluster);
    let admin = cluster.admin();
    let limitador = Limitador::start(&cluster, service_path::REPLICAS[1]);
    limitador.set_limits(LIMITS);
    site::create(&admin);
    let envoy = gateway.proxy("app", "gw");
    envoy.await_status(PORT, HOST, "/limited", 200);
    assert_eq!(envoy.get(PORT, "other.example.org", "/", ""), Some(404));

    admin.apply(include_str!("patch_policy.yaml"));
    wait_until("the patches are in what Envoy Gateway hands out", Duration::from_secs(60), || {
        let policy = admin.within("app").get("envoypatchpolicy", "limits").ok_or("no policy")?;
        let programmed = condition(&policy["status"]["ancestors"][0]["conditions"], "Programmed");
        if programmed == Some("True") { Ok(()) } else { Err(format!("{policy:#}")) }
    });
    envoy.await_status(PORT, HOST, "/limited", 429);

    let asked = limitador.asked();
    let question = serde_json::json!({
        "domain": "app/gw/HTTPRoute/app/api", "descriptors": [{"limit.get__1": "1"}],
    });
    assert!(asked.iter().all(|line| line["asked"] == question), "{asked:#?}");
    assert_eq!(asked.iter().filter(|line| line["limited"] == false).count(), 3, "{asked:#?}");
    assert_eq!(envoy.get(PORT, HOST, "/other", ""), Some(200));
    assert_eq!(limitador.asked().len(), asked.len(), "the other rule is not asked about");
}
