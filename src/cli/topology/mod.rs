//! `interlock topology`: the objects that Interlock watches and the links between them, as far as the
//! caller may read them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use interlock_core::kinds::{self, Kinds};
use interlock_core::topology::{GroupKind, NodeId, event_table};
use serde_json::json;

use self::listing::{ListScope, Listing};
use super::discovery::{NamedObject, ServedKinds};
use super::exit;
use super::target::{TargetFlags, block_on};

mod listing;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Tree,
    /// For Graphviz: pipe it into `dot -Tsvg`.
    Dot,
    /// For programs.
    Json,
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
    #[arg(long, short, value_enum, default_value = "tree")]
    output: Output,
    #[command(flatten)]
    target: TargetFlags,
}

/// Runs the command.
pub fn main(arguments: TopologyArguments, kinds: Kinds) -> ExitCode {
    match arguments.other {
        Some(Other::Events) => {
            let all = kinds::schemas(kinds).into_iter().chain([&kinds::MADE]);
            exit::done(print(&event_table::text(all)))
        }
        None => block_on(run(arguments.print, kinds)),
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

async fn run(flags: PrintFlags, kinds: Kinds) -> anyhow::Result<()> {
    let root = flags.root.as_deref().map(|root| NamedObject::parse(&[root])).transpose();
    let root = root.map_err(|why| anyhow::anyhow!("--root {why}"))?;
    let (client, default_namespace) = flags.target.connect().await?;
    let served = ServedKinds::discover(&client).await?;
    let root = root.map(|root| id_of(&root, &served, &default_namespace, kinds)).transpose()?;
    let scope = ListScope {
        requested_namespace: flags.target.namespace.as_deref(),
        default_namespace: &default_namespace,
        kinds,
    };
    let listing = Listing::list_all(&client, &served, scope).await;
    for line in listing.unlisted_lines() {
        eprintln!("{line}");
    }
    let picture = match &root {
        None => listing.graph.snapshot(),
        Some(root) => match listing.graph.snapshot_of(root) {
            Some(picture) => picture,
            None => bail!(
                "{root} is not among the objects that can be seen, and none of them refers to it{}",
                if listing.is_complete() { "" } else { "; what could not be seen is named above" }
            ),
        },
    };
    print(&match flags.output {
        Output::Tree => picture.tree(),
        Output::Dot => picture.dot(),
        Output::Json => {
            let mut value = picture.json();
            value["notSeen"] = json!(listing.unlisted_json());
            format!("{value:#}\n")
        }
    })
}

/// The named node; a declared kind has one even while it is not served.
fn id_of(
    named: &NamedObject,
    served: &ServedKinds,
    default_namespace: &str,
    kinds: Kinds,
) -> anyhow::Result<NodeId> {
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
