//! `interlock package list`: the packages of a repository.

use clap::Args;
use interlock_kudo::package::repository::IndexedPackage;
use serde::Serialize;

use super::source::{Downloads, Repository, RepositoryFlag};
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;
use crate::cli::common::output::OutputFlag;

/// Flags of `interlock package list`.
#[derive(Args, Debug)]
pub(super) struct ListFlags {
    /// Only packages with this in their names.
    name: Option<String>,
    #[command(flatten)]
    repository: RepositoryFlag,
    /// All versions; by default the newest of each package.
    #[arg(long, short)]
    all_versions: bool,
    #[command(flatten)]
    output: OutputFlag,
}

/// A package, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    name: &'a str,
    operator_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    urls: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
}

/// Runs the command.
pub(super) fn run(flags: &ListFlags) -> Result<(), CliError> {
    let repository = Repository::open(flags.repository.needed()?, &mut Downloads::new()?)?;
    let most = if flags.all_versions { usize::MAX } else { 1 };
    let fits = |package: &&IndexedPackage| flags.name.as_ref().is_none_or(|name| package.name.contains(name));
    let packages = repository.index.packages().flat_map(|versions| versions.iter().take(most)).filter(fits);
    let rows: Vec<Row<'_>> = packages.map(row).collect();
    flags.output.output.print(&rows, || table(&rows))
}

fn row(package: &IndexedPackage) -> Row<'_> {
    Row {
        name: &package.name,
        operator_version: &package.version,
        app_version: package.app_version.as_deref(),
        description: package.description.as_deref(),
        urls: &package.urls,
        digest: package.digest.as_deref(),
    }
}

fn table(rows: &[Row<'_>]) -> String {
    let cells =
        |row: &Row<'_>| [row.name, row.operator_version, row.app_version.unwrap_or("-")].map(plain).to_vec();
    output::table(&["NAME", "OPERATORVERSION", "APPVERSION"], rows.iter().map(cells))
}
