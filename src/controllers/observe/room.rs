//! Reads OperatorVersions again for which there was no room, as no event comes when there is.

use std::sync::Arc;
use std::time::Duration;

use super::store::Store;
use crate::cluster::apply::Bookkeeping;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(20);

/// Looks for as long as the process runs; asks the API server for nothing while all are kept.
pub async fn follow(store: Arc<Store>, bookkeeping: Bookkeeping) {
    loop {
        tokio::time::sleep(PAUSE).await;
        for key in store.all_left_out() {
            match bookkeeping.operator_version(&key).await {
                Ok(Some(object)) => store.keep_package(&object),
                // The watch tells that it is gone.
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(operator_version = %key, message = %error.message, "it could not be read");
                }
            }
        }
    }
}
