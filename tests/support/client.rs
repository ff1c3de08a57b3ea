//! One user's view of the cluster: `kubectl` with exact output, and raw requests with exact answers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, Request};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::{block_on, resources, testbed, wait_until};

/// What `kubectl apply` keeps of the manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A user, optionally at home in a namespace (`kubectl -n`).
#[derive(Clone)]
pub struct Client {
    name: String,
    kubeconfig: PathBuf,
    namespace: Option<String>,
    kube: Arc<OnceLock<kube::Client>>,
}

impl Client {
    pub fn new(name: &str, kubeconfig: PathBuf) -> Self {
        Self { name: name.to_owned(), kubeconfig, namespace: None, kube: Arc::default() }
    }

    /// The same user with `kubectl` set to a namespace.
    pub fn within(&self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self.clone() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client of the kube crate, on the harness's runtime: use it inside [`block_on`].
    pub fn kube(&self) -> kube::Client {
        self.kube.get_or_init(|| block_on(self.another_kube())).clone()
    }

    /// Another client of the kube crate, on the runtime that this is called in.
    pub async fn another_kube(&self) -> kube::Client {
        let file = Kubeconfig::read_from(&self.kubeconfig).expect("a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        kube::Client::try_from(config.expect("a complete kubeconfig")).expect("a client")
    }

    // === kubectl

    /// Runs kubectl.
    pub fn kubectl(&self, args: &[&str]) -> Output {
        self.kubectl_in(args, "")
    }

    /// Runs kubectl with an input, for `-f -`.
    pub fn kubectl_in(&self, args: &[&str], input: &str) -> Output {
        self.command(Path::new("kubectl"), args, input)
    }

    /// Applies manifests as `kubectl apply` does; fails the test where that fails. What is not there yet is created without
    /// kubectl, whose start costs more than the requests.
    #[track_caller]
    pub fn apply(&self, manifests: &str) {
        let mut objects = go_template::yaml::documents(manifests).expect("YAML");
        objects.retain(|object| !object.is_null());
        if let [list] = &mut objects[..]
            && list["kind"] == "List"
            && let Value::Array(items) = list["items"].take()
        {
            objects = items;
        }
        let created = objects.iter().take_while(|object| self.create_applied(object)).count();
        let rest = &objects[created..];
        if !rest.is_empty() {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": rest});
            self.kubectl_in(&["apply", "-f", "-"], &list.to_string()).ok();
        }
    }

    /// Creates an object as `kubectl apply` does where there is none of its name; whether it did.
    #[track_caller]
    fn create_applied(&self, object: &Value) -> bool {
        let namespace = self.namespace.as_deref().unwrap_or("default");
        let Some(path) = resources::path_within(object, namespace) else { return false };
        if self.read(&path).code != 404 {
            return false;
        }
        let collection = &path[..path.rfind('/').unwrap_or_default()];
        let mut applied = object.clone();
        let metadata = &mut applied["metadata"];
        if metadata["namespace"].is_null() && collection.contains("/namespaces/") {
            metadata["namespace"] = namespace.into();
        }
        if metadata["annotations"].is_null() {
            metadata["annotations"] = json!({});
        }
        applied["metadata"]["annotations"][LAST_APPLIED] = format!("{applied}\n").into();
        let query = "fieldManager=kubectl-client-side-apply&fieldValidation=Strict";
        self.post(&format!("{collection}?{query}"), &applied).ok();
        true
    }

    /// Creates the objects of a manifest in a namespace, each in one of these collections of
    /// `kudo.dev`, without kubectl, whose start costs more than the requests.
    #[track_caller]
    pub fn create_package(&self, namespace: &str, manifests: &str) {
        for object in go_template::yaml::documents(manifests).expect("YAML") {
            let plural = format!("{}s", object["kind"].as_str().unwrap_or_default().to_lowercase());
            let path = format!("/apis/kudo.dev/v1beta1/namespaces/{namespace}/{plural}");
            self.post(&path, &object).ok();
        }
    }

    /// Reads one object; `None` when it is not there. What is in the table is read without kubectl,
    /// whose start costs more than the request, as tests ask again and again.
    #[track_caller]
    pub fn get(&self, resource: &str, name: &str) -> Option<Value> {
        let namespace = self.namespace.as_deref().unwrap_or("default");
        if let Some(path) = resources::path(resource, namespace, name) {
            let answer = self.read(&path);
            return (answer.code != 404).then(|| answer.ok());
        }
        let out = self.kubectl(&["get", resource, name, "-o", "json", "--ignore-not-found"]).ok();
        (!out.trim().is_empty()).then(|| serde_json::from_str(&out).expect("JSON"))
    }

    /// Runs a program as this user: KUBECONFIG set, the testbed's folder first on PATH, HOME out
    /// of the way. A bare name is looked up in the testbed's folder first.
    pub fn command(&self, program: &Path, args: &[&str], input: &str) -> Output {
        let bundled = testbed::BIN.join(program);
        let program = if bundled.exists() { bundled } else { program.to_owned() };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = vec![testbed::BIN.clone()];
        folders.extend(std::env::split_paths(&path));
        let home = self.kubeconfig.with_extension("home");
        std::fs::create_dir_all(&home).expect("a home");
        let mut command = Command::new(&program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &home)
            // It ends before collecting its garbage pays.
            .env("GOGC", "off")
            .env("PATH", std::env::join_paths(folders).expect("a PATH"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(namespace) = self.namespace.as_deref().filter(|_| program.ends_with("kubectl")) {
            command.args(["-n", namespace]);
        }
        command.args(args);
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
        let mut stdin = child.stdin.take().expect("its input");
        // A program that refuses early may not read all of it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let out = child.wait_with_output().expect("it ends");
        Output {
            line: format!(
                "{} {} (as {})",
                program.file_name().unwrap_or_default().to_string_lossy(),
                args.join(" "),
                self.name
            ),
            code: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }

    // === raw requests

    /// One request as this user; the answer is never turned into an error.
    pub fn request(&self, method: Method, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
        let client = self.kube();
        let line = format!("{method} {path} (as {})", self.name);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content_type)
            .header("Accept", "application/json")
            .body(Body::from(body))
            .expect("a request");
        block_on(async move {
            match client.send(request).await {
                Ok(response) => {
                    let code = response.status().as_u16();
                    let bytes = response.into_body().collect_bytes().await.unwrap_or_default();
                    let body = serde_json::from_slice(&bytes)
                        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
                    Answer { line, code, body }
                }
                Err(error) => Answer { line, code: 0, body: Value::String(error.to_string()) },
            }
        })
    }

    pub fn read(&self, path: &str) -> Answer {
        self.request(Method::GET, path, "application/json", Vec::new())
    }

    pub fn post(&self, path: &str, object: &Value) -> Answer {
        self.request(Method::POST, path, "application/json", object.to_string().into_bytes())
    }

    pub fn put(&self, path: &str, object: &Value) -> Answer {
        self.request(Method::PUT, path, "application/json", object.to_string().into_bytes())
    }

    /// PUT of what `edit` makes of the stored object: made again of the newer one where another write
    /// came between, as client-go's `RetryOnConflict` does. A path may carry `?dryRun=All`.
    #[track_caller]
    pub fn put_edited(&self, path: &str, edit: impl Fn(&mut Value)) -> Answer {
        let stored = path.split('?').next().unwrap_or(path);
        wait_until("no other write comes between", Duration::from_secs(60), || {
            let mut object = self.read(stored).ok();
            edit(&mut object);
            let answer = self.put(path, &object);
            let conflict = answer.code == 409 && answer.message().contains("the object has been modified");
            if conflict { Err(answer.to_string()) } else { Ok(answer) }
        })
    }

    pub fn merge_patch(&self, path: &str, patch: &Value) -> Answer {
        self.request(Method::PATCH, path, "application/merge-patch+json", patch.to_string().into_bytes())
    }

    pub fn json_patch(&self, path: &str, patch: &Value) -> Answer {
        self.request(Method::PATCH, path, "application/json-patch+json", patch.to_string().into_bytes())
    }

    /// Server-side apply; the path carries `?fieldManager=...`.
    pub fn server_side_apply(&self, path: &str, object: &Value) -> Answer {
        self.request(Method::PATCH, path, "application/apply-patch+yaml", object.to_string().into_bytes())
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.request(Method::DELETE, path, "application/json", Vec::new())
    }
}

/// What a program printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Output {
    line: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// The output, of a program that had to succeed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "this had to succeed: {self}");
        self.stdout
    }

    /// What it complained of, of a program that had to fail.
    #[track_caller]
    pub fn refused(self) -> String {
        assert_ne!(self.code, 0, "this had to be refused: {self}");
        self.stderr
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = format!("{} ended with {}", self.line, self.code);
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let _ = write!(text, "\n--- {name}\n{}", stream.trim_end());
        }
        f.write_str(&text)
    }
}

/// What the API server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    line: String,
    /// 0 = no answer.
    pub code: u16,
    pub body: Value,
}

impl Answer {
    /// The object, of a request that had to succeed.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.code), "this had to succeed: {self}");
        self.body
    }

    /// The Status, of a request that had to be answered with `code`.
    #[track_caller]
    pub fn refused(self, code: u16) -> Value {
        assert_eq!(self.code, code, "this had to be answered with {code}: {self}");
        self.body
    }

    /// `message` of the Status.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} answered {}: {}", self.line, self.code, self.body)
    }
}
