//! Probes the configuration of a pod by its Admin API.

use interlock_core::reconcile::PodRequest;
use interlock_kong::data_plane::flavor::running::pod::AdminEndpoint;
use interlock_kong::data_plane::flavor::running::report::StatusReport;

use crate::cluster::pods;

/// The report of a pod's Admin API, or why there is none.
pub async fn report(endpoint: &AdminEndpoint) -> Result<StatusReport, String> {
    let AdminEndpoint { address, port } = endpoint;
    let request =
        PodRequest { address: address.clone(), port: *port, tls: None, path: "/", all_pages: false };
    let answer = match pods::ask(&request, None).await {
        // A redirect counts as any other status that is not 200.
        Ok(answer) if answer.status != 200 => Err(format!("answers {}", answer.status)),
        answer => answer,
    };
    let answer = answer.map_err(|why| format!("its Admin API (port {port}) {why}"))?;
    StatusReport::read(&answer.body)
}
