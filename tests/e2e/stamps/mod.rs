//! Stamps of every size: none makes a write fail that the API server alone would take, and a run
//! goes on from them.
//!
//! What the API server alone says is asked with the bookkeeping user, which admission skips.

use std::collections::BTreeSet;
use std::time::Duration;

use interlock_core::api::stamp::{Envelope, KeptSpec, SpecHash};
use interlock_core::api::{meta, revision};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Client, Cluster, Interlock, Namespace, announce, wait_until};

mod edges;
mod runs;
mod secrets;

const CAP: Duration = Duration::from_secs(120);
const PACKAGE: &str = include_str!("operatorversion.yaml");
const KB: usize = 1024;

/// Kilobytes of the specs: the short list, and that of `make soak`.
fn sizes() -> &'static [usize] {
    match std::env::var_os("INTERLOCK_SOAK") {
        None => &[1, 31, 33, 200, 400],
        Some(_) => &[1, 8, 31, 33, 64, 100, 128, 200, 250, 400, 700, 1000, 1400],
    }
}

/// Printable text that does not shrink much; another one for each seed.
fn noise(length: usize, seed: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(LETTERS[usize::try_from(state >> 58).unwrap()])
        })
        .collect()
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A namespace with the package.
struct Ground<'a> {
    ns: Namespace<'a>,
    user: Client,
    /// The API server alone.
    bare: Client,
}

/// The ways that a manifest takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Apply,
    ServerSideApply,
    CreateAndMergePatch,
    CreateAndPut,
}

impl<'a> Ground<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let ns = cluster.namespace("stamps");
        let user = ns.user("alice");
        user.create_package(ns.name(), PACKAGE);
        ns.bind(meta::CONTROLLER_USER, "ClusterRole", "cluster-admin");
        let bare = cluster.user("interlock", &[]).within(ns.name());
        // The authorizer learns of the binding a moment later; without it the process reads no Secrets here.
        let secrets = format!("{}?limit=1", ns.path("v1", "secrets", ""));
        wait_until("the bare client has its rights", CAP, || {
            let answer = bare.read(&secrets);
            if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
        });
        Self { ns, user, bare }
    }

    fn path(&self, name: &str) -> String {
        self.ns.path(meta::KUDO_API_VERSION, "instances", name)
    }

    fn manifest(&self, name: &str, blob: &str, gated: bool) -> Value {
        json!({
            "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
            "metadata": {"name": name, "namespace": self.ns.name()},
            "spec": {"operatorVersion": {"name": "large-0.1.0"},
                "parameters": {"BLOB": blob, "GATED": gated.to_string()}},
        })
    }

    /// Sends a manifest; what was said where it was refused. On the way of a new object, or of
    /// one that is there; `dry` changes nothing.
    fn send(
        &self,
        client: &Client,
        way: Way,
        object: &Value,
        found: Option<&Value>,
        dry: bool,
    ) -> Result<(), String> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let (path, suffix) = (self.path(name), if dry { "?dryRun=All" } else { "" });
        let kubectl = |arguments: &[&str]| {
            let dry = if dry { &["--dry-run=server"][..] } else { &[] };
            let out = client.kubectl_in(&[arguments, dry].concat(), &object.to_string());
            if out.code == 0 { Ok(()) } else { Err(out.stderr) }
        };
        let answer = match (way, found) {
            (Way::Apply, _) => return kubectl(&["apply", "-f", "-"]),
            (Way::ServerSideApply, _) => return kubectl(&["apply", "--server-side", "-f", "-"]),
            (_, None) => client.post(&format!("{}{suffix}", self.path("")), object),
            (Way::CreateAndMergePatch, _) => {
                client.merge_patch(&format!("{path}{suffix}"), &json!({"spec": object["spec"]}))
            }
            (Way::CreateAndPut, Some(found)) => {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
                client.put(&format!("{path}{suffix}"), &object)
            }
        };
        if (200..300).contains(&answer.code) { Ok(()) } else { Err(answer.to_string()) }
    }

    /// Waits until plan deploy is at its gate.
    #[track_caller]
    fn await_gate(&self, name: &str) -> Value {
        wait_until(&format!("{name} waits at its gate"), CAP, || {
            let found = self.user.read(&self.path(name)).ok();
            let steps = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"];
            if steps[1]["status"] == "IN_PROGRESS" { Ok(found) } else { Err(summary(&found)) }
        })
    }

    fn open_gate(&self, name: &str) {
        let path = format!("{}/status", self.ns.path("v1", "services", &format!("{name}-gate")));
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        self.ns.admin().merge_patch(&path, &status).ok();
    }

    #[track_caller]
    fn await_carried_out(&self, name: &str, plan: &str, blob: &str) -> Value {
        let digest = sha256(blob);
        wait_until(&format!("{name}: plan {plan} is COMPLETE and its stamp settled"), CAP, || {
            let found = self.user.read(&self.path(name)).ok();
            // The status that observes the clear of planExecution is the last write.
            let idle = found["spec"]["planExecution"]["planName"].as_str().unwrap_or("").is_empty()
                && found["status"]["observedGeneration"] == found["metadata"]["generation"];
            let complete = found["status"]["planStatus"][plan]["status"] == "COMPLETE";
            let child = self.user.read(&self.ns.path("v1", "configmaps", &format!("{name}-after")));
            let carried_out = child.body["data"]["digest"] == digest;
            if idle && complete && carried_out { Ok(found) } else { Err(summary(&found)) }
        })
    }

    /// The ControllerRevisions that keep specs of an Instance, as a user with the role `view` reads
    /// them.
    fn revisions(&self, found: &Value) -> Vec<Value> {
        let list = self.ns.path("apps/v1", "controllerrevisions", "");
        let all = self.user.read(&list).ok();
        let own = |part: &&Value| part["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"];
        all["items"].as_array().into_iter().flatten().filter(own).cloned().collect()
    }

    /// The stamp is where it belongs, and says what the spec says; whether it is inline.
    #[track_caller]
    fn assert_stamped(&self, found: &Value, size: usize) -> bool {
        let annotations = found["metadata"]["annotations"].as_object().expect("annotations");
        let text = annotations[meta::LAST_APPLIED_SPEC].as_str().expect("a stamp");
        let envelope = Envelope::parse(text).expect("a stamp that can be read");
        let total: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().unwrap().len()).sum();
        let blob = found["spec"]["parameters"]["BLOB"].as_str().unwrap();
        assert_eq!(envelope.uid.as_deref(), found["metadata"]["uid"].as_str());
        assert!(envelope.previous.is_none(), "nothing is owed: {}", summary(found));
        // What no stamp refers to any more goes after the write that says so.
        let parts = wait_until("one spec at most is kept in ControllerRevisions", CAP, || {
            let parts = self.revisions(found);
            let specs: BTreeSet<_> = parts.iter().filter_map(of_spec).collect();
            let wanted = usize::from(envelope.kept.inline().is_none());
            if specs.len() == wanted { Ok(parts) } else { Err(format!("{specs:?}")) }
        });
        match &envelope.kept {
            KeptSpec::Inline { spec } => {
                assert!(size <= 32 * KB && total <= 192 * KB, "{size} bytes inline, {total} in all");
                assert_eq!(spec.hash(), envelope.hash);
                assert_eq!(spec.parameters.get("BLOB").map(AsRef::as_ref), Some(blob));
                assert!(parts.is_empty(), "{} ControllerRevisions beside an inline stamp", parts.len());
            }
            KeptSpec::Referenced => {
                let room = total + size > 192 * KB;
                assert!(size > 32 * KB || room, "{size} bytes not inline, {total} in all");
                self.assert_kept(found, &envelope.hash, blob, parts);
            }
        }
        matches!(envelope.kept, KeptSpec::Inline { .. })
    }

    #[track_caller]
    fn assert_kept(&self, found: &Value, hash: &SpecHash, blob: &str, mut parts: Vec<Value>) {
        parts.sort_by_key(|part| part["metadata"]["name"].to_string());
        let (name, uid) = (&found["metadata"]["name"], &found["metadata"]["uid"]);
        let data: Vec<Vec<u8>> = parts
            .iter()
            .enumerate()
            .map(|(i, part)| {
                let named = revision::name(name.as_str().unwrap(), uid.as_str().unwrap(), hash, i);
                assert_eq!(part["metadata"]["name"], named, "no ControllerRevision of another spec is left");
                assert_eq!(
                    part["metadata"]["labels"],
                    json!({meta::REVISION_OF: uid}),
                    "none of KUDO's labels"
                );
                assert_eq!(part["metadata"]["ownerReferences"][0]["controller"], true);
                revision::data(part).expect("its data")
            })
            .collect();
        let text = revision::unpack(&data).expect("gzipped JSON");
        assert_eq!(SpecHash::of(&text), *hash);
        let spec: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(spec["parameters"]["BLOB"], blob);
    }
}

