//! Objects that are drawn from few values, so that what was applied, what is desired and what is live have much in
//! common.

use serde_json::{Map, Value, json};

use crate::merges::Draw;

/// What makes an object of each kind.
pub const KINDS: [fn(&mut Draw) -> Value; 6] =
    [deployment, stateful_set, cron_job, service, webhooks, disruption_budget];

/// A member of an element beside its key, in one of three states.
pub fn beside_the_key(list: &str, state: usize) -> Option<(&'static str, Value)> {
    let text = json!(format!("v{state}"));
    let member = match list {
        "containers" | "initContainers" | "ephemeralContainers" => ("image", text),
        "env" => ("value", text),
        "ports" | "volumeDevices" | "ownerReferences" => ("name", text),
        "volumeMounts" => ("subPath", text),
        "volumes" if state == 0 => ("emptyDir", json!({})),
        "volumes" => ("configMap", json!({"name": text})),
        "hostAliases" => ("hostnames", json!([text])),
        "topologySpreadConstraints" => ("maxSkew", json!(state)),
        "webhooks" => ("failurePolicy", text),
        "matchConditions" | "variables" => ("expression", text),
        "drivers" => ("nodeID", text),
        "secrets" => ("namespace", text),
        "resourceClaims" if state == 0 => ("resourceClaimTemplateName", text),
        "resourceClaims" => ("resourceClaimName", text),
        _ => return None,
    };
    Some(member)
}

/// An object of members that are there or not.
struct Drawn<'d>(&'d mut Draw, Map<String, Value>);

impl<'d> Drawn<'d> {
    fn new(draw: &'d mut Draw, fixed: Value) -> Self {
        Self(draw, fixed.as_object().cloned().unwrap_or_default())
    }

    /// A member that is left out once in so many times.
    fn with(mut self, name: &str, but_for: usize, value: impl FnOnce(&mut Draw) -> Value) -> Self {
        if !self.0.is_in(but_for) {
            let value = value(self.0);
            self.1.insert(name.to_owned(), value);
        }
        self
    }

    fn done(self) -> Value {
        Value::Object(self.1)
    }
}

fn text(draw: &mut Draw) -> Value {
    json!(format!("v{}", draw.below(3)))
}

fn texts(draw: &mut Draw) -> Value {
    json!(draw.some(&["a", "b", "c"]))
}

fn map(draw: &mut Draw) -> Value {
    let keys = draw.some(&["a", "b", "c"]);
    keys.into_iter().map(|key| (key.to_owned(), text(draw))).collect::<Map<_, _>>().into()
}

/// Some elements of a list, each made of its key.
fn list<K: Clone>(draw: &mut Draw, keys: &[K], element: impl Fn(&mut Draw, K) -> Value) -> Value {
    draw.some(keys).into_iter().map(|key| element(draw, key)).collect()
}

fn metadata(draw: &mut Draw) -> Value {
    Drawn::new(draw, json!({"name": "x"}))
        .with("labels", 3, map)
        .with("annotations", 3, map)
        .with("finalizers", 2, texts)
        .done()
}

fn container(draw: &mut Draw, name: &str) -> Value {
    let port = |draw: &mut Draw, port: u16| {
        Drawn::new(draw, json!({"containerPort": port}))
            .with("name", 2, text)
            .with("protocol", 2, text)
            .done()
    };
    let variable = |draw: &mut Draw, name: &str| {
        let reference = |draw: &mut Draw| json!({"secretKeyRef": {"name": "s", "key": text(draw)}});
        Drawn::new(draw, json!({"name": name})).with("value", 2, text).with("valueFrom", 2, reference).done()
    };
    let mount = |draw: &mut Draw, path: &str| {
        Drawn::new(draw, json!({"mountPath": path, "name": "a"})).with("subPath", 2, text).done()
    };
    let probe = |draw: &mut Draw| {
        Drawn::new(draw, json!({}))
            .with("httpGet", 2, |draw| json!({"path": text(draw), "port": 80}))
            .with("exec", 2, |draw| json!({"command": texts(draw)}))
            .with("periodSeconds", 2, |draw| json!(draw.below(3)))
            .done()
    };
    Drawn::new(draw, json!({"name": name}))
        .with("image", 4, text)
        .with("args", 3, texts)
        .with("ports", 3, |draw| list(draw, &[80, 443, 8080], port))
        .with("env", 3, |draw| list(draw, &["A", "B", "C", "D"], variable))
        .with("volumeMounts", 3, |draw| list(draw, &["/a", "/b", "/c"], mount))
        .with("readinessProbe", 3, probe)
        .with("resources", 3, |draw| json!({"limits": map(draw)}))
        .done()
}

