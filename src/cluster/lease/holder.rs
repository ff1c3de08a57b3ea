//! Who holds the lease, as the API server has it now.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use kube::{Client, Error};

use super::LeaseName;

/// Asks the API server whether this process holds the lease. [`Leadership`](super::Leadership) knows it from the clock
/// and needs no request, but the clock of a machine that was suspended may have stood still meanwhile.
#[derive(Clone)]
pub struct LeaseHolder {
    leases: Api<Lease>,
    name: String,
    id: String,
}

impl LeaseHolder {
    /// For the candidate `id` of this process.
    pub fn new(client: Client, lease: &LeaseName, id: String) -> Self {
        Self { leases: Api::namespaced(client, &lease.namespace), name: lease.name.clone(), id }
    }

    /// Whether it does. If so, no other process has led up to now since this one took the lease.
    ///
    /// # Errors
    ///
    /// The API server does not answer, or refuses the read.
    pub async fn is_this_process(&self) -> Result<bool, Error> {
        let lease = self.leases.get_opt(&self.name).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        Ok(holder.as_deref() == Some(self.id.as_str()))
    }
}
