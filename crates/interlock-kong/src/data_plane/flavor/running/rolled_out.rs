//! The template of a Deployment's pods while its own changes: that of the newest ReplicaSet that was
//! fully rolled out.
//!
//! An observer of a Deployment sees its rollouts end, and stores the template. After a start in the
//! middle of a rollout, the ReplicaSets still have it.

use interlock_core::api::object::{annotation, meta_str};
use serde_json::Value;

/// On ReplicaSets: the number of the Deployment's template.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// On the template of a ReplicaSet, in addition to that of its Deployment.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Whether all pods of a Deployment have its current template, and there are no others (`kubectl
/// rollout status`).
pub fn is_rolled_out(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let generation = deployment["metadata"]["generation"].as_i64().unwrap_or_default();
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    status["observedGeneration"].as_i64().is_some_and(|observed| observed >= generation)
        && [count("updatedReplicas"), count("replicas"), count("availableReplicas")] == [wanted; 3]
}

/// Evidence in the ReplicaSets of a Deployment that is not rolled out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RolloutEvidence<'a> {
    /// Pods of an earlier template run: its ReplicaSet.
    Earlier(&'a Value),
    /// No pod has another template than the stored one.
    Current { ready: bool },
    /// Pods of earlier templates run, and no such template has all its pods ready.
    Untold,
}

/// Finds the running template among the ReplicaSets of a namespace.
pub fn find<'a>(deployment: &Value, sets: &'a [Value]) -> RolloutEvidence<'a> {
    let owner = meta_str(deployment, "uid");
    let owned = |set: &&Value| {
        let owners = set["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.filter_map(|owner| owner["uid"].as_str()).any(|uid| Some(uid) == owner)
    };
    let template = &deployment["spec"]["template"];
    let (current, earlier): (Vec<&Value>, Vec<&Value>) =
        sets.iter().filter(owned).partition(|set| same_pods(template, &set["spec"]["template"]));
    let count = |value: &Value| value.as_i64().unwrap_or_default();
    let has_pods =
        |set: &&Value| count(&set["spec"]["replicas"]) > 0 || count(&set["status"]["replicas"]) > 0;
    let ready = |set: &Value| count(&set["status"]["readyReplicas"]);
    let is_whole = |set: &&Value| ready(set) > 0 && ready(set) == count(&set["spec"]["replicas"]);
    let revision = |set: &&Value| annotation(set, REVISION).and_then(|text| text.parse::<u64>().ok());
    let earlier: Vec<&Value> = earlier.into_iter().filter(has_pods).collect();
    match earlier.iter().copied().filter(is_whole).max_by_key(revision) {
        Some(set) => RolloutEvidence::Earlier(set),
        None if earlier.is_empty() => {
            RolloutEvidence::Current { ready: current.into_iter().any(|set| ready(set) > 0) }
        }
        None => RolloutEvidence::Untold,
    }
}

/// Whether two templates create the same pods.
fn same_pods(one: &Value, other: &Value) -> bool {
    let labels = |template: &Value| {
        let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        labels.remove(TEMPLATE_HASH);
        labels
    };
    one["spec"] == other["spec"]
        && one["metadata"]["annotations"] == other["metadata"]["annotations"]
        && labels(one) == labels(other)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn template(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "edge"}}, "spec": {"containers": [{"name": "proxy", "image": image}]}})
    }

    /// A ReplicaSet of revision, image, wanted, ready.
    fn set(owner: &str, (revision, image, wanted, ready): (u64, &str, i64, i64)) -> Value {
        let mut template = template(image);
        template["metadata"]["labels"][TEMPLATE_HASH] = json!(image);
        json!({
            "metadata": {
                "name": image, "annotations": {REVISION: revision.to_string()},
                "ownerReferences": [{"uid": owner}],
            },
            "spec": {"replicas": wanted, "template": template},
            "status": {"replicas": wanted, "readyReplicas": ready},
        })
    }

    #[rstest]
    #[case::stuck(&[(1, "a", 3, 3), (2, "c", 1, 0)], Some("a"), false)]
    #[case::half_way(&[(1, "a", 2, 2), (2, "c", 2, 2)], Some("a"), false)]
    #[case::newest_of_the_whole(&[(1, "a", 1, 1), (2, "b", 2, 2), (10, "d", 1, 0), (3, "c", 1, 0)], Some("b"), false)]
    #[case::by_number(&[(9, "a", 1, 1), (10, "b", 1, 1), (11, "c", 1, 0)], Some("b"), false)]
    #[case::gone_before(&[(1, "a", 0, 0), (2, "c", 3, 2)], None, true)]
    #[case::recreated(&[(1, "a", 0, 0), (2, "c", 3, 0)], None, false)]
    #[case::the_first(&[(1, "c", 3, 0)], None, false)]
    #[case::not_begun(&[(1, "a", 3, 3)], Some("a"), false)]
    #[case::back_to_an_earlier_one(&[(3, "c", 1, 0), (2, "b", 3, 3)], Some("b"), false)]
    #[case::nothing(&[], None, false)]
    fn what_runs(#[case] sets: &[(u64, &str, i64, i64)], #[case] earlier: Option<&str>, #[case] ready: bool) {
        let deployment = json!({"metadata": {"uid": "u"}, "spec": {"template": template("c")}});
        let mut sets: Vec<Value> = sets.iter().map(|one| set("u", *one)).collect();
        // A ReplicaSet of another Deployment does not count.
        sets.push(set("other", (99, "x", 3, 3)));
        match (find(&deployment, &sets), earlier) {
            (RolloutEvidence::Earlier(set), Some(name)) => assert_eq!(meta_str(set, "name"), Some(name)),
            (RolloutEvidence::Current { ready: found }, None) => assert_eq!(found, ready),
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn pods_that_are_not_ready_tell_nothing() {
        let deployment = json!({"metadata": {"uid": "u"}, "spec": {"template": template("c")}});
        let sets = [set("u", (1, "a", 3, 2)), set("u", (2, "c", 1, 0))];
        assert_eq!(find(&deployment, &sets), RolloutEvidence::Untold);
    }
}
