//! `interlock override`: admits one user's writes of one Instance against one rule, for a while.

mod create;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use interlock_core::api::age::age;
use interlock_core::api::override_object::Override;
use interlock_core::api::suggest;
use interlock_kudo::api::Instance;
use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Error, ResourceExt as _};

use crate::cli::common::error::{CliError, api, of_api, plain};
use crate::cli::common::output;
use crate::cli::common::output::{Output, table};
use crate::cli::common::target::{TargetFlags, block_on};

/// Overrides that are looked at.
const MOST: u32 = 500;

/// Instances whose names are looked up.
const INSTANCES: u32 = 5000;

/// Flags of `interlock override`.
#[derive(Args, Debug)]
pub struct OverrideCommand {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    target: TargetFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lets one user make a change that one rule refuses, of one Instance, for at most four hours.
    Create(create::CreateFlags),
    /// Lists the Overrides.
    List(output::OutputFlag),
    /// Ends an Override at once; writes that it admitted stay in effect.
    Delete(DeleteFlags),
}

#[derive(Args, Debug)]
struct DeleteFlags {
    /// Name of the Override.
    name: String,
}

/// Runs the command.
pub fn main(command: OverrideCommand) -> ExitCode {
    block_on(async move {
        let OverrideCommand { verb, target } = command;
        match verb {
            Verb::Create(flags) => create::run(&flags, &target).await?,
            Verb::List(flags) => list(&target.connect().await?.0, flags.output).await?,
            Verb::Delete(flags) => delete(&target.connect().await?.0, &flags.name).await?,
        }
        Ok(())
    })
}

async fn delete(client: &Client, name: &str) -> Result<(), CliError> {
    let overrides: Api<Override> = Api::all(client.clone());
    match overrides.delete(name, &DeleteParams::default()).await {
        Ok(_) => output::line(&format!("override {name} deleted")),
        Err(Error::Api(status)) if status.is_not_found() => Err(missing(&overrides, name).await),
        Err(error) => Err(of_api(&format!("Override {name} is not deleted"), &error)),
    }
}

/// The error about an Override that does not exist; it names those that do.
async fn missing(overrides: &Api<Override>, name: &str) -> CliError {
    let list = match overrides.list_metadata(&ListParams::default().limit(MOST)).await {
        Err(Error::Api(status)) if status.is_not_found() => {
            return api("the Overrides cannot be listed")(Error::Api(status));
        }
        // Who may not list them sees no names.
        found => found.map(|list| list.items).unwrap_or_default(),
    };
    let names: Vec<String> = list.iter().map(|one| one.name_any()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    CliError::unreached(format!("Override {name} does not exist"))
        .next("it may have expired: `interlock override list` shows those that there are")
        .next_where(suggest::remedy(name, "Overrides", &names))
}

/// Lists the Overrides, those that end first before others.
async fn list(client: &Client, output: Output) -> Result<(), CliError> {
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
    table(&["NAME", "INSTANCE", "RULE", "USER", "ENDS", "REASON"], list.iter().map(row))
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
