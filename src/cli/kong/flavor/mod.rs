//! `interlock flavor`: plans the hops from one router flavor of a gateway to another, carries them out, and
//! diagnoses gateways that are stuck between flavors.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_core::api::object::meta_str;
use interlock_kong::data_plane::flavor::compatibility::ProducerConfiguration;
use interlock_kong::data_plane::flavor::gateway::Gateway;
use interlock_kong::data_plane::flavor::group::ProducerGroup;
use interlock_kong::data_plane::flavor::plan;
use interlock_kong::data_plane::flavor::plan::{FlavorPlan, Question};
use interlock_kong::data_plane::flavor::routes::Inventory;
use interlock_kong::data_plane::flavor::sources::{GivenSources, Sources};
use serde_json::Value;

use self::flavor_flag::FlavorFlag;
use crate::cli::common::exit;
use crate::cli::common::files::{read_all, read_one};
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::{TargetFlags, block_on, finish};

mod change;
mod cluster;
mod diagnose;
mod flavor_flag;

/// Flags of `interlock flavor`.
#[derive(Args, Debug)]
pub struct FlavorArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints the hops to another flavor, what each checks, and what would be refused, for a gateway
    /// of the cluster or of a file: 0 every hop is allowed, or with --outage that way, 1 one is refused.
    Plan(Box<PlanArguments>),
    /// Carries the hops to another flavor of a DataPlane out, one after the other: 0 the flavor is live, or
    /// without --wait one step is done, 1 refused or failed.
    Change(Box<change::ChangeArguments>),
    /// Finds what blocks gateways: mixed flavors, pods that never get ready, a producer that keeps
    /// to a flavor of before; and the next command: 0 nothing was found, 1 something was.
    Diagnose(diagnose::DiagnoseArguments),
}

#[derive(Args, Debug)]
struct PlanArguments {
    /// The gateway: NAME, dataplane/NAME or deployment/NAME. Its context is read with your
    /// rights; unreadable parts are reported.
    #[arg(value_name = "NAME", required_unless_present = "gateway", conflicts_with = "gateway")]
    name: Option<String>,
    /// YAML or JSON file of the DataPlane or Deployment as it runs, instead of one of the cluster;
    /// - is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE|-")]
    gateway: Option<PathBuf>,
    /// The wanted flavor.
    #[arg(long, value_enum)]
    to: FlavorFlag,
    /// File or folder of objects that the cluster holds: ConfigMaps and Secrets that the flavor
    /// comes from, routes, other gateways, ControlPlanes, Services.
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    objects: Vec<PathBuf>,
    /// The running configuration has no expression, as without an ingress controller.
    #[arg(long)]
    field_routes_only: bool,
    /// Also print the plan without running pods: scale to 0, change, scale back.
    #[arg(long)]
    outage: bool,
    #[command(flatten)]
    form: OutputFlag,
    #[command(flatten)]
    target: TargetFlags,
}

impl PlanArguments {
    fn configuration(&self) -> ProducerConfiguration {
        match self.field_routes_only {
            true => ProducerConfiguration::FieldsOnly,
            false => ProducerConfiguration::Usual,
        }
    }
}

/// Runs the command.
pub fn main(arguments: FlavorArguments) -> ExitCode {
    let arguments = match arguments.command {
        Command::Plan(arguments) => arguments,
        Command::Change(arguments) => return block_on(change::run(&arguments)),
        Command::Diagnose(arguments) => return exit::decided(finish(diagnose::run(&arguments))),
    };
    let planned = planned(&arguments).and_then(|plan| {
        arguments.form.output.print(&plan.json(), || plan.to_string())?;
        Ok(plan.works())
    });
    exit::decided(planned)
}

/// From the cluster, or from files.
fn planned(arguments: &PlanArguments) -> anyhow::Result<FlavorPlan> {
    match (&arguments.name, &arguments.gateway) {
        (Some(name), _) => finish(of_cluster(arguments, name)),
        (None, Some(file)) => of_files(arguments, file),
        (None, None) => anyhow::bail!("give the name of a gateway, or its file with -f"),
    }
}

async fn of_cluster(arguments: &PlanArguments, name: &str) -> anyhow::Result<FlavorPlan> {
    let inputs = cluster::read_gateway(&arguments.target, name).await?;
    let unreadable = || format!("{name} is served in a version that is not known here");
    let gateway = Gateway::running(&inputs.gateway, "", &inputs.sources)?.with_context(unreadable)?;
    let notes = noted(&inputs.gateway, "", &inputs.sources, &gateway, inputs.notes)?;
    let group = ProducerGroup::of(&inputs.gateway, &inputs.objects, "", &inputs.sources)?;
    Ok(FlavorPlan::make(&Question {
        subject: &gateway.subject,
        live: &gateway.spec,
        to: arguments.to.into(),
        routes: &Inventory::of(&inputs.gateway, &inputs.objects, ""),
        configuration: arguments.configuration(),
        group: group.as_ref(),
        outage: arguments.outage,
        notes: &notes,
    })?)
}

/// The notes, and that another flavor is staged.
fn noted(
    object: &Value,
    namespace: &str,
    sources: &dyn Sources,
    running: &Gateway,
    mut notes: Vec<String>,
) -> anyhow::Result<Vec<String>> {
    if let Some(stored) = Gateway::read(object, namespace, sources)? {
        notes.extend(plan::staged(&stored.spec.reading, running));
    }
    Ok(notes)
}

