//! `interlock package`: installs, upgrades, uninstalls, verifies and renders packages, as `kubectl kudo` does.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;

use self::cluster::{PackageNamespace, WantedInstance};
use self::dependencies::PackageTree;
pub(in crate::cli) use self::dependencies::read_package;
use self::dry_run::{DryRun, DryRunFlags};
use self::source::SourceFlags;
use self::values::ParameterFlags;
use crate::cli::common::error::CliError;
use crate::cli::common::exit;
use crate::cli::common::flags::{Limit, namespaced_name};
use crate::cli::common::target::{TargetFlags, block_on};

mod archives;
mod cluster;
mod dependencies;
mod dry_run;
mod list;
mod render;
mod rights;
mod source;
mod values;
mod verify;

/// Flags of `interlock package`.
#[derive(Args, Debug)]
pub struct PackageArguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    target: TargetFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Installs a package, and the packages that it refers to: Operator, OperatorVersion and an Instance.
    Install(InstallFlags),
    /// Upgrades an Instance to a newer version of its package.
    Upgrade(UpgradeFlags),
    /// Deletes an Instance; its cleanup plan runs first.
    Uninstall(UninstallFlags),
    /// Prints the errors of a package, and which objects are converted; needs no cluster.
    Verify(VerifyFlags),
    /// Prints the objects of a package as its plans apply them, with given values; needs no cluster.
    Render(render::RenderFlags),
    /// Lists the packages of a repository; needs no cluster.
    List(list::ListFlags),
    /// Packs the folder of a package into an archive (.tgz), which KUDO's client reads too; needs no cluster.
    Create(archives::CreateFlags),
    /// Writes the index.yaml of a folder of archives, which makes it a repository; needs no cluster.
    Index(archives::IndexFlags),
}

#[derive(Args, Debug)]
struct WaitFlags {
    /// Wait until it is done; a plan that fails ends the wait, except in a deletion.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    limit: Limit,
}

impl WaitFlags {
    fn limit(&self) -> Option<Duration> {
        self.wait.then_some(self.limit.timeout)
    }
}

#[derive(Args, Debug)]
struct AccountFlag {
    /// NAMESPACE/NAME of the service account that packages act as, unless the Interlock object names another,
    /// as in the flag of `interlock run`. Used only to warn if it is cluster-admin.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced_name,
          default_value_t = NamespacedName::new(meta::NAMESPACE, meta::PACKAGES_SERVICE_ACCOUNT))]
    packages_service_account: NamespacedName,
}

#[derive(Args, Debug)]
struct InstallFlags {
    #[command(flatten)]
    source: SourceFlags,
    /// Name of the Instance; by default the name of the operator with the suffix -instance.
    #[arg(long)]
    instance: Option<String>,
    /// Install Operator and OperatorVersion only.
    #[arg(long, conflicts_with_all = ["instance", "wait"])]
    skip_instance: bool,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    account: AccountFlag,
    #[command(flatten)]
    wait: WaitFlags,
    #[command(flatten)]
    dry_run: DryRunFlags,
}

#[derive(Args, Debug)]
struct UpgradeFlags {
    #[command(flatten)]
    source: SourceFlags,
    /// Name of the Instance; by default the name of the operator with the suffix -instance.
    #[arg(long)]
    instance: Option<String>,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    account: AccountFlag,
    #[command(flatten)]
    wait: WaitFlags,
}

#[derive(Args, Debug)]
struct UninstallFlags {
    /// Name of the Instance.
    #[arg(long)]
    instance: String,
    #[command(flatten)]
    wait: WaitFlags,
}

#[derive(Args, Debug)]
struct VerifyFlags {
    #[command(flatten)]
    source: SourceFlags,
}

/// Runs the command.
pub fn main(arguments: PackageArguments) -> ExitCode {
    let PackageArguments { verb, target } = arguments;
    match verb {
        Verb::Verify(verify) => verify::main(&verify.source),
        Verb::Render(flags) => render::main(&flags, target.namespace.as_deref()),
        Verb::List(flags) => exit::done(list::run(&flags).map_err(Into::into)),
        Verb::Create(flags) => exit::done(archives::create(&flags).map_err(Into::into)),
        Verb::Index(flags) => exit::done(archives::index(&flags).map_err(Into::into)),
        // What is read before the cluster is asked may have to be downloaded, by a runtime of its own.
        Verb::Install(flags) => match wanted(&flags.source, &flags.parameters) {
            Ok((tree, values)) => block_on(install(flags, target, tree, values)),
            Err(error) => exit::print(&error),
        },
        Verb::Upgrade(flags) => match wanted(&flags.source, &flags.parameters) {
            Ok((tree, values)) => block_on(upgrade(flags, target, tree, values)),
            Err(error) => exit::print(&error),
        },
        Verb::Uninstall(flags) => block_on(async move {
            let target = PackageNamespace::connect(&target).await?;
            Ok(target.uninstall(&flags.instance, flags.wait.limit()).await?)
        }),
    }
}

/// The package, and the values of its parameters.
fn wanted(
    source: &SourceFlags,
    parameters: &ParameterFlags,
) -> Result<(PackageTree, BTreeMap<String, String>), CliError> {
    let tree = dependencies::of(source)?;
    let values = values::read(&parameters.given, &parameters.files)?;
    values::check(&tree.package, &values)?;
    Ok((tree, values))
}

async fn install(
    flags: InstallFlags,
    target: TargetFlags,
    tree: PackageTree,
    parameters: BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let package = &tree.package;
    if !flags.skip_instance {
        values::complete(package, &parameters)?;
    }
    let name = flags.instance.unwrap_or_else(|| package.default_instance_name());
    let instance = (!flags.skip_instance).then_some((name.as_str(), &parameters));
    if flags.dry_run.dry_run == Some(DryRun::Client) {
        let objects = dry_run::objects(&tree, instance, target.namespace.as_deref());
        return Ok(flags.dry_run.print(&objects)?);
    }
    let target = PackageNamespace::connect(&target).await?;
    target.check_versions(&tree).await?;
    target.warn_of_rights(&flags.account.packages_service_account).await;
    if flags.dry_run.dry_run == Some(DryRun::Server) {
        let objects = dry_run::objects(&tree, instance, Some(target.name()));
        let answers = target.dry_run(objects).await?;
        return Ok(flags.dry_run.print(&answers)?);
    }
    if flags.skip_instance {
        return Ok(target.ensure_versions(&tree).await?);
    }
    let limit = flags.wait.limit();
    let wanted = WantedInstance { tree: &tree, name: &name, parameters: &parameters, limit };
    Ok(target.install(wanted).await?)
}

async fn upgrade(
    flags: UpgradeFlags,
    target: TargetFlags,
    tree: PackageTree,
    parameters: BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let target = PackageNamespace::connect(&target).await?;
    target.check_versions(&tree).await?;
    target.warn_of_rights(&flags.account.packages_service_account).await;
    let name = flags.instance.unwrap_or_else(|| tree.package.default_instance_name());
    let limit = flags.wait.limit();
    let wanted = WantedInstance { tree: &tree, name: &name, parameters: &parameters, limit };
    Ok(target.upgrade(wanted).await?)
}