/// Name of a ControllerRevision without the number of its part.
fn of_spec(part: &Value) -> Option<String> {
    let name = part["metadata"]["name"].as_str()?;
    name.rsplit_once('-').map(|(spec, _)| spec.to_owned())
}

/// An Instance without its large texts.
fn summary(found: &Value) -> String {
    let mut found = found.clone();
    found["metadata"]["managedFields"] = Value::Null;
    for pointer in ["/spec/parameters", "/metadata/annotations"] {
        for (_, value) in found.pointer_mut(pointer).and_then(Value::as_object_mut).into_iter().flatten() {
            if value.as_str().is_some_and(|text| text.len() > 300) {
                *value = json!(format!("{} bytes", value.as_str().unwrap().len()));
            }
        }
    }
    format!("{found:#}")
}

/// Every size is created and updated; where the API server alone takes a write, so do we.
#[rstest]
#[case::by_apply(Way::Apply)]
#[case::by_server_side_apply(Way::ServerSideApply)]
#[case::by_create_and_merge_patch(Way::CreateAndMergePatch)]
#[case::by_create_and_put(Way::CreateAndPut)]
fn no_size_is_refused_because_of_us_and_each_ends_complete(#[case] way: Way) {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster);
    let (mut taken, mut inline, mut refused_alone) = (0, 0, 0);
    for &kb in sizes() {
        let name = format!("s{kb}");
        let mut found: Option<Value> = None;
        for (seed, plan) in [(1, "deploy"), (2, "update")] {
            let blob = noise(kb * KB - 100, seed + kb as u64);
            let object = ground.manifest(&name, &blob, false);
            if let Err(alone) = ground.send(&ground.bare, way, &object, found.as_ref(), true) {
                assert!(alone.contains("Too long") || alone.contains("too large"), "{alone}");
                refused_alone += 1;
                continue;
            }
            let sent = ground.send(&ground.user, way, &object, found.as_ref(), false);
            sent.unwrap_or_else(|why| panic!("{kb} KB, {plan}: only because of us: {why}"));
            let done = ground.await_carried_out(&name, plan, &blob);
            inline += usize::from(ground.assert_stamped(&done, object["spec"].to_string().len()));
            taken += 1;
            found = Some(done);
        }
    }
    announce(&format!(
        "{way:?}: {taken} writes taken ({inline} stamped inline), {refused_alone} refused by the API server alone, 0 because of us"
    ));
    assert!(taken >= 6);
}
