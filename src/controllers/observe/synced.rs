//! Whether every watch has listed its kind: nothing is decided before that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::watches::OnSynced;

/// Counts watches that have not listed their kind yet.
#[derive(Clone, Debug)]
pub struct Synced {
    waiting: Arc<watch::Sender<usize>>,
}

impl Default for Synced {
    fn default() -> Self {
        Self { waiting: Arc::new(watch::Sender::new(0)) }
    }
}

impl Synced {
    /// One more watch; what is returned is to be called after each complete list.
    pub fn expect(&self) -> OnSynced {
        self.waiting.send_modify(|n| *n += 1);
        let (waiting, listed) = (self.waiting.clone(), AtomicBool::new(false));
        Box::new(move || {
            if !listed.swap(true, Ordering::SeqCst) {
                waiting.send_modify(|n| *n -= 1);
            }
        })
    }

    /// Waits for all of them.
    pub async fn wait(&self) {
        // The sender is held by `self`, so the channel cannot be closed.
        let _ = self.waiting.subscribe().wait_for(|n| *n == 0).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_watches_are_waited_for_and_a_second_list_counts_once() {
        let synced = Synced::default();
        let (a, b) = (synced.expect(), synced.expect());
        a();
        a();
        let second = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(second, synced.wait()).await.is_err());
        b();
        synced.wait().await;
    }
}
