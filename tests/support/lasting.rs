//! Control planes that the cases of a module share.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Cluster, Interlock};

/// How long a control plane is kept that no case uses.
const REST: Duration = Duration::from_secs(20);

/// What cases share: a control plane, and what runs on it.
pub trait Shared: Sync {
    fn cluster(&self) -> &Cluster;
    /// Ends every process of it.
    fn end(&self);
}

impl Shared for (Cluster, Interlock) {
    fn cluster(&self) -> &Cluster {
        &self.0
    }

    fn end(&self) {
        self.1.kill();
        self.0.end();
    }
}

/// Started for the first case, and ended when no case has had a namespace on it for a while: at rest it takes a
/// twentieth of a core from all that follow. A case that comes later starts another.
pub struct Lasting<T: 'static>(Mutex<Option<&'static T>>);

impl<T: Shared> Lasting<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub fn get(&'static self, start: impl FnOnce() -> T) -> &'static T {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = *held {
            shared.cluster().touch();
            return shared;
        }
        // Its memory is kept, as cases hold references to it: some kilobytes.
        let shared: &'static T = Box::leak(Box::new(start()));
        shared.cluster().touch();
        *held = Some(shared);
        std::thread::spawn(move || self.end_at_rest(shared));
        shared
    }

    fn end_at_rest(&self, shared: &T) {
        loop {
            shared.cluster().await_rest(REST);
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if shared.cluster().rests_for() >= Some(REST) {
                shared.end();
                *held = None;
                return;
            }
        }
    }
}
