//! What the process, and packages through it, have asked of the API server, as its audit log tells.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use interlock_core::api::meta;
use serde_json::Value;

use super::{Cluster, announce, count, wait_until};

const CAP: Duration = Duration::from_secs(90);
/// Time is told by the lease, which is renewed twice a second at best: so often in a minute.
const MINUTE: usize = 120;

/// The log of a control plane that was started with `--audit`.
pub struct Audit {
    log: PathBuf,
    user: String,
}

/// A request that was answered; watches are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// Plural and, after a slash, the subresource.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// Of the answer.
    pub code: u64,
}

impl Request {
    fn of(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let about = &event["objectRef"];
        let part = about["subresource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
        Self {
            verb: text(&event["verb"]),
            uri: text(&event["requestURI"]),
            resource: format!("{}{part}", text(&about["resource"])),
            namespace: text(&about["namespace"]),
            name: text(&about["name"]),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        }
    }

    /// Whether it changes what is stored; reviews (who am I, may I) are questions.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch") && !self.resource.ends_with("reviews")
    }

    /// Whether it renews the lease.
    pub fn renews(&self) -> bool {
        self.is_about_leases() && self.writes()
    }

    pub fn is_about_leases(&self) -> bool {
        self.resource == "leases"
    }
}

impl Audit {
    /// `None` where the control plane writes none.
    pub fn of(cluster: &Cluster) -> Option<Self> {
        let log = cluster.ready()?.audit.clone()?;
        Some(Self { log, user: meta::CONTROLLER_USER.to_owned() })
    }

    /// What another user than the process asks.
    pub fn by(self, user: &str) -> Self {
        Self { user: user.to_owned(), ..self }
    }

    /// Everything so far.
    pub fn requests(&self) -> Vec<Request> {
        self.since(0).0
    }

    /// What was asked since a place in the log, oldest first, and the place where that ends.
    pub fn since(&self, from: u64) -> (Vec<Request>, u64) {
        self.events_since(from, |event| event["stage"] == "ResponseComplete" && event["verb"] != "watch")
    }

    /// The same with each watch, where it began.
    pub fn since_with_watches(&self, from: u64) -> (Vec<Request>, u64) {
        self.events_since(from, |event| match event["verb"] == "watch" {
            true => event["stage"] == "ResponseStarted",
            false => event["stage"] == "ResponseComplete",
        })
    }

    fn events_since(&self, from: u64, counts: impl Fn(&Value) -> bool) -> (Vec<Request>, u64) {
        let mut bytes = self.bytes(from);
        // The last line may be half written.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        let text = String::from_utf8_lossy(&bytes);
        let ours = text.lines().filter(|line| line.contains(&self.user));
        let events = ours.map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        // What is done as a package's service account names it beside the user.
        let requests = events
            .filter(|event| event["user"]["username"] == *self.user)
            .filter(counts)
            .map(|event| Request::of(&event));
        (requests.collect(), from + bytes.len() as u64)
    }

    fn bytes(&self, from: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut log = File::open(&self.log).expect("the audit log");
        log.seek(SeekFrom::Start(from)).expect("a place in the audit log");
        log.read_to_end(&mut bytes).expect("the audit log");
        bytes
    }

    /// Waits until the log holds a request of somebody else that came after everything before: it
    /// is written in the order of the answers.
    pub fn settle(&self, cluster: &Cluster) {
        let from = self.since(0).1;
        let marker = format!("marker-{}", super::suffix());
        cluster.admin().read(&format!("/api/v1/namespaces/default/configmaps/{marker}")).refused(404);
        wait_until("the audit log holds the marker", CAP, || {
            let told = String::from_utf8_lossy(&self.bytes(from)).contains(&marker);
            if told { Ok(()) } else { Err("not yet".to_owned()) }
        });
    }

    /// What is asked from a place on while the lease is renewed so often, and where that ends.
    pub fn while_renewed(&self, from: u64, renewals: usize) -> (Vec<Request>, u64) {
        let (mut seen, mut at) = (Vec::new(), from);
        let cap = CAP + Duration::from_secs(2 * renewals as u64);
        wait_until("the lease was renewed often enough", cap, || {
            let (more, end) = self.since(at);
            seen.extend(more);
            at = end;
            let found = seen.iter().filter(|request: &&Request| request.renews()).count();
            if found >= renewals { Ok(()) } else { Err(format!("{found} of {renewals} times")) }
        });
        (seen, at)
    }
}

/// How often each verb was asked of each resource.
pub fn tally<'r>(requests: impl IntoIterator<Item = &'r Request>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for request in requests {
        *tally.entry(format!("{} {}", request.verb, request.resource)).or_default() += 1;
    }
    tally
}

/// Waits until nothing is written any more outside Leases, by the process or by packages through it.
///
/// What a test did may go on for a while: the long count gives it a minute and then looks on for
/// another one, the short one waits for a few seconds in which nothing is written.
#[track_caller]
pub fn await_rest(cluster: &Cluster, after: &str) {
    let Some(audit) = Audit::of(cluster) else { return };
    audit.settle(cluster);
    let (before, mut at) = audit.since(0);
    let (renewals, given, looks) = (count(10, MINUTE), count(0, 1), count(24, 2));
    for look in 1..=looks {
        let (seen, end) = audit.while_renewed(at, renewals);
        at = end;
        let rest: Vec<&Request> = seen.iter().filter(|request| !request.is_about_leases()).collect();
        let writes: Vec<&Request> = rest.iter().copied().filter(|request| request.writes()).collect();
        announce(&format!(
            "after {after} ({} requests, {} of them writes), {look}. look of {renewals} renewals: {} writes; all but \
             leases: {:?}",
            before.len(),
            before.iter().filter(|request| request.writes()).count(),
            writes.len(),
            tally(rest.iter().copied()),
        ));
        if writes.is_empty() && look > given {
            return;
        }
        assert!(look < looks, "after {after} it goes on writing: {writes:#?}");
    }
}
