//! Where the objects come from: files, or a cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use interlock_core::api::display::one_line;
use interlock_gateway::policies::{PolicyKinds, PolicySurvey, UnlistedKind, aged, applied, by_identity};
use kube::Client;
use serde_json::{Value, json};

use super::cluster::ClusterObjects;
use crate::cli::check::manifests::{self, STDIN};
use crate::cli::common::discovery::ServedKinds;
use crate::cli::common::error::CliError;
use crate::cli::common::gaps::Gaps;
use crate::cli::common::output;
use crate::cli::common::target::TargetFlags;

/// The namespace of objects of files that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// Kinds without a namespace.
const CLUSTER_SCOPED: [&str; 3] = ["GatewayClass", "Namespace", "CustomResourceDefinition"];

/// The flag for files in place of a cluster.
#[derive(Args, Clone, Debug)]
pub(in crate::cli) struct FilesFlag {
    /// Objects in place of a cluster, can be repeated: a file of YAML or JSON with any number of objects or
    /// Lists, a folder of such files, or - for standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(in crate::cli) files: Vec<PathBuf>,
}

/// The objects, and what is not known.
pub(in crate::cli) struct Source {
    pub(in crate::cli) namespace: String,
    kinds: PolicyKinds,
    objects: Vec<Value>,
    unlisted: Vec<UnlistedKind>,
    pub(in crate::cli) gaps: Gaps,
    assumes_classes: bool,
}

impl Source {
    /// From these files, or without any from the cluster. What could not be listed is noted.
    pub(in crate::cli) async fn read(target: &TargetFlags, files: &[PathBuf]) -> anyhow::Result<Self> {
        if files.is_empty() {
            let (client, namespace) = target.connect().await?;
            let served = ServedKinds::discover(&client).await?;
            let found = Self::of_cluster(&client, &served, namespace).await?;
            found.gaps.lines().iter().for_each(|line| output::note(line));
            return Ok(found);
        }
        let namespace = target.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        let objects = by_identity(objects(files, &namespace)?).into_values().collect::<Vec<_>>();
        let mut kinds = PolicyKinds::known();
        kinds.add_definitions(&objects);
        let (unlisted, gaps) = (Vec::new(), Gaps::default());
        Ok(Self { namespace, kinds, objects, unlisted, gaps, assumes_classes: true })
    }

    /// From a cluster.
    pub(in crate::cli) async fn of_cluster(
        client: &Client,
        served: &ServedKinds,
        namespace: String,
    ) -> Result<Self, CliError> {
        let found = ClusterObjects::list(client, served, namespace).await?;
        let ClusterObjects { namespace, kinds, objects, unlisted, gaps, has_classes } = found;
        Ok(Self { namespace, kinds, objects, unlisted, gaps, assumes_classes: !has_classes })
    }

    /// The same, as what is there before others.
    pub(super) fn aged(self) -> Self {
        Self { objects: aged(self.objects), ..self }
    }

    /// The same after these files are applied, and what of them would not be taken, and why: it is left out.
    pub(super) fn with(&self, files: &[PathBuf]) -> anyhow::Result<(Self, Vec<String>)> {
        let mut new = objects(files, &self.namespace)?;
        let mut kinds = self.kinds.clone();
        kinds.add_definitions(&new);
        let mut after = Self {
            namespace: self.namespace.clone(),
            kinds,
            objects: applied(self.objects.clone(), new.clone()),
            unlisted: self.unlisted.clone(),
            gaps: Gaps::default(),
            assumes_classes: self.assumes_classes,
        };
        let survey = after.linked();
        let mut refused = Vec::new();
        new.retain(|object| match survey.why_not_taken(object) {
            None => true,
            Some(why) => {
                refused.push(format!("{}: {why}", name(object)));
                false
            }
        });
        if !refused.is_empty() {
            after.objects = applied(self.objects.clone(), new);
        }
        Ok((after, refused))
    }

