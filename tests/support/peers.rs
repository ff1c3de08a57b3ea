//! Programs of others that tests and benchmarks run beside ours, built on first use.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

use super::process;

/// Folder with KUDO's client, its manager and the cases of its suites.
static KUDO: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/kudo/build"));

/// Folder with kstatus.
static KSTATUS: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/kstatus/build"));

/// KUDO's own client, v0.19.0.
pub fn kubectl_kudo() -> PathBuf {
    KUDO.join("kubectl-kudo")
}

/// KUDO's own manager, v0.19.0: controllers and webhook.
pub fn kudo_manager() -> PathBuf {
    KUDO.join("kudo-manager")
}

/// The cases of KUDO's own suites, v0.19.0: `integration`, `e2e`, and the `manifests` of the first.
pub fn kudo_cases() -> PathBuf {
    KUDO.join("test")
}

/// What kstatus reads from an object's conditions, which is what Flux, Argo CD and `helm --wait` wait for.
#[track_caller]
pub fn kstatus(object: &Value) -> String {
    let mut child = Command::new(KSTATUS.join("kstatus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kstatus starts");
    writeln!(child.stdin.take().expect("it has a stdin"), "{object}").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    said.split('\t').next().unwrap_or_default().to_owned()
}

/// Folder with Helm.
static HELM: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/helm/build"));

/// Helm itself.
pub fn helm() -> PathBuf {
    HELM.join("helm")
}

/// Folder with promtool.
static PROMTOOL: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/promtool/build"));

/// Prometheus' own check of rules.
pub fn promtool() -> PathBuf {
    PROMTOOL.join("promtool")
}

/// Folder with Envoy Gateway and its definitions.
static ENVOY_GATEWAY: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/envoygateway/build"));

/// Envoy Gateway, v1.9.1.
pub fn envoy_gateway() -> PathBuf {
    ENVOY_GATEWAY.join("envoy-gateway")
}

/// A folder with the definitions of its kinds and of the Gateway API's.
pub fn envoy_gateway_definitions() -> PathBuf {
    ENVOY_GATEWAY.join("crds")
}

/// Envoy, 1.40.
pub fn envoy() -> PathBuf {
    static ENVOY: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/envoy/build"));
    ENVOY.join("envoy")
}

/// Limitador's library, 0.14, as a server.
pub fn limitador() -> PathBuf {
    ASKED.join("limitador")
}

/// What answers as Authorino does.
pub fn auth_server() -> PathBuf {
    ASKED.join("auth-server")
}

/// Folder with both.
static ASKED: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/limitador/build"));

/// Folder with Flux's library.
static FLUX: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/flux/build"));

/// A program that applies as Flux does.
pub fn flux() -> PathBuf {
    FLUX.join("flux")
}

/// Folder with Argo CD's engine.
static ARGO: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/argo/build"));

/// A program that syncs as Argo CD does.
pub fn argo() -> PathBuf {
    ARGO.join("argo")
}
