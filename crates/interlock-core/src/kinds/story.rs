//! What `interlock why` tells of an object that a domain acts on, and of all that belongs to it.

use jiff::Timestamp;
use serde_json::Value;

use crate::api::condition::Condition;
use crate::api::meta::condition::{LIVE_SPEC_RECORDED, MANAGED, READY, ROUTER_FLAVOR_CONSISTENT};

/// The story of the objects of a kind.
#[derive(Debug)]
pub struct Story {
    /// The capability that acts on them.
    pub capability: &'static str,
    /// What it does to them.
    pub does: &'static str,
    /// What it does to what belongs to them.
    pub does_to_parts: &'static str,
    /// What has to be read beside such an object, after what was read; `None` where that is enough.
    pub next: fn(&Value, &[Reading]) -> Option<Asked>,
    /// Tells it from what was read.
    pub tell: fn(&Subject<'_>) -> Told,
}

/// Objects to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// API group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace.
    pub namespace: String,
    /// Which of them.
    pub which: Which,
}

/// Objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one of this name.
    Name(String),
    /// A label selector.
    Labels(String),
}

/// The objects that were asked for, or why they could not be read.
pub type Reading = Result<Vec<Value>, String>;

/// The object of a story.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The object of the kind.
    pub root: &'a Value,
    /// It, or what belongs to it.
    pub object: &'a Value,
    /// In the order in which they were asked for.
    pub readings: &'a [Reading],
}

impl Subject<'_> {
    /// `Instance demo: `, where the story is about what belongs to it.
    pub fn whose(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match self.is_root() {
            true => String::new(),
            false => format!("{} {}: ", text(&self.root["kind"]), text(&self.root["metadata"]["name"])),
        }
    }

    /// Whether it is the object itself.
    pub fn is_root(&self) -> bool {
        std::ptr::eq(self.root, self.object)
    }
}

/// A story.
#[derive(Debug, Default)]
pub struct Told {
    /// The state of the object.
    pub is: Vec<String>,
    /// What the root has written of it, if anything.
    pub wrote: Option<String>,
    /// What has happened, in no order.
    pub happened: Vec<(Timestamp, String)>,
    /// Unknown parts, and why.
    pub unknown: Vec<String>,
    /// A further member of the answer for programs.
    pub member: Option<(&'static str, Value)>,
}

/// A condition that reports more than success; omits those whose message is for programs.
pub fn current_state(condition: &Condition) -> Option<String> {
    let told = match condition.type_.as_str() {
        LIVE_SPEC_RECORDED => false,
        READY | MANAGED | ROUTER_FLAVOR_CONSISTENT => true,
        _ => condition.status != "False",
    };
    let message = one_line(&condition.message);
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    told.then(|| format!("{}={} ({}){message}", condition.type_, condition.status, condition.reason))
}

/// The change of a condition.
pub fn became(whose: &str, condition: &Condition) -> (Timestamp, String) {
    let Condition { type_, status, reason, .. } = condition;
    (condition.last_transition_time.0, format!("{whose}{type_} became {status} ({reason})"))
}

/// Line breaks would break the form.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
