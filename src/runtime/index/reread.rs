//! Reads OperatorVersions again that exceeded the size budget, as no event reports free budget.

use std::sync::Arc;
use std::time::Duration;

use super::store::Store;
use crate::cluster::api_writer::Bookkeeping;

/// Pause between two passes.
const PAUSE: Duration = Duration::from_secs(20);

/// Runs as long as the process; sends no request while all are cached.
pub async fn follow(store: Arc<Store>, bookkeeping: Bookkeeping) {
    loop {
        tokio::time::sleep(PAUSE).await;
        for key in store.all_left_out() {
            match bookkeeping.operator_version(&key).await {
                Ok(Some(object)) => store.keep_package(&object),
                // The watch reports its deletion.
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(operator_version = %key, message = %error.message, "it could not be read");
                }
            }
        }
    }
}
