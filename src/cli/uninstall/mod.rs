//! `interlock uninstall`: takes Interlock out of a cluster, also while no replica runs. What packages made
//! stays. Exit codes: 0 nothing of it is left, 1 something is, 2 misused, 3 the cluster was not reached.

mod cluster;
mod plan;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cluster::Remover;
use interlock_core::kinds::Kinds;
use plan::RemovalPlan;

use crate::cli::common::flags::duration;
use crate::cli::common::output;
use crate::cli::common::target::{TargetFlags, finish};

/// Exit codes.
const MISUSED: u8 = 2;
const NOT_REACHED: u8 = 3;

/// Flags of `interlock uninstall`.
#[derive(Args, Debug)]
pub struct UninstallArguments {
    /// Do not ask before anything is removed.
    #[arg(long)]
    yes: bool,
    /// Print what would be removed, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// Keep the definitions, and with them all Operators, OperatorVersions, Instances and Interlocks: the
    /// default.
    #[arg(long, conflicts_with = "crds")]
    keep_crds: bool,
    /// Delete the definitions as well. Refused while there are Operators, OperatorVersions or Instances,
    /// because these and their objects would be deleted too.
    #[arg(long)]
    crds: bool,
    /// Longest wait for the process to stop, and for a deletion.
    #[arg(long, default_value = "2m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    target: TargetFlags,
}

/// Removes the installation.
pub fn main(arguments: UninstallArguments, kinds: Kinds) -> ExitCode {
    match finish(uninstall(&arguments, kinds)) {
        Ok(code) => code,
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            ExitCode::from(NOT_REACHED)
        }
    }
}

async fn uninstall(arguments: &UninstallArguments, kinds: Kinds) -> anyhow::Result<ExitCode> {
    let (client, _) = arguments.target.connect().await?;
    let namespace = arguments.target.namespace.as_deref();
    let plan = match RemovalPlan::read(&client, namespace, kinds, arguments.crds).await? {
        Ok(plan) => plan,
        Err(refused) => {
            output::note(&format!("error: {refused}"));
            return Ok(ExitCode::FAILURE);
        }
    };
    if plan.is_empty() {
        println!("nothing of Interlock is installed");
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.dry_run {
        output::text(&plan.describe())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.yes {
        output::text(&plan.describe())?;
        if !std::io::stdin().is_terminal() {
            eprintln!(
                "error: nobody can be asked here; repeat the command with --yes, or look with --dry-run"
            );
            return Ok(ExitCode::from(MISUSED));
        }
        if !output::is_confirmed("Remove all of it? Type yes: ")? {
            eprintln!("nothing was removed");
            return Ok(ExitCode::FAILURE);
        }
    }
    let remover = Remover { client: &client, timeout: arguments.timeout };
    match remover.remove(&plan).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(problem) => {
            output::note(&format!(
                "error: {problem}; the rest is still there: run this again when that is settled"
            ));
            Ok(ExitCode::FAILURE)
        }
    }
}