fn of_files(arguments: &PlanArguments, file: &Path) -> anyhow::Result<FlavorPlan> {
    let object = read_one(file)?;
    let objects = arguments.objects.iter().map(|path| read_all(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let objects: Vec<Value> = objects.into_iter().flatten().collect();
    let namespace = meta_str(&object, "namespace").filter(|own| !own.is_empty()).unwrap_or("default");
    let sources = GivenSources::of(&objects, namespace);
    let gateway = Gateway::running(&object, namespace, &sources)?.with_context(|| {
        format!(
            "{} holds neither a DataPlane of gateway-operator.konghq.com/v1beta1 nor a Deployment of apps/v1",
            file.display()
        )
    })?;
    let routes = match objects.is_empty() {
        true => Inventory::Unseen,
        false => Inventory::of(&object, &objects, namespace),
    };
    let group = ProducerGroup::of(&object, &objects, namespace, &sources)?;
    let notes = noted(&object, namespace, &sources, &gateway, Vec::new())?;
    Ok(FlavorPlan::make(&Question {
        subject: &gateway.subject,
        live: &gateway.spec,
        to: arguments.to.into(),
        routes: &routes,
        configuration: arguments.configuration(),
        group: group.as_ref(),
        outage: arguments.outage,
        notes: &notes,
    })?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;
    use interlock_core::api::meta;
    use interlock_core::api::stamp::SpecHash;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(subcommand)]
        command: Command,
    }

    const GATEWAY: &str = "apiVersion: gateway-operator.konghq.com/v1beta1
kind: DataPlane
metadata: {name: edge, namespace: kong, annotations: {interlock.dev/config-producer: kic}}
spec:
  deployment:
    rollout: {strategy: {blueGreen: {}}}
    podTemplateSpec:
      spec:
        containers:
        - name: proxy
          image: kong:3.9
          env:
          - name: KONG_ROUTER_FLAVOR
            valueFrom: {configMapKeyRef: {name: router, key: flavor}}
";
    const OBJECTS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: router, namespace: kong}
data: {flavor: traditional_compatible}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: other
  namespace: kong
  labels: {interlock.dev/guard: kong-router-flavor}
  annotations: {interlock.dev/config-producer: kong/kic}
spec:
  template: {spec: {containers: [{name: proxy, image: kong:3.9}]}}
";

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("objects")).unwrap();
        fs::write(folder.path().join("gateway.yaml"), GATEWAY).unwrap();
        fs::write(folder.path().join("objects/all.yaml"), OBJECTS).unwrap();
        fs::write(folder.path().join("none.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
            .unwrap();
        folder
    }

    fn planned_by(folder: &Path, line: &str) -> anyhow::Result<FlavorPlan> {
        let at = |word: &str| match word.strip_prefix("./") {
            Some(path) => folder.join(path).display().to_string(),
            None => word.to_owned(),
        };
        let command = Cli::try_parse_from(line.split_whitespace().map(at))?.command;
        let Command::Plan(arguments) = command else { anyhow::bail!("not a plan: {line}") };
        planned(&arguments)
    }

    #[test]
    fn sources_and_the_producers_other_gateways_are_found_among_the_objects() {
        let folder = folder();
        let line = "flavor plan -f ./gateway.yaml --to expressions --objects ./objects";
        let plan = planned_by(folder.path(), line).unwrap();
        let text = plan.to_string();
        assert!(plan.works(), "{text}");
        assert!(
            text.starts_with("DataPlane kong/edge: traditional_compatible -> expressions, Kong 3.9\n"),
            "{text}"
        );
        assert!(
            text.contains("share the configuration producer kong/kic with Deployment kong/other"),
            "{text}"
        );
        assert!(!text.contains("not seen: routes"), "{text}");
    }

    /// A plan begins with what runs, also while another flavor is staged.
    #[test]
    fn a_plan_begins_with_what_is_live() {
        let folder = folder();
        let live = json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9",
            "env": [{"name": "KONG_ROUTER_FLAVOR", "value": "traditional"}]}]}}}});
        let stamp = json!({"v": 1, "hash": SpecHash::of(&live.to_string()), "spec": live});
        let mut staged = live;
        staged["deployment"]["rollout"] = json!({"strategy": {"blueGreen": {}}});
        staged["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"][0]["value"] =
            json!("traditional_compatible");
        let object = json!({
            "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
            "metadata": {"name": "edge", "namespace": "kong", "annotations": {meta::LAST_APPLIED_SPEC: stamp.to_string()}},
            "spec": staged,
        });
        fs::write(folder.path().join("staged.yaml"), object.to_string()).unwrap();
        let plan = planned_by(folder.path(), "flavor plan -f ./staged.yaml --to expressions").unwrap();
        let text = plan.to_string();
        assert!(text.starts_with("DataPlane kong/edge: traditional -> expressions, Kong 3.9\n"), "{text}");
        assert!(
            text.contains("hop 1 of 2: traditional -> traditional_compatible, staged: allowed"),
            "{text}"
        );
        let note = "  - router flavor traditional_compatible is staged: first promote it (`interlock rollout promote edge -n kong`)";
        assert!(text.contains(note), "{text}");
    }

    #[rstest]
    #[case::no_source(
        "./gateway.yaml",
        "which cannot be read here: with -f give ConfigMap kong/router with --objects"
    )]
    #[case::other_kind("./none.yaml", "holds neither a DataPlane")]
    fn errors(#[case] file: &str, #[case] text: &str) {
        let folder = folder();
        let error =
            planned_by(folder.path(), &format!("flavor plan -f {file} --to expressions")).err().unwrap();
        assert!(format!("{error:#}").contains(text), "{error:#}");
    }
}