fn pod_template(draw: &mut Draw) -> Value {
    let volume = |draw: &mut Draw, name: &str| {
        Drawn::new(draw, json!({"name": name}))
            .with("configMap", 2, |draw| json!({"name": text(draw), "optional": draw.is_in(2)}))
            .with("emptyDir", 2, |_| json!({}))
            .done()
    };
    let toleration = |draw: &mut Draw, key: &str| json!({"key": key, "value": text(draw)});
    let alias = |draw: &mut Draw, ip: &str| json!({"ip": ip, "hostnames": texts(draw)});
    let spec = Drawn::new(draw, json!({}))
        .with("containers", 20, |draw| list(draw, &["a", "b", "c"], container))
        .with("initContainers", 2, |draw| list(draw, &["i", "j"], container))
        .with("volumes", 2, |draw| list(draw, &["a", "b", "c"], volume))
        .with("tolerations", 2, |draw| list(draw, &["a", "b"], toleration))
        .with("hostAliases", 2, |draw| list(draw, &["10.0.0.1", "10.0.0.2"], alias))
        .with("imagePullSecrets", 2, |draw| list(draw, &["a", "b", "c"], |_, name| json!({"name": name})))
        .with("nodeSelector", 2, map)
        .done();
    Drawn::new(draw, json!({"spec": spec})).with("metadata", 2, metadata).done()
}

fn deployment(draw: &mut Draw) -> Value {
    let strategy = |draw: &mut Draw| {
        Drawn::new(draw, json!({}))
            .with("type", 3, text)
            .with("rollingUpdate", 2, |draw| json!({"maxSurge": draw.below(3)}))
            .done()
    };
    let spec = Drawn::new(draw, json!({}))
        .with("replicas", 2, |draw| json!(draw.below(3)))
        .with("strategy", 3, strategy)
        .with("selector", 2, |draw| json!({"matchLabels": map(draw)}))
        .with("template", 20, pod_template)
        .done();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(draw), "spec": spec})
}

fn stateful_set(draw: &mut Draw) -> Value {
    let claim = |draw: &mut Draw, name: &str| json!({"metadata": {"name": name, "labels": map(draw)}});
    let spec = Drawn::new(draw, json!({}))
        .with("volumeClaimTemplates", 2, |draw| list(draw, &["a", "b"], claim))
        .with("template", 20, pod_template)
        .done();
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(draw), "spec": spec})
}

fn cron_job(draw: &mut Draw) -> Value {
    let job = json!({"spec": {"template": pod_template(draw)}});
    let spec = Drawn::new(draw, json!({"jobTemplate": job})).with("schedule", 2, text).done();
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata(draw), "spec": spec})
}

fn service(draw: &mut Draw) -> Value {
    let port = |draw: &mut Draw, port: u16| {
        Drawn::new(draw, json!({"port": port}))
            .with("name", 2, text)
            .with("protocol", 2, text)
            .with("nodePort", 2, |draw| json!(30000 + draw.below(3)))
            .done()
    };
    let spec = Drawn::new(draw, json!({}))
        .with("ports", 5, |draw| list(draw, &[53, 80, 443], port))
        .with("selector", 2, map)
        .with("externalIPs", 2, texts)
        .done();
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(draw), "spec": spec})
}

fn webhooks(draw: &mut Draw) -> Value {
    let condition = |draw: &mut Draw, name: &str| json!({"name": name, "expression": text(draw)});
    let webhook = |draw: &mut Draw, name: &str| {
        Drawn::new(draw, json!({"name": name}))
            .with("failurePolicy", 2, text)
            .with("matchConditions", 2, |draw| list(draw, &["a", "b", "c"], condition))
            .with("rules", 2, |draw| json!([{"resources": texts(draw)}]))
            .done()
    };
    let webhooks = list(draw, &["a.io", "b.io", "c.io"], webhook);
    let kind = "ValidatingWebhookConfiguration";
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata(draw), "webhooks": webhooks,
    })
}

fn disruption_budget(draw: &mut Draw) -> Value {
    let spec = Drawn::new(draw, json!({}))
        .with("selector", 3, |draw| json!({"matchLabels": map(draw)}))
        .with("maxUnavailable", 2, |draw| json!(draw.below(3)))
        .done();
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(draw), "spec": spec})
}
