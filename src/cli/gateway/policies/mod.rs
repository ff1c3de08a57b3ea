//! `interlock policies`: which policies of the Gateway API act where, and why.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::cli::common::target::{TargetFlags, block_on};

mod cluster;
mod difference;
mod effective;
mod list;
mod paths;
pub(in crate::cli) mod proxies;
mod requests;
mod route;
pub(in crate::cli) mod source;
pub(in crate::cli) mod story;
mod tree;
mod without;

/// Flags of `interlock policies`.
#[derive(Args, Debug)]
pub struct PoliciesCommand {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    target: TargetFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists policies with their targets, whether they are accepted, and by which others rules were replaced.
    List(list::ListFlags),
    /// Prints Gateways, listeners, routes and rules with the policies of each, and the routes that listeners
    /// refuse.
    Tree(tree::TreeFlags),
    /// Prints the rules that act on each path to a rule of a route, and the policy that each comes from.
    Effective(effective::EffectiveFlags),
}

/// Runs the command.
pub fn main(arguments: PoliciesCommand) -> ExitCode {
    block_on(run(arguments))
}

async fn run(arguments: PoliciesCommand) -> anyhow::Result<()> {
    let PoliciesCommand { verb, target } = arguments;
    match verb {
        Verb::List(flags) => list::run(&target, &flags).await,
        Verb::Tree(flags) => tree::run(&target, &flags).await,
        Verb::Effective(flags) => effective::run(&target, &flags).await,
    }
}
