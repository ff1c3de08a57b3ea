//! Whether the webhook answers: dry-run writes of each kind, each of which it refuses. Nothing is stored.

use interlock_core::api::meta;
use interlock_kong::api as kong;
use kube::Client;
use serde_json::{Value, json};

use super::report::CheckResult;
use crate::cli::common::installation::Installation;

/// Name of the objects that are never stored.
const NAME: &str = "interlock-verify";

/// A write that the webhook refuses.
struct Probe {
    check: &'static str,
    group: &'static str,
    object: Value,
    /// The rule that refuses it.
    rule: &'static str,
    /// Whether the API server refuses the write itself where the webhook does not answer.
    fails_closed: bool,
}

fn probes() -> [Probe; 4] {
    let metadata = json!({ "name": NAME });
    let task = json!({"name": "step", "tasks": ["interlock-verify-names-no-task"]});
    [
        Probe {
            check: "webhook: Instances",
            group: meta::KUDO_GROUP,
            object: json!({
                "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "metadata": metadata,
                "spec": {"operatorVersion": {"name": ""}},
            }),
            rule: "version-required",
            fails_closed: true,
        },
        Probe {
            check: "webhook: OperatorVersions",
            group: meta::KUDO_GROUP,
            object: json!({
                "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion", "metadata": metadata,
                "spec": {
                    "operator": {"name": NAME}, "version": "0.1.0",
                    "plans": {"deploy": {"phases": [{"name": "phase", "steps": [task]}]}},
                },
            }),
            rule: "version-invalid",
            fails_closed: true,
        },
        Probe {
            check: "webhook: DataPlanes",
            group: kong::GROUP,
            object: json!({
                "apiVersion": kong::API_VERSION, "kind": "DataPlane", "metadata": metadata,
                "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy"}]}}}},
            }),
            rule: "dataplane-image",
            fails_closed: true,
        },
        Probe {
            check: "webhook: gateway Deployments",
            group: "apps",
            object: gateway(),
            rule: "RF01",
            fails_closed: false,
        },
    ]
}

/// A guarded Deployment with a router flavor that Kong does not know.
fn gateway() -> Value {
    let labels = json!({ "app": NAME });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "labels": {meta::GUARD: meta::GUARD_FLAVOR}},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{
                "name": "proxy", "image": "kong:3.9",
                "env": [{"name": "KONG_ROUTER_FLAVOR", "value": NAME}],
            }]},
        }},
    })
}

/// One result a kind.
pub(super) async fn check(installation: &Installation) -> Vec<CheckResult> {
    let options = &installation.options;
    let namespace = options.watch_namespaces.first().unwrap_or(&options.namespace);
    let mut results = Vec::new();
    for probe in probes() {
        let kind = probe.object["kind"].as_str().unwrap_or_default();
        let Some(resource) = installation.served.of(probe.group, kind) else {
            results.push(CheckResult::skipped(probe.check, format!("the API server serves no {kind}")));
            continue;
        };
        let path =
            format!("{}?dryRun=All", collection(&resource.api.api_version, namespace, &resource.api.plural));
        let mut object = probe.object.clone();
        object["apiVersion"] = json!(resource.api.api_version);
        let answer = post(&installation.client, &path, &object).await;
        results.push(judge(&probe, answer, &options.namespace));
    }
    results
}

fn collection(api_version: &str, namespace: &str, plural: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    format!("/{root}/{api_version}/namespaces/{namespace}/{plural}")
}

async fn post(client: &Client, path: &str, object: &Value) -> Result<(), kube::Error> {
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes())
        .map_err(|error| kube::Error::Service(Box::new(error)))?;
    client.request::<Value>(request).await.map(drop)
}