    /// Links the objects. What is odd about them is noted.
    pub(in crate::cli) fn survey(&self) -> PolicySurvey {
        let survey = self.linked();
        for name in survey.assumed_classes() {
            let name = one_line(name);
            output::note(&format!("GatewayClass {name} is not among the objects, and taken as present"));
        }
        foreign_classes(&survey, survey.index().paths())
            .iter()
            .for_each(|note| output::note(&one_line(note)));
        let unknown = survey.routes_of_unknown_namespaces();
        let namespaces: BTreeSet<&str> = unknown.map(|route| &*route.namespace).collect();
        if !namespaces.is_empty() {
            let names: Vec<&str> = namespaces.into_iter().collect();
            output::note(&one_line(&format!(
                "listeners select routes by labels of Namespaces that are not among the objects; paths of their routes \
                 are left out: {}",
                names.join(", ")
            )));
        }
        for kind in survey.unknown_kinds() {
            let kind = one_line(kind);
            output::note(&format!(
                "objects of {kind} have targets and are left out: give their CustomResourceDefinition with the label \
                 gateway.networking.k8s.io/policy"
            ));
        }
        if let Some((one, other)) = survey.of_unknown_age() {
            output::note(&one_line(&format!(
                "policies without creationTimestamp are compared by name, and in a cluster the one that is created \
                 first has the target: {one} and {other}"
            )));
        }
        let kinds: BTreeSet<&str> = survey.policies().map(|id| &*id.kind).collect();
        for kind in kinds.into_iter().filter(|kind| survey.kinds().is_merge_assumed(kind)) {
            output::note(&one_line(&format!(
                "policies of {kind} are merged field by field here, as its definition does not say how"
            )));
        }
        for fault in survey.faults() {
            output::note(&format!("left out, as it cannot be decoded: {}", one_line(fault)));
        }
        survey
    }

    /// The same without notes.
    pub(super) fn linked(&self) -> PolicySurvey {
        let unlisted = self.unlisted.clone();
        PolicySurvey::of(self.kinds.clone(), &self.objects, unlisted, self.assumes_classes)
    }

    pub(super) fn kinds(&self) -> &PolicyKinds {
        &self.kinds
    }

    pub(super) fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// Adds to an answer which objects do not decode, and which kinds could not be listed, if any.
    pub(super) fn complete(&self, survey: &PolicySurvey, mut answer: Value) -> Value {
        if !survey.faults().is_empty() {
            answer["notDecoded"] = json!(survey.faults());
        }
        if !self.gaps.is_none() {
            answer["notSeen"] = json!(self.gaps.json());
        }
        answer
    }
}

/// That the class of some paths may not be one of Envoy Gateway, whose policies are shown on them.
pub(super) fn foreign_classes<'a>(
    survey: &'a PolicySurvey,
    paths: impl Iterator<Item = &'a Arc<gateway_policies::Path>>,
) -> Vec<String> {
    let note = |(class, controller)| {
        format!(
            "policies of Envoy Gateway are shown below GatewayClass {class}, and do not act there unless its controller \
             {controller} is an Envoy Gateway"
        )
    };
    survey.foreign_classes(paths).into_iter().map(note).collect()
}

/// `KIND/NAMESPACE/NAME`.
fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    format!("{}/{}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

fn objects(files: &[PathBuf], namespace: &str) -> anyhow::Result<Vec<Value>> {
    let unreadable =
        |error: anyhow::Error| CliError::usage("the objects cannot be read").why(format!("{error:#}"));
    let manifests = manifests::read(files).map_err(unreadable)?;
    let mut objects: Vec<Value> = manifests.into_iter().map(|manifest| manifest.object).collect();
    if objects.is_empty() {
        return Err(CliError::usage("-f holds no object").next("give a file or a folder with one").into());
    }
    for object in &mut objects {
        let has_none = object["metadata"]["namespace"].as_str().unwrap_or_default().is_empty();
        let is_scoped = object["kind"].as_str().is_some_and(|kind| CLUSTER_SCOPED.contains(&kind));
        if has_none && !is_scoped {
            object["metadata"]["namespace"] = namespace.into();
        }
    }
    Ok(objects)
}

/// An error where several files are standard input.
pub(super) fn at_most_one_stdin<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Result<(), CliError> {
    match files.filter(|file| *file == Path::new(STDIN)).count() {
        0 | 1 => Ok(()),
        _ => {
            Err(CliError::usage("standard input is given twice").next("give - once, and files for the rest"))
        }
    }
}
