//! Everything that is stored in a namespace, from a watch of etcd: in its order, whichever process dies.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::Cluster;

/// Flags of the testbed with which etcd has objects as JSON.
pub const FLAGS: [&str; 2] = ["--apiserver-arg", "--storage-media-type=application/json"];

/// The keys of ConfigMaps, Deployments, Jobs and Instances are between these; those of Leases and Pods are not.
const KEYS: [&str; 2] = ["/registry/configmaps/", "/registry/kudo.dev0"];

/// One change of one object.
pub struct Change {
    /// The version that the object has by it, which counts all changes of all objects.
    pub version: u64,
    pub plural: String,
    pub name: String,
    /// `None` where it was deleted.
    pub object: Option<Value>,
}

/// Follows the changes in a namespace from now on, until the control plane ends.
pub fn follow(cluster: &Cluster, namespace: &str) -> mpsc::Receiver<Change> {
    let url = &cluster.ready().expect("a control plane of our own").etcd;
    let address = url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).expect("etcd listens");
    let [key, end] = KEYS.map(|key| STANDARD.encode(key));
    let body = json!({"create_request": {"key": key, "range_end": end}}).to_string();
    // Of HTTP/1.0, as such an answer comes without chunks: a line each time that something is stored.
    write!(stream, "POST /v3/watch HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .expect("etcd listens");
    let mut lines = BufReader::new(stream).lines();
    let begun = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("\"created\":true")));
    assert!(begun.is_some(), "etcd does not tell what is stored");
    let (told, changes) = mpsc::channel();
    let namespace = namespace.to_owned();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let told_so_far = of_line(&line, &namespace).into_iter().try_for_each(|change| told.send(change));
            if told_so_far.is_err() {
                return;
            }
        }
    });
    changes
}

fn of_line(line: &str, namespace: &str) -> Vec<Change> {
    let answer: Value = serde_json::from_str(line).expect("a line of JSON");
    let events = answer["result"]["events"].as_array().cloned().unwrap_or_default();
    events.iter().filter_map(|event| of_event(event, namespace)).collect()
}

fn of_event(event: &Value, namespace: &str) -> Option<Change> {
    let bytes = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64");
    let kv = &event["kv"];
    let key = String::from_utf8(bytes(&kv["key"])).expect("a path");
    let mut parts = key.rsplit('/').map(str::to_owned);
    let name = parts.next()?;
    parts.next().filter(|within| within == namespace)?;
    let plural = parts.next()?;
    let version = kv["mod_revision"].as_str()?.parse().expect("a number");
    let is_deleted = event["type"] == "DELETE";
    let object =
        (!is_deleted).then(|| serde_json::from_slice(&bytes(&kv["value"])).expect("it is stored as JSON"));
    Some(Change { version, plural, name, object })
}