fn judge(probe: &Probe, answer: Result<(), kube::Error>, namespace: &str) -> CheckResult {
    let check = probe.check;
    let refused = format!("it refused a dry-run write, as it should [{}]", probe.rule);
    let status = match answer {
        Err(kube::Error::Api(status)) => status,
        Err(error) => {
            return CheckResult::failed(check, format!("no answer: {error}"), "run this again");
        }
        Ok(()) if probe.fails_closed => return CheckResult::ok(check, "it admitted a dry-run write"),
        Ok(()) => {
            let message = "a dry-run write was admitted, so that an answer is not shown: the part `flavors` does not \
                           run, the settings let its rules pass, or the webhook does not answer";
            return CheckResult::skipped(check, message);
        }
    };
    let message = status.message.as_str();
    if message.contains(&format!("[{}]", probe.rule)) || message.contains(&format!("{}:", probe.rule)) {
        return CheckResult::ok(check, refused);
    }
    if message.contains("failed calling webhook") || status.code >= 500 {
        return CheckResult::failed(check, message, not_answering(message, namespace));
    }
    if status.code == 403 && message.contains("cannot create resource") {
        let next = "run this as a user who may create them, as the role `interlock-package-installer` allows";
        return CheckResult::failed(check, message, next);
    }
    if status.code == 404 {
        return CheckResult::failed(check, message, format!("create the namespace {namespace}"));
    }
    // Another rule of ours, or another webhook, refused it: this one was asked before.
    if probe.fails_closed {
        return CheckResult::ok(check, format!("a dry-run write was refused: {message}"));
    }
    CheckResult::skipped(check, format!("a dry-run write was refused by something else: {message}"))
}

fn not_answering(message: &str, namespace: &str) -> String {
    let name = meta::install::NAME;
    if message.contains("x509") || message.contains("certificate") {
        return format!(
            "look at the check `certificate`; `kubectl -n {namespace} rollout restart deployment/{name}` makes \
             every replica read its certificate again"
        );
    }
    format!(
        "start a replica: `kubectl -n {namespace} rollout status deployment/{name}`; docs/break-glass.md says how \
         to get unstuck without one"
    )
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use rstest::rstest;

    use super::super::report::CheckOutcome;
    use super::*;

    fn refused(code: u16, message: &str) -> Result<(), kube::Error> {
        Err(kube::Error::Api(Box::new(Status::failure(message, "").with_code(code))))
    }

    const DEAD: &str = "Internal error occurred: failed calling webhook \"operatorversions.interlock.dev\": failed \
                        to call webhook: Post \"https://interlock.interlock-system.svc:443/validate?timeout=5s\": no \
                        endpoints available for service \"interlock\"";

    #[rstest]
    #[case::by_its_rule(1, refused(422, "invalid: x [version-invalid]"), CheckOutcome::Ok, "")]
    #[case::admitted(1, Ok(()), CheckOutcome::Ok, "")]
    #[case::dead(1, refused(500, DEAD), CheckOutcome::Failed, "rollout status deployment/interlock")]
    #[case::untrusted(
        1,
        refused(500, "failed calling webhook: tls: x509: certificate signed by unknown authority"),
        CheckOutcome::Failed,
        "rollout restart deployment/interlock"
    )]
    #[case::without_a_right(
        1,
        refused(403, "operatorversions.kudo.dev is forbidden: User \"u\" cannot create resource"),
        CheckOutcome::Failed,
        "interlock-package-installer"
    )]
    #[case::no_namespace(
        0,
        refused(404, "namespaces \"ns\" not found"),
        CheckOutcome::Failed,
        "create the namespace ns"
    )]
    #[case::by_another(0, refused(422, "denied by somebody"), CheckOutcome::Ok, "")]
    #[case::open_and_refused(3, refused(422, "RF01: no flavor"), CheckOutcome::Ok, "")]
    #[case::open_and_admitted(3, Ok(()), CheckOutcome::Skipped, "")]
    fn an_answer_is_judged(
        #[case] probe: usize,
        #[case] answer: Result<(), kube::Error>,
        #[case] outcome: CheckOutcome,
        #[case] next: &str,
    ) {
        let result = judge(&probes()[probe], answer, "ns");
        assert_eq!(result.result, outcome, "{result:?}");
        assert!(result.next.clone().unwrap_or_default().contains(next), "{result:?}");
    }
}
