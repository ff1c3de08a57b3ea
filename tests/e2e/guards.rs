//! What guards can be edited and deleted by whoever has the right: nobody is asked before, so it is
//! told afterwards. These objects are cluster-wide: a control plane of its own.

use std::time::{Duration, Instant};

use interlock::install::{self, Part};
use serde_json::{Value, json};

use crate::support::{Client, Cluster, Interlock, announce, wait_until};

/// How long an alarm may take: five seconds, on a machine that has nothing else to do.
fn alarm_cap() -> Duration {
    let soak = std::env::var_os("INTERLOCK_SOAK").is_some();
    Duration::from_secs(if soak { 5 } else { 60 })
}

const CAP: Duration = Duration::from_secs(60);

/// An object as it was installed.
struct Guard(Value);

impl Guard {
    fn text(&self, at: &str) -> &str {
        self.0.pointer(at).and_then(Value::as_str).unwrap_or_default()
    }

    fn line(&self, intact: bool) -> String {
        let (kind, name) = (self.text("/kind"), self.text("/metadata/name"));
        format!("interlock_guard_intact{{kind=\"{kind}\",name=\"{name}\"}} {}\n", i32::from(intact))
    }

    fn path(&self) -> String {
        let plural = format!("{}s", self.text("/kind").to_lowercase()).replace("policys", "policies");
        format!("/apis/admissionregistration.k8s.io/v1/{plural}/{}", self.text("/metadata/name"))
    }

    /// Makes it guard less; the field that the alarm names.
    fn edit(&self, admin: &Client) -> &'static str {
        let (change, field) = match self.text("/kind") {
            "ValidatingAdmissionPolicy" => (json!({"spec": {"failurePolicy": "Ignore"}}), "failurePolicy"),
            // A set, to which server-side apply adds; Warn does not go with Deny.
            "ValidatingAdmissionPolicyBinding" => {
                (json!({"spec": {"validationActions": ["Audit"]}}), "validationActions")
            }
            _ => {
                let mut there = admin.read(&self.path()).ok()["webhooks"].clone();
                there[0]["failurePolicy"] = json!("Ignore");
                (json!({"webhooks": there}), "failurePolicy of webhook")
            }
        };
        wait_until("the edit is taken", CAP, || {
            let answer = admin.merge_patch(&self.path(), &change);
            if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
        });
        field
    }
}

struct Ground {
    cluster: Cluster,
    process: Interlock,
    guards: Vec<Guard>,
}

impl Ground {
    fn new() -> Self {
        let cluster = Cluster::own(&[]);
        let process = Interlock::install(&cluster, &[]);
        let options = process.options(&[]);
        let parts = [Part::Webhooks, Part::Policies];
        let guards =
            parts.iter().flat_map(|part| install::objects(*part, &options).unwrap()).map(Guard).collect();
        Self { cluster, process, guards }
    }

    /// Waits until the gauge of each says this; how long that took.
    #[track_caller]
    fn await_all(&self, what: &str, intact: bool, cap: Duration) -> Duration {
        let began = Instant::now();
        wait_until(what, cap, || {
            let text = self.process.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
            match self.guards.iter().find(|guard| !text.contains(&guard.line(intact))) {
                None => Ok(()),
                Some(guard) => Err(format!("{} is not in\n{text}", guard.line(intact))),
            }
        });
        began.elapsed()
    }

    #[track_caller]
    fn restore(&self) {
        let admin = self.cluster.admin();
        for guard in &self.guards {
            let path = format!("{}?fieldManager=kubectl&force=true", guard.path());
            wait_until("what was installed is applied again", CAP, || {
                let answer = admin.server_side_apply(&path, &guard.0);
                if [200, 201].contains(&answer.code) { Ok(()) } else { Err(answer.to_string()) }
            });
        }
        self.await_all("all guard again", true, CAP);
    }

    /// Waits until an Event of this reason on each has a note that holds its text.
    #[track_caller]
    fn await_events(&self, reason: &str, text: impl Fn(&Guard) -> String) {
        wait_until(&format!("an Event {reason} is on each"), CAP, || {
            let found = self.cluster.admin().read("/apis/events.k8s.io/v1/namespaces/default/events").ok();
            let events = found["items"].as_array().cloned().unwrap_or_default();
            let told = |guard: &&Guard| {
                let of_it = events.iter().filter(|event| {
                    event["reason"] == reason
                        && event["regarding"]["kind"] == guard.0["kind"]
                        && event["regarding"]["name"] == guard.0["metadata"]["name"]
                });
                let mut notes = of_it.filter_map(|event| event["note"].as_str());
                notes.any(|note| note.contains(&text(guard)))
            };
            match self.guards.iter().find(|guard| !told(guard)) {
                None => Ok(()),
                Some(guard) => Err(format!("none with {:?} in {events:#?}", text(guard))),
            }
        });
    }
}

#[test]
fn every_edit_and_deletion_of_what_guards_is_told() {
    let ground = Ground::new();
    let (admin, pid) = (ground.cluster.admin(), ground.process.pid());
    ground.await_all("everything guards as it was installed", true, CAP);
    let told = "a guard object is not as installed";
    assert!(!ground.process.log().contains(told), "an installation is no fault: {}", ground.process.log());

    let fields: Vec<&str> = ground.guards.iter().map(|guard| guard.edit(&admin)).collect();
    let took = ground.await_all("every edit is told", false, alarm_cap());
    announce(&format!("{} edited objects were told {took:?} after the last edit", fields.len()));
    let differs = |guard: &Guard| {
        let at = ground.guards.iter().position(|other| other.path() == guard.path()).unwrap_or_default();
        let (kind, name) = (guard.text("/kind"), guard.text("/metadata/name"));
        format!("{kind} {name} differs from the installed object in {}", fields[at])
    };
    ground.await_events("GuardNotIntact", differs);
    let log = ground.process.log();
    for guard in &ground.guards {
        assert!(log.contains(&differs(guard)), "{} is not in {log}", differs(guard));
    }
    assert!(log.contains("interlock render webhooks ... | kubectl apply -f -"), "{log}");
    ground.restore();
    ground.await_events("GuardIntact", |_| "is as installed again".to_owned());

    for guard in &ground.guards {
        admin.delete(&guard.path()).ok();
    }
    let took = ground.await_all("every deletion is told", false, alarm_cap());
    announce(&format!("{} deleted objects were told {took:?} after the last deletion", ground.guards.len()));
    let gone =
        |guard: &Guard| format!("{} {} does not exist", guard.text("/kind"), guard.text("/metadata/name"));
    ground.await_events("GuardNotIntact", gone);
    let ready = ground.process.ops("/readyz?verbose");
    assert!(ready.as_ref().is_some_and(|(code, _)| *code == 200), "it can still answer: {ready:?}");
    ground.restore();
    assert_eq!(ground.process.pid(), pid, "nothing was started again");
}
