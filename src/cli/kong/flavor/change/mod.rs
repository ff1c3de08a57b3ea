//! `interlock flavor change`: carries the plan out, hop by hop.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use interlock_kong::data_plane::flavor::compatibility::ProducerConfiguration;
use interlock_kong::data_plane::flavor::gateway::Gateway;
use interlock_kong::data_plane::flavor::group::ProducerGroup;
use interlock_kong::data_plane::flavor::plan::{FlavorPlan, Question};
use interlock_kong::data_plane::flavor::routes::Inventory;

use self::carry::FlavorCarrier;
use self::error::unchanged;
use self::outage::OutageCarrier;
use self::producer::{ProducerName, ProducerRef};
use super::cluster::{GatewayInputs, read_gateway};
use super::flavor_flag::FlavorFlag;
use crate::cli::common::error::CliError;
use crate::cli::common::flags::duration;
use crate::cli::common::target::TargetFlags;
use crate::cli::kong::rollout::data_plane::DataPlaneRef;

mod carry;
mod error;
mod outage;
mod preview;
mod producer;

/// Examples of the command.
const EXAMPLES: &str = "\
Examples:
  # All hops, each promoted when its pods hold a configuration
  interlock flavor change edge --to traditional_compatible --wait

  # The same across the boundary to expressions, with the ingress controller stopped, and started again
  interlock flavor change edge --to expressions --wait --producer deploy/kong/kic

  # A DataPlane without blueGreen: all of its pods are stopped while the flavor is changed
  interlock flavor change edge --to expressions --outage --producer deploy/kong/kic

  # One step: what can be done now is done, and what to call next is printed
  interlock flavor change edge --to expressions

A command that was interrupted goes on where it was when it is called again.";

/// Flags of `change`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ChangeArguments {
    /// The DataPlane: NAME or dataplane/NAME.
    #[arg(value_name = "NAME")]
    name: String,
    /// The wanted flavor.
    #[arg(long, value_enum)]
    to: FlavorFlag,
    /// Carry out all hops, and wait for each: 1 if one fails, 3 if one is not done in time.
    #[arg(long)]
    wait: bool,
    /// The Deployment of the configuration producer of the live pods, such as an ingress controller. It is
    /// scaled to 0 before a promotion to or from expressions, and back after it. Takes --wait or --outage.
    #[arg(long, value_name = "deploy/NAMESPACE/NAME")]
    producer: Option<ProducerName>,
    /// For a DataPlane without blueGreen: scale it to 0, change the flavor at once, scale it back, and wait
    /// for each step. It serves nothing meanwhile.
    #[arg(long)]
    outage: bool,
    /// Do not ask before the outage.
    #[arg(long, short, requires = "outage")]
    yes: bool,
    /// Longest wait for each step.
    #[arg(long, default_value = "5m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    target: TargetFlags,
}

/// Runs the command.
pub(super) async fn run(arguments: &ChangeArguments) -> anyhow::Result<()> {
    if arguments.producer.is_some() && !arguments.wait && !arguments.outage {
        return Err(CliError::usage("--producer is given without --wait")
            .next("add --wait: a producer that is stopped has to be started again")
            .into());
    }
    let name = arguments.name.rsplit_once('/').map_or(arguments.name.as_str(), |(_, name)| name);
    let plane = DataPlaneRef::connect(&arguments.target, name.to_owned()).await?;
    let object = plane.get().await?;
    let inputs = read_gateway(&arguments.target, &format!("dataplane/{name}")).await?;
    let plan = plan(&plane, arguments, &inputs)?;
    let named = |name| ProducerRef::named(plane.client().clone(), name, plane.namespace());
    let producer = arguments.producer.as_ref().map(named);
    if arguments.outage {
        let to = arguments.to.into();
        let (sources, yes, limit) = (inputs.sources, arguments.yes, arguments.timeout);
        return Ok(OutageCarrier { plane, to, plan, sources, producer, yes, limit }.run().await?);
    }
    let known = match &producer {
        Some(producer) => Some(producer.clone()),
        None => ProducerRef::annotated(plane.client().clone(), &object, plane.namespace()),
    };
    let mut carrier = FlavorCarrier {
        plane,
        to: arguments.to.into(),
        plan,
        sources: inputs.sources,
        producer,
        known,
        wait: arguments.wait,
        limit: arguments.timeout,
        progress: carry::CarryProgress::default(),
    };
    Ok(carrier.run().await?)
}

fn plan(
    plane: &DataPlaneRef,
    arguments: &ChangeArguments,
    inputs: &GatewayInputs,
) -> anyhow::Result<FlavorPlan> {
    let unreadable = || format!("DataPlane {} is served in a version that is not known here", plane.key());
    let gateway = Gateway::running(&inputs.gateway, "", &inputs.sources)?.with_context(unreadable)?;
    let group = ProducerGroup::of(&inputs.gateway, &inputs.objects, "", &inputs.sources)?;
    let made = FlavorPlan::make(&Question {
        subject: &gateway.subject,
        live: &gateway.spec,
        to: arguments.to.into(),
        routes: &Inventory::of(&inputs.gateway, &inputs.objects, ""),
        configuration: ProducerConfiguration::Usual,
        group: group.as_ref(),
        outage: arguments.outage,
        notes: &inputs.notes,
    });
    Ok(made.map_err(|why| unchanged(plane).why(why.to_string()))?)
}
