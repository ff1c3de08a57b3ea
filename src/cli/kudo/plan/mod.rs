//! `interlock plan`: shows and triggers plans of an Instance, and asks for what can be done with their runs.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::cli::common::flags::Limit;
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::{TargetFlags, block_on};
use crate::cli::kudo::instance::{InstanceName, InstanceRef};
use crate::cli::kudo::wait;

mod history;
mod list;
mod live;
mod request;
mod status;
mod tree;
mod trigger;

/// Flags of `interlock plan`.
#[derive(Args, Debug)]
pub struct PlanCommand {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    target: TargetFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists Instances with their running or last plan; for one Instance, the plans of its package.
    List(list::ListFlags),
    /// Shows the plans of an Instance, and what the running one waits for.
    Status(status::StatusFlags),
    /// Shows the last runs of an Instance, with the requests for them and their authors.
    History(HistoryFlags),
    /// Waits for the running plan and those queued behind it: 0 COMPLETE, 1 FATAL_ERROR, 3 no end in time.
    Wait(PlanWaitFlags),
    /// Runs a plan of the package.
    Trigger(trigger::TriggerFlags),
    #[command(flatten)]
    Request(request::RequestVerb),
}

/// Flags of `history`.
#[derive(Args, Debug)]
struct HistoryFlags {
    #[command(flatten)]
    name: InstanceName,
    #[command(flatten)]
    form: OutputFlag,
}

/// Flags of `wait`.
#[derive(Args, Debug)]
struct PlanWaitFlags {
    #[command(flatten)]
    name: InstanceName,
    #[command(flatten)]
    limit: Limit,
}

/// Runs the command.
pub fn main(arguments: PlanCommand) -> ExitCode {
    block_on(run(arguments))
}

async fn run(arguments: PlanCommand) -> anyhow::Result<()> {
    let PlanCommand { verb, target } = arguments;
    let subject = async |name: &InstanceName| InstanceRef::connect(&target, name.get()).await;
    match verb {
        Verb::List(flags) => list::run(&target, &flags).await?,
        Verb::Status(flags) => status::run(&subject(&flags.name).await?, &flags).await?,
        Verb::History(flags) => history::run(&subject(&flags.name).await?, flags.form.output).await?,
        Verb::Wait(flags) => wait::run(&subject(&flags.name).await?, flags.limit.timeout).await?,
        Verb::Trigger(flags) => trigger::run(&subject(&flags.name).await?, &flags).await?,
        Verb::Request(verb) => request::run(verb, &target).await?,
    }
    Ok(())
}
