//! Whether a process still leads. No clock of another machine is trusted: a Lease that does not change for
//! its own duration has no holder.

use std::time::Duration;

use serde_json::Value;

/// Follows the versions of a Lease.
#[derive(Debug, Default)]
pub(super) struct LeaseWatch {
    version: Option<String>,
    unchanged: Duration,
}

impl LeaseWatch {
    /// Takes in the Lease as it is `passed` after the last time; returns who may still lead.
    pub(super) fn observe(&mut self, lease: Option<&Value>, passed: Duration) -> Option<String> {
        let spec = &lease?["spec"];
        let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
        let version = lease?["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if self.version.as_deref() == Some(version) {
            self.unchanged += passed;
        } else {
            self.version = Some(version.to_owned());
            self.unchanged = Duration::ZERO;
        }
        let duration = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(15));
        (self.unchanged <= duration).then(|| holder.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(version: &str, holder: &str) -> Value {
        json!({
            "metadata": {"resourceVersion": version},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3},
        })
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_held_by_nobody() {
        let second = Duration::from_secs(2);
        let mut watch = LeaseWatch::default();
        assert_eq!(watch.observe(Some(&lease("1", "a")), second).as_deref(), Some("a"));
        assert_eq!(watch.observe(Some(&lease("1", "a")), second).as_deref(), Some("a"));
        assert_eq!(watch.observe(Some(&lease("2", "a")), second).as_deref(), Some("a"), "it was renewed");
        assert_eq!(watch.observe(Some(&lease("2", "a")), second).as_deref(), Some("a"));
        assert_eq!(watch.observe(Some(&lease("2", "a")), second), None);
    }

    #[test]
    fn one_that_was_given_back_or_is_gone_is_held_by_nobody() {
        let mut watch = LeaseWatch::default();
        assert_eq!(watch.observe(Some(&lease("1", "")), Duration::ZERO), None);
        assert_eq!(watch.observe(None, Duration::ZERO), None);
    }
}
