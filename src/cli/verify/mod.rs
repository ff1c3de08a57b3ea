//! `interlock verify`: whether an installation guards and works. Exit codes: 0 all of it does, 1 something
//! does not, 2 misused, 3 the cluster was not reached.

mod answers;
mod certificate;
mod definitions;
mod guards;
mod process;
mod report;
mod rights;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use interlock_core::kinds::Kinds;
use kube::Client;
use report::CheckResult;
use tokio::time::Instant;

use crate::cli::common::flags::Limit;
use crate::cli::common::installation::Installation;
use crate::cli::common::output;
use crate::cli::common::target::{TargetFlags, finish};

/// Pause between two rounds of checks.
const PAUSE: Duration = Duration::from_secs(2);
/// Exit code where the cluster was not reached.
const NOT_REACHED: u8 = 3;

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for each check.
    Text,
    /// One JSON object.
    Json,
}

/// Flags of `interlock verify`.
#[derive(Args, Debug)]
pub struct VerifyArguments {
    /// Repeat the checks until all of them pass, or --timeout is over.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    limit: Limit,
    /// Output format.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    target: TargetFlags,
}

/// Runs the checks.
pub fn main(arguments: VerifyArguments, kinds: Kinds) -> ExitCode {
    match finish(verify(&arguments, kinds)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            ExitCode::from(NOT_REACHED)
        }
    }
}

async fn verify(arguments: &VerifyArguments, kinds: Kinds) -> anyhow::Result<bool> {
    let (client, _) = arguments.target.connect().await?;
    let until = Instant::now() + arguments.limit.timeout;
    let mut missing = Vec::new();
    let results = loop {
        let round = round(&client, arguments, kinds).await;
        let again = arguments.wait && Instant::now() + PAUSE < until;
        match round {
            Ok(results) if !again || report::passed(&results) => break results,
            Err(error) if !again => return Err(error),
            Ok(results) => report_progress(&mut missing, report::failed(&results)),
            Err(_) => report_progress(&mut missing, vec!["the API server"]),
        }
        tokio::time::sleep(PAUSE).await;
    };
    match arguments.output {
        Format::Text => output::text(&report::text(&results))?,
        Format::Json => output::text(&format!("{}\n", report::json(&results)))?,
    }
    Ok(report::passed(&results))
}

/// Says what is waited for, where it is not what was said before.
fn report_progress(before: &mut Vec<&'static str>, now: Vec<&'static str>) {
    if *before != now {
        eprintln!("waiting for: {}", now.join(", "));
        *before = now;
    }
}

/// All checks, once; an error where the cluster is not reached.
async fn round(
    client: &Client,
    arguments: &VerifyArguments,
    kinds: Kinds,
) -> anyhow::Result<Vec<CheckResult>> {
    let installation = Installation::read(client, arguments.target.namespace.as_deref(), kinds).await?;
    let server = client.apiserver_version().await?.git_version;
    let mut results = vec![process::versions(&server)];
    results.push(definitions::check(&installation).await);
    results.push(process::deployments(&installation));
    results.push(process::leader(&installation).await);
    results.push(guards::webhooks(&installation));
    results.push(certificate::check(&installation).await);
    results.extend(answers::check(&installation).await);
    results.push(guards::policies(&installation).await);
    results.push(rights::check(&installation).await);
    results.push(process::settings(&installation).await);
    Ok(results)
}
