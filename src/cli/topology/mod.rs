//! `interlock topology`: the objects that Interlock watches and the links between them, as far as the
//! caller may read them.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use interlock_core::kinds;
use interlock_core::kinds::Kinds;
use interlock_core::topology::snapshot::GraphSnapshot;
use interlock_core::topology::{GroupKind, NodeId, event_table};
use serde_json::json;

use self::listing::{ListScope, Listing};
use crate::cli::common::discovery::{NamedObject, ServedKinds};
use crate::cli::common::error::CliError;
use crate::cli::common::output::Output;
use crate::cli::common::target::{AllNamespaces, TargetFlags, block_on};
use crate::cli::common::{exit, output};

mod listing;
mod node_facts;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GraphOutput {
    /// For people: a tree.
    #[value(alias = "tree")]
    Table,
    /// For Graphviz: pipe it into `dot -Tsvg`.
    Dot,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Flags of `interlock topology`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TopologyArguments {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    print: PrintFlags,
}

#[derive(Debug, Subcommand)]
enum Other {
    /// Prints which reconciles an event of each kind triggers; needs no cluster.
    Events,
}

#[derive(Args, Debug)]
struct PrintFlags {
    /// Print only this object, its ancestors and its descendants.
    #[arg(long, value_name = "KIND/NAMESPACE/NAME")]
    root: Option<String>,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value = "table")]
    output: GraphOutput,
    #[command(flatten)]
    all: AllNamespaces,
    #[command(flatten)]
    target: TargetFlags,
}

/// Runs the command.
pub fn main(arguments: TopologyArguments, kinds: Kinds) -> ExitCode {
    match arguments.other {
        Some(Other::Events) => {
            let all = kinds::schemas(kinds).into_iter().chain([&kinds::MADE]);
            exit::done(output::text(&event_table::text(all)).map_err(anyhow::Error::from))
        }
        None => block_on(run(arguments.print, kinds)),
    }
}

async fn run(flags: PrintFlags, kinds: Kinds) -> anyhow::Result<()> {
    let root = flags.root.as_deref().map(|root| NamedObject::parse(&[root])).transpose();
    let root = root.map_err(|error| error.within("--root"))?;
    let (client, default_namespace) = flags.target.connect().await?;
    let served = ServedKinds::discover(&client).await?;
    let root = root.map(|root| id_of(&root, &served, &default_namespace, kinds)).transpose()?;
    // Without -n and -A all namespaces are listed, and where that is forbidden, the default one.
    let requested_namespace =
        flags.all.scope(&flags.target, &default_namespace)?.filter(|_| flags.target.namespace.is_some());
    let scope = ListScope { requested_namespace, default_namespace: &default_namespace, kinds };
    let listing = Listing::list_all(&client, &served, scope).await;
    if let Some(error) = listing.gaps.nothing() {
        return Err(error.into());
    }
    for line in listing.gaps.lines() {
        output::note(&line);
    }
    let picture = match (listing.snapshot(root.as_ref()), &root) {
        (Some(picture), _) => picture,
        (None, Some(root)) => return Err(not_seen(root, &listing).into()),
        (None, None) => GraphSnapshot::default(),
    };
    if picture.nodes.is_empty() {
        let place = requested_namespace.map_or_else(String::new, |name| format!(" in namespace {name}"));
        output::note(&format!("there are no objects{place}"));
    }
    let mut value = picture.json();
    value["notSeen"] = json!(listing.gaps.json());
    let (form, text) = match flags.output {
        GraphOutput::Table => (Output::Table, picture.tree()),
        GraphOutput::Dot => (Output::Table, picture.dot()),
        GraphOutput::Json => (Output::Json, String::new()),
        GraphOutput::Yaml => (Output::Yaml, String::new()),
    };
    Ok(form.print(&value, || text)?)
}

/// The error about a root that is not in the graph.
fn not_seen(root: &NodeId, listing: &Listing) -> CliError {
    let error = CliError::unreached(format!("{root} does not exist, and nothing refers to it"));
    match listing.gaps.is_none() {
        true => error.next("name another object with --root; without it everything is printed"),
        false => CliError::unreached(format!("{root} is not among the objects that can be seen"))
            .why("some kinds could not be listed, as said above")
            .next("name another object with --root; without it everything is printed"),
    }
}

/// The named node; a declared kind has one even while it is not served.
fn id_of(
    named: &NamedObject,
    served: &ServedKinds,
    default_namespace: &str,
    kinds: Kinds,
) -> Result<NodeId, CliError> {
    let (name, section) = named.name.split_once('#').unwrap_or((&named.name, ""));
    let given = named.namespace.as_deref();
    let (kind, namespace) = match served.find(&named.kind) {
        Ok(found) => {
            let namespace = if found.namespaced { given.unwrap_or(default_namespace) } else { "" };
            (GroupKind::new(&found.api.group, &found.api.kind), namespace)
        }
        Err(error) => {
            let is = |text: String| text.eq_ignore_ascii_case(&named.kind);
            let mut declared = kinds::schemas(kinds).into_iter().map(|kind| kind.name);
            let found = declared.find(|name| is(name.kind.to_owned()) || is(name.to_string()));
            (found.ok_or(error)?.into(), given.unwrap_or_default())
        }
    };
    Ok(NodeId::new(kind, namespace, name).section(section))
}
