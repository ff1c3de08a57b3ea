//! `interlock flavor change`: carries the plan out, hop by hop.

use std::time::Duration;

use clap::Args;
use interlock_kong::data_plane::flavor::compatibility::ProducerConfiguration;
use interlock_kong::data_plane::flavor::plan::NoPlan;

use self::carry::FlavorCarrier;
use self::flavor_change::{FlavorChange, unchanged};
use self::outage::OutageCarrier;
use self::producer::{ProducerName, ProducerRef};
use super::cluster::read_gateway;
use super::plan::{FlavorFlag, Way};
use crate::cli::common::error::CliError;
use crate::cli::common::flags::duration;
use crate::cli::common::object_ref::bare;
use crate::cli::common::target::TargetFlags;
use crate::cli::kong::rollout::data_plane::DataPlaneRef;

mod carry;
mod flavor_change;
mod outage;
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
    let name = bare(&arguments.name);
    let plane = DataPlaneRef::connect(&arguments.target, name).await?;
    let object = plane.get().await?;
    let inputs = read_gateway(&arguments.target, &format!("dataplane/{name}")).await?;
    let (to, outage) = (arguments.to.into(), arguments.outage);
    let configuration = ProducerConfiguration::Usual;
    let way = Way { to, configuration, outage, namespace: "", says_staged: false };
    let plan = way.plan(&inputs, || format!("{plane} is served in a version that is not known here"));
    let plan = plan.map_err(|error| match error.downcast::<NoPlan>() {
        Ok(why) => unchanged(&plane).why(why.to_string()).into(),
        Err(error) => error,
    })?;
    let named = |name| ProducerRef::named(plane.client.clone(), name, &plane.namespace);
    let producer = arguments.producer.as_ref().map(named);
    let annotated = || ProducerRef::annotated(plane.client.clone(), &object, &plane.namespace);
    let known = producer.clone().or_else(annotated);
    let (sources, limit) = (inputs.sources, arguments.timeout);
    let change = FlavorChange { plane, to, plan, sources, producer, limit };
    if outage {
        return Ok(OutageCarrier { change, yes: arguments.yes }.run().await?);
    }
    let progress = carry::CarryProgress::default();
    Ok(FlavorCarrier { change, known, wait: arguments.wait, progress }.run().await?)
}
