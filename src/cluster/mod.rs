//! All code that calls the API server. It knows effects and wire types, and no rule.

pub mod api_writer;
pub mod arrivals;
pub mod authorize;
pub mod binding;
pub mod certificates;
pub mod client;
pub mod crds;
pub mod discovery;
pub mod events;
pub mod exec;
pub mod failure_reports;
pub mod kubeconfig;
pub mod lease;
pub mod list;
pub mod path;
pub mod pod_dialer;
pub mod pods;
pub mod read;
pub mod request_limit;
pub mod requests;
pub mod strip_managed_fields;
pub mod supervisor;
pub mod tamper;
pub mod warnings;
pub mod watch;
