//! The Interlock objects, as last seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::api::interlock::{DEFAULT, Interlock};
use interlock_core::api::object::meta_str;
use serde::Deserialize as _;
use tokio::sync::watch;

/// An Interlock object, as last seen.
#[derive(Clone, Debug)]
pub enum KnownInterlock {
    /// It was decoded.
    Read(Arc<Interlock>),
    /// An unknown version of the schema admits fields that this process cannot decode.
    Unreadable {
        /// Its metadata and status, with an empty spec.
        object: Arc<Interlock>,
        /// The error, for people.
        why: String,
    },
}

impl KnownInterlock {
    /// The object; with an empty spec where it could not be decoded.
    pub fn object(&self) -> &Interlock {
        match self {
            Self::Read(object) | Self::Unreadable { object, .. } => object,
        }
    }
}

/// All of them, by name; shared by reference.
#[derive(Debug)]
pub struct Interlocks {
    known: Mutex<BTreeMap<String, KnownInterlock>>,
    changes: watch::Sender<u64>,
}

impl Default for Interlocks {
    fn default() -> Self {
        Self { known: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Interlocks {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, KnownInterlock>> {
        // Changes of the map do not panic half-way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in an object.
    pub fn see(&self, object: &serde_json::Value) {
        let Some(name) = meta_str(object, "name") else { return };
        self.known().insert(name.to_owned(), read(object));
        self.tick();
    }

    /// Removes an object.
    pub fn gone(&self, name: &str) {
        self.known().remove(name);
        self.tick();
    }

    fn tick(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Ticks after each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn honoured(&self) -> Option<KnownInterlock> {
        self.known().get(DEFAULT).cloned()
    }

    pub fn all(&self) -> Vec<KnownInterlock> {
        self.known().values().cloned().collect()
    }
}

fn read(object: &serde_json::Value) -> KnownInterlock {
    let error = match Interlock::deserialize(object) {
        Ok(interlock) => return KnownInterlock::Read(Arc::new(interlock)),
        Err(error) => error,
    };
    let mut bare = object.clone();
    if let Some(bare) = bare.as_object_mut() {
        bare.insert("spec".to_owned(), serde_json::json!({}));
    }
    let object = Interlock::deserialize(&bare).unwrap_or_default();
    KnownInterlock::Unreadable { object: Arc::new(object), why: error.to_string() }
}
