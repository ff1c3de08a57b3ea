//! A test's own namespace.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Cluster, Interlock, wait_until};

/// Kinds whose objects cost something while nobody looks at them.
const ACTING: [(&str, &str); 8] = [
    ("kudo.dev/v1beta1", "instances"),
    ("gateway-operator.konghq.com/v1beta1", "dataplanes"),
    ("batch/v1", "cronjobs"),
    ("batch/v1", "jobs"),
    ("apps/v1", "deployments"),
    ("apps/v1", "statefulsets"),
    ("apps/v1", "daemonsets"),
    ("v1", "pods"),
];

/// What acts by itself in it is deleted at the end of the test; after a failure its contents are printed first.
pub struct Namespace<'a> {
    cluster: &'a Cluster,
    name: String,
}

impl<'a> Namespace<'a> {
    pub(super) fn new(cluster: &'a Cluster, name: String) -> Self {
        Self { cluster, name }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Path of a namespaced resource: `path("kudo.dev/v1beta1", "instances", "x")`; an empty
    /// name gives the collection, the core group is `v1`.
    pub fn path(&self, api_version: &str, resource: &str, name: &str) -> String {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let path = format!("/{root}/{api_version}/namespaces/{}/{resource}", self.name);
        if name.is_empty() { path } else { format!("{path}/{name}") }
    }

    /// The cluster's admin, at home here.
    pub fn admin(&self) -> Client {
        self.cluster.admin().within(&self.name)
    }

    /// A user who may do everything in this namespace and nothing elsewhere.
    pub fn user(&self, name: &str) -> Client {
        self.bind(name, "ClusterRole", "cluster-admin");
        let user = self.stranger(name);
        let path = format!("{}?limit=1", self.path("v1", "configmaps", ""));
        wait_until("the binding counts", Duration::from_secs(60), || match user.read(&path) {
            answer if answer.code == 200 => Ok(()),
            answer => Err(answer.to_string()),
        });
        user
    }

    /// A user without any right.
    pub fn stranger(&self, name: &str) -> Client {
        self.cluster.user(name, &[]).within(&self.name)
    }

    /// A user with exactly these rules here, as in a Role:
    /// `json!([{"apiGroups": ["kudo.dev"], "resources": ["instances"], "verbs": ["get"]}])`.
    pub fn user_with(&self, name: &str, rules: &Value) -> Client {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": format!("test-{name}"), "namespace": self.name},
            "rules": rules,
        });
        self.admin().post(&self.path("rbac.authorization.k8s.io/v1", "roles", ""), &role).ok();
        self.bind(name, "Role", &format!("test-{name}"));
        self.stranger(name)
    }

    /// Binds a user to a role here; done twice, the second time changes nothing.
    pub fn bind(&self, user: &str, kind: &str, role: &str) {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": format!("test-{user}-{role}"), "namespace": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        let answer =
            self.admin().post(&self.path("rbac.authorization.k8s.io/v1", "rolebindings", ""), &binding);
        assert!(matches!(answer.code, 201 | 409), "{answer}");
    }

    /// A quota under which no further object of a built-in kind can be made: a way to hold a plan at a step.
    #[track_caller]
    pub fn forbid(&self, resource: &str) {
        let name = format!("no-{resource}");
        let quota = serde_json::json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": { "name": name }, "spec": { "hard": { format!("count/{resource}"): "0" } },
        });
        let admin = self.admin();
        admin.apply(&quota.to_string());
        super::wait_until("the quota counts", std::time::Duration::from_secs(60), || {
            let found = admin.get("resourcequota", &name).ok_or("no quota")?;
            if found["status"]["hard"].is_null() { Err(format!("{found:#}")) } else { Ok(()) }
        });
        // Admission has a watch of its own on quotas.
        let (api_version, object) = one_of(resource);
        let plural = resource.split('.').next().unwrap_or(resource);
        let path = format!("{}?dryRun=All", self.path(api_version, plural, ""));
        super::wait_until("the quota is kept", std::time::Duration::from_secs(60), || {
            let answer = admin.post(&path, &object);
            if answer.code == 403 { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    /// Takes the quota away again.
    #[track_caller]
    pub fn allow(&self, resource: &str) {
        self.admin().kubectl(&["delete", "resourcequota", &format!("no-{resource}")]).ok();
    }
}

/// The least object of a built-in kind.
fn one_of(resource: &str) -> (&'static str, serde_json::Value) {
    let labels = serde_json::json!({"app": "one"});
    let pod = serde_json::json!({"containers": [{"name": "one", "image": "one"}]});
    let (api_version, rest) = match resource {
        "secrets" => ("v1", serde_json::json!({})),
        "pods" => ("v1", serde_json::json!({"spec": pod})),
        "controllerrevisions.apps" => ("apps/v1", serde_json::json!({"revision": 1, "data": {}})),
        "deployments.apps" => {
            let template = serde_json::json!({"metadata": {"labels": labels}, "spec": pod});
            let spec = serde_json::json!({"selector": {"matchLabels": labels}, "template": template});
            ("apps/v1", serde_json::json!({"spec": spec}))
        }
        other => panic!("add the least object of {other}"),
    };
    let mut object = serde_json::json!({"apiVersion": api_version, "metadata": {"name": "one"}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    (api_version, object)
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for kinds in ["instances.kudo.dev,operatorversions.kudo.dev", "all,configmaps,events"] {
                let seen = self.admin().kubectl(&["get", kinds, "--ignore-not-found"]);
                eprintln!("--- {kinds} in namespace {}\n{}{}", self.name, seen.stdout, seen.stderr);
            }
            Interlock::print_logs(self.cluster.dir());
        }
        let admin = self.cluster.admin();
        if self.cluster.ready().is_none() {
            let _ = admin.delete(&format!("/api/v1/namespaces/{}", self.name));
        } else {
            // Deleting a namespace costs two requests for each kind that there is, and all cases together a fifth of what
            // the API server has to do.
            for (api_version, resource) in ACTING {
                let _ = admin.delete(&self.path(api_version, resource, ""));
            }
        }
        self.cluster.leave();
    }
}
