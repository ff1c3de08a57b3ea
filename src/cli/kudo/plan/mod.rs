//! `interlock plan`: shows and triggers plans of an Instance, and asks for what can be done with their runs.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::flags::{InstanceName, OutputFlags};
use self::instance::InstanceRef;
use crate::cli::common::error::CliError;
use crate::cli::common::target::{TargetFlags, block_on};

mod abort;
mod adopt;
mod flags;
mod frame;
mod history;
mod instance;
mod list;
mod live;
mod pause;
mod request;
mod restart;
mod retry;
mod status;
mod tree;
mod trigger;
mod wait;

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
    /// Lists Instances with the plan that runs or ran last; of one Instance, the plans of its package.
    List(list::ListFlags),
    /// Shows the plans of an Instance, and what the running one waits for.
    Status(status::StatusFlags),
    /// Shows the last runs of an Instance, with the requests for them and their authors.
    History(OutputFlags),
    /// Waits for the running plan: 0 COMPLETE, 1 FATAL_ERROR, 3 no end in time.
    Wait(wait::PlanWaitFlags),
    /// Runs a plan of the package.
    Trigger(trigger::TriggerFlags),
    #[command(flatten)]
    Request(RequestVerb),
}

#[derive(Debug, Subcommand)]
enum RequestVerb {
    /// Aborts the scheduled or running plan.
    Abort(abort::AbortFlags),
    /// Retries a failed plan, from the failed step if nothing else has changed.
    Retry(retry::RequestFlags),
    /// Retries a plan that ended at objects that no Instance made, and takes these over: they are updated, and
    /// deleted with the Instance.
    Adopt(request::RequestFlags),
    /// Ends the scheduled or running plan and starts it again, from its first step.
    Restart(request::RequestFlags),
    /// Pauses the scheduled or running plan: nothing further of it is written.
    Pause(request::RequestFlags),
    /// Lets a paused plan go on.
    Resume(request::RequestFlags),
}

/// Runs the command.
pub fn main(arguments: PlanCommand) -> ExitCode {
    block_on(run(arguments))
}

async fn run(arguments: PlanCommand) -> anyhow::Result<()> {
    let PlanCommand { verb, target } = arguments;
    let subject = |name: &InstanceName| InstanceRef::connect(&target, name.get().to_owned());
    match verb {
        Verb::List(flags) => list::run(&target, &flags).await?,
        Verb::Status(flags) => status::run(&subject(&flags.flags.name).await?, &flags).await?,
        Verb::History(flags) => history::run(&subject(&flags.name).await?, &flags).await?,
        Verb::Wait(flags) => wait::run(&subject(&flags.name).await?, flags.limit.timeout).await?,
        Verb::Trigger(flags) => trigger::run(&subject(&flags.name).await?, &flags).await?,
        Verb::Request(verb) => ask(verb, &target).await?,
    }
    Ok(())
}

/// Sends the request, and waits for what becomes of it where that is wanted.
async fn ask(verb: RequestVerb, target: &TargetFlags) -> Result<(), CliError> {
    let subject = |name: &InstanceName| InstanceRef::connect(target, name.get().to_owned());
    match verb {
        RequestVerb::Abort(flags) => abort::run(&subject(&flags.request.name).await?, &flags).await,
        RequestVerb::Retry(flags) => retry::run(&subject(&flags.name).await?, &flags).await,
        RequestVerb::Pause(flags) => pause::pause(&subject(&flags.name).await?, &flags).await,
        RequestVerb::Resume(flags) => pause::resume(&subject(&flags.name).await?, &flags).await,
        RequestVerb::Adopt(flags) => adopt::run(&subject(&flags.name).await?, &flags).await,
        RequestVerb::Restart(flags) => restart::run(&subject(&flags.name).await?, &flags).await,
    }
}
