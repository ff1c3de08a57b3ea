//! Whether a watch event will wake a run that waits.

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::api::ownership::owner_uids;
use interlock_core::health;
use interlock_core::health::Health;
use interlock_core::reconcile::Lookup;
use serde_json::Value;

use crate::engine::adoption;
use crate::engine::lookup::Observed;
use crate::engine::run::InstanceId;

/// Whether watches wake an Instance for every object that its run may wait for. Watches select our
/// label, and wake the Instances that made or apply the object.
pub fn watches_suffice(
    observed: &Observed,
    instance: &InstanceId,
    is_watched: impl Fn(&Gvk) -> bool,
) -> bool {
    observed.facts.objects.iter().all(|(key, seen)| match seen {
        Lookup::Absent | Lookup::Forbidden => true,
        Lookup::Found(object) => {
            !is_waited_for(object, instance) || (is_watched(&key.gvk) && wakes(object, instance))
        }
    })
}

fn is_waited_for(object: &Value, instance: &InstanceId) -> bool {
    meta_str(object, "deletionTimestamp").is_some()
        || adoption::is_of_former(instance, object)
        || health::of(object) != Health::Healthy
}

fn wakes(object: &Value, instance: &InstanceId) -> bool {
    let labelled = object["metadata"]["labels"][meta::HERITAGE] == meta::HERITAGE_VALUE;
    labelled && owner_uids(object).any(|uid| uid == instance.uid)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use interlock_core::api::object::ObjectKey;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// An object with these labels that this Instance made.
    fn object(kind: &str, labels: Value, maker: &str) -> Value {
        let owner = json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "x", "uid": maker, "controller": true,
        });
        json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": "a", "namespace": "ns", "labels": labels, "ownerReferences": [owner]},
        })
    }

    fn ours(maker: &str) -> Value {
        object("ConfigMap", json!({"heritage": "kudo"}), maker)
    }

    fn deleted(mut object: Value) -> Value {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object
    }

    fn cluster_scoped(maker: Option<&str>) -> Value {
        let labels = json!({"heritage": "kudo", "interlock.dev/instance-uid": maker});
        let mut object = object("ClusterRole", labels, "new");
        object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        object["metadata"].as_object_mut().unwrap().retain(|key, _| key == "name" || key == "labels");
        object
    }

    #[rstest]
    #[case::well(ours("new"), true)]
    #[case::not_waited_for(cluster_scoped(None), true)]
    #[case::goes(deleted(ours("new")), true)]
    #[case::goes_and_is_not_shown(deleted(object("ConfigMap", json!({}), "new")), false)]
    #[case::goes_and_is_of_others(deleted(ours("other")), false)]
    #[case::is_of_a_former_instance(ours("old"), false)]
    #[case::goes_and_is_of_a_former_instance(deleted(ours("old")), false)]
    #[case::not_ready(object("Pod", json!({"heritage": "kudo"}), "new"), true)]
    #[case::not_ready_and_not_shown(object("Pod", json!({"heritage": "Helm"}), "new"), false)]
    #[case::not_watched(object("Secret", json!({"heritage": "kudo"}), "new"), true)]
    #[case::goes_and_is_not_watched(deleted(object("Secret", json!({"heritage": "kudo"}), "new")), false)]
    #[case::former_and_not_watched(object("Secret", json!({"heritage": "kudo"}), "old"), false)]
    #[case::cluster_scoped(deleted(cluster_scoped(Some("new"))), true)]
    #[case::cluster_scoped_of_others(deleted(cluster_scoped(Some("other"))), false)]
    #[case::cluster_scoped_without_owner(deleted(cluster_scoped(None)), false)]
    fn table(#[case] object: Value, #[case] woken: bool) {
        let mut observed = Observed::default();
        let key = ObjectKey::of(&object).unwrap();
        observed.facts.objects.insert(key, Lookup::Found(Arc::new(object)));
        let instance = InstanceId { namespace: "ns".to_owned(), name: "x".to_owned(), uid: "new".to_owned() };
        assert_eq!(watches_suffice(&observed, &instance, |kind| kind.kind != "Secret"), woken);
    }
}
