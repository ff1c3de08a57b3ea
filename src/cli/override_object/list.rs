//! `interlock override list`.

use std::collections::BTreeMap;

use interlock_core::api::age::age;
use interlock_core::api::override_object::Override;
use interlock_kudo::api::Instance;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

use crate::cli::common::error::{CliError, api, plain};
use crate::cli::common::output::{Output, table};

/// Overrides that are looked at.
pub(super) const MOST: u32 = 500;

/// Instances whose names are looked up.
const INSTANCES: u32 = 5000;

/// Lists the Overrides, those that end first before others.
pub(super) async fn run(client: &Client, output: Output) -> Result<(), CliError> {
    let overrides: Api<Override> = Api::all(client.clone());
    let list = overrides.list(&ListParams::default().limit(MOST)).await;
    let mut list = list.map_err(api("the Overrides cannot be listed"))?.items;
    list.sort_by_key(|one| (one.expires(), one.name_any()));
    for one in &mut list {
        one.metadata.managed_fields = None;
    }
    let names = match (output, list.is_empty()) {
        (Output::Table, false) => names(client).await,
        _ => BTreeMap::new(),
    };
    output.print(&list, || text(&list, &names, Timestamp::now()))
}

/// Namespaces and names of Instances by their uids. Who may not list them sees uids.
async fn names(client: &Client) -> BTreeMap<String, String> {
    let all =
        Api::<Instance>::all(client.clone()).list_metadata(&ListParams::default().limit(INSTANCES)).await;
    let name = |one: &kube::core::PartialObjectMeta<Instance>| {
        Some((one.uid()?, format!("{}/{}", one.namespace()?, one.name_any())))
    };
    all.map(|list| list.items.iter().filter_map(name).collect()).unwrap_or_default()
}

fn text(list: &[Override], names: &BTreeMap<String, String>, now: Timestamp) -> String {
    if list.is_empty() {
        return "there are no Overrides\n".to_owned();
    }
    let heading = ["NAME", "INSTANCE", "RULE", "USER", "ENDS", "REASON"].map(str::to_owned).to_vec();
    let row = |one: &Override| {
        let uid = &one.spec.object_uid;
        let ends = match one.expires() {
            Some(at) if at > now => format!("in {}", age(now, at)),
            Some(_) => "expired".to_owned(),
            None => "-".to_owned(),
        };
        let cell = |text: &str| plain(text).replace('\n', " ");
        vec![
            one.name_any(),
            names.get(uid).cloned().unwrap_or_else(|| cell(uid)),
            cell(&one.spec.rule),
            cell(&one.spec.user),
            ends,
            cell(&one.spec.reason),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(list.iter().map(row)).collect();
    table(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn overrides_with_their_ends() {
        let one = |name: &str, uid: &str, seconds: i64| -> Override {
            serde_json::from_value(json!({
                "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"objectUID": uid, "rule": "upgrade-path", "user": "alice", "reason": "ticket 4711",
                    "expirationSeconds": seconds},
            }))
            .unwrap()
        };
        let list = [one("demo-a", "u1", 600), one("demo-b", "u2", 60)];
        let names = BTreeMap::from([("u1".to_owned(), "team/demo".to_owned())]);
        assert_eq!(
            text(&list, &names, "2026-01-01T00:05:00Z".parse().unwrap()),
            "NAME    INSTANCE   RULE          USER   ENDS     REASON\n\
             demo-a  team/demo  upgrade-path  alice  in 5m    ticket 4711\n\
             demo-b  u2         upgrade-path  alice  expired  ticket 4711\n"
        );
        assert_eq!(text(&[], &names, Timestamp::UNIX_EPOCH), "there are no Overrides\n");
    }
}
