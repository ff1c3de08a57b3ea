//! `interlock flavor plan`: the hops from one router flavor of a gateway to another.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use interlock_core::api::object::meta_str;
use interlock_kong::data_plane::flavor::Flavor;
use interlock_kong::data_plane::flavor::compatibility::ProducerConfiguration;
use interlock_kong::data_plane::flavor::gateway::Gateway;
use interlock_kong::data_plane::flavor::group::ProducerGroup;
use interlock_kong::data_plane::flavor::plan;
use interlock_kong::data_plane::flavor::plan::{FlavorPlan, Question};
use interlock_kong::data_plane::flavor::routes::Inventory;
use interlock_kong::data_plane::flavor::sources::{GivenSources, Sources};
use serde_json::Value;

use super::cluster;
use super::cluster::GatewayInputs;
use crate::cli::common::files::{read_all, read_one};
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::{TargetFlags, finish};

/// A router flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum FlavorFlag {
    /// The Lua router with PCRE.
    Traditional,
    /// The Rust router, fed with match fields.
    TraditionalCompatible,
    /// The Rust router, fed with expressions.
    Expressions,
}

impl From<FlavorFlag> for Flavor {
    fn from(flag: FlavorFlag) -> Self {
        match flag {
            FlavorFlag::Traditional => Self::Traditional,
            FlavorFlag::TraditionalCompatible => Self::TraditionalCompatible,
            FlavorFlag::Expressions => Self::Expressions,
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct PlanArguments {
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
    /// File or folder of objects of the cluster: ConfigMaps and Secrets of the flavor, routes, other
    /// gateways, ControlPlanes, Services.
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    objects: Vec<PathBuf>,
    /// State that the running configuration has no expressions, as without an ingress controller.
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

/// A way from the running flavor to another.
pub(super) struct Way<'w> {
    pub(super) to: Flavor,
    pub(super) configuration: ProducerConfiguration,
    pub(super) outage: bool,
    /// The namespace of objects that name none.
    pub(super) namespace: &'w str,
    /// Whether the plan says that another flavor is staged.
    pub(super) says_staged: bool,
}

impl Way<'_> {
    /// The plan, by what was read of a cluster.
    pub(super) fn plan(
        &self,
        inputs: &GatewayInputs,
        unreadable: impl FnOnce() -> String,
    ) -> anyhow::Result<FlavorPlan> {
        let routes = Inventory::of(&inputs.gateway, &inputs.objects, self.namespace);
        let GatewayInputs { gateway, sources, objects, notes } = inputs;
        self.of(gateway, sources, objects, &routes, notes.clone(), unreadable)
    }

    fn of(
        &self,
        object: &Value,
        sources: &dyn Sources,
        objects: &[Value],
        routes: &Inventory,
        mut notes: Vec<String>,
        unreadable: impl FnOnce() -> String,
    ) -> anyhow::Result<FlavorPlan> {
        let gateway = Gateway::running(object, self.namespace, sources)?.with_context(unreadable)?;
        if self.says_staged
            && let Some(stored) = Gateway::read(object, self.namespace, sources)?
        {
            notes.extend(plan::staged(&stored.spec.reading, &gateway));
        }
        let group = ProducerGroup::of(object, objects, self.namespace, sources)?;
        Ok(FlavorPlan::make(&Question {
            subject: &gateway.subject,
            live: &gateway.spec,
            to: self.to,
            routes,
            configuration: self.configuration,
            group: group.as_ref(),
            outage: self.outage,
            notes: &notes,
        })?)
    }
}

/// Prints the plan; whether every hop is allowed.
pub(super) fn run(arguments: &PlanArguments) -> anyhow::Result<bool> {
    let plan = planned(arguments)?;
    arguments.form.output.print(&plan.json(), || plan.to_string())?;
    Ok(plan.works())
}

/// From the cluster, or from files.
fn planned(arguments: &PlanArguments) -> anyhow::Result<FlavorPlan> {
    let configuration = match arguments.field_routes_only {
        true => ProducerConfiguration::FieldsOnly,
        false => ProducerConfiguration::Usual,
    };
    let (to, outage) = (arguments.to.into(), arguments.outage);
    let way = Way { to, configuration, outage, namespace: "", says_staged: true };
    match (&arguments.name, &arguments.gateway) {
        (Some(name), _) => {
            let inputs = finish(cluster::read_gateway(&arguments.target, name))?;
            way.plan(&inputs, || format!("{name} is served in a version that is not known here"))
        }
        (None, Some(file)) => of_files(&way, file, &arguments.objects),
        (None, None) => anyhow::bail!("give the name of a gateway, or its file with -f"),
    }
}

fn of_files(way: &Way<'_>, file: &Path, objects: &[PathBuf]) -> anyhow::Result<FlavorPlan> {
    let object = read_one(file)?;
    let objects = objects.iter().map(|path| read_all(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let objects: Vec<Value> = objects.into_iter().flatten().collect();
    let namespace = meta_str(&object, "namespace").filter(|own| !own.is_empty()).unwrap_or("default");
    let sources = GivenSources::of(&objects, namespace);
    let routes = match objects.is_empty() {
        true => Inventory::Unseen,
        false => Inventory::of(&object, &objects, namespace),
    };
    let way = Way { namespace, ..*way };
    way.of(&object, &sources, &objects, &routes, Vec::new(), || {
        format!(
            "{} holds neither a DataPlane of gateway-operator.konghq.com/v1beta1 nor a Deployment of apps/v1",
            file.display()
        )
    })
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
        #[command(flatten)]
        plan: PlanArguments,
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
        planned(&Cli::try_parse_from(line.split_whitespace().skip(1).map(at))?.plan)
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
