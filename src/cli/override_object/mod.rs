//! `interlock override`: admits one user's writes of one Instance against one rule, for a while.

mod create;
mod list;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use interlock_core::api::override_object::Override;
use interlock_core::api::suggest;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Error, ResourceExt as _};

use self::list::MOST;
use crate::cli::common::error::{CliError, api, of_api};
use crate::cli::common::output;
use crate::cli::common::target::{TargetFlags, block_on};

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
    /// Admits a write that one rule refuses: of one Instance, by one user, for at most four hours.
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
            Verb::List(flags) => list::run(&target.connect().await?.0, flags.output).await?,
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
    let error = CliError::unreached(format!("Override {name} does not exist"));
    match suggest::remedy(name, "Overrides", &names) {
        Some(remedy) => error.next(remedy),
        None => error.next("it may have expired: `interlock override list` shows those that there are"),
    }
}
