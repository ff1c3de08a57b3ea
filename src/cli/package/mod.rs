//! `interlock package`: installs, upgrades, uninstalls, verifies and renders packages, as `kubectl kudo` does.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;

use self::cluster::{PackageNamespace, WantedInstance};
pub(super) use self::dependencies::read_package;
use self::values::ParameterFlags;
use super::flags::{Limit, namespaced_name};
use super::target::{TargetFlags, block_on};

mod cluster;
mod dependencies;
mod render;
mod rights;
mod source;
mod values;
mod verify;
mod versions;

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
    /// Installs a package, and those that it names by their folders: Operator, OperatorVersion and an Instance.
    Install(InstallFlags),
    /// Upgrades an Instance to a newer version of its package.
    Upgrade(UpgradeFlags),
    /// Deletes an Instance; its cleanup plan runs first.
    Uninstall(UninstallFlags),
    /// Prints what is wrong with a package, and what is converted when it is carried out; needs no cluster.
    Verify(VerifyFlags),
    /// Prints the objects of a package as its plans apply them, with given values; needs no cluster.
    Render(render::RenderFlags),
}

#[derive(Args, Debug)]
struct WaitFlags {
    /// Wait until it is done; a plan that fails ends the wait, but for that of a deletion.
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
    /// NAMESPACE/NAME of the service account that packages act as where the Interlock object names
    /// no other, as in the flag of `interlock run`; it is only asked whether it is cluster-admin.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced_name,
          default_value_t = NamespacedName::new(meta::NAMESPACE, meta::PACKAGES_SERVICE_ACCOUNT))]
    packages_service_account: NamespacedName,
}

#[derive(Args, Debug)]
struct InstallFlags {
    /// Folder with operator.yaml, params.yaml and templates/.
    dir: PathBuf,
    /// Name of the Instance; by default that of the operator with -instance behind it.
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
}

#[derive(Args, Debug)]
struct UpgradeFlags {
    /// Folder with operator.yaml, params.yaml and templates/.
    dir: PathBuf,
    /// Name of the Instance; by default that of the operator with -instance behind it.
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
    /// Folder with operator.yaml, params.yaml and templates/.
    dir: PathBuf,
}

/// Runs the command.
pub fn main(arguments: PackageArguments) -> ExitCode {
    match &arguments.verb {
        Verb::Verify(verify) => verify::main(&verify.dir),
        Verb::Render(flags) => render::main(flags, arguments.target.namespace.as_deref()),
        _ => block_on(run(arguments)),
    }
}

async fn run(arguments: PackageArguments) -> anyhow::Result<()> {
    let flags = arguments.target;
    match arguments.verb {
        Verb::Install(install) => {
            let tree = dependencies::read(&install.dir)?;
            let package = &tree.package;
            let parameters = values::read(&install.parameters.given, &install.parameters.files)?;
            values::check(package, &parameters)?;
            if !install.skip_instance {
                values::complete(package, &parameters)?;
            }
            let target = PackageNamespace::connect(&flags).await?;
            target.check_versions(&tree).await?;
            target.warn_of_rights(&install.account.packages_service_account).await;
            let name = install.instance.unwrap_or_else(|| package.default_instance_name());
            if install.skip_instance {
                return Ok(target.ensure_versions(&tree).await?);
            }
            let limit = install.wait.limit();
            let wanted = WantedInstance { tree: &tree, name: &name, parameters: &parameters, limit };
            target.install(wanted).await?;
        }
        Verb::Upgrade(upgrade) => {
            let tree = dependencies::read(&upgrade.dir)?;
            let package = &tree.package;
            let parameters = values::read(&upgrade.parameters.given, &upgrade.parameters.files)?;
            values::check(package, &parameters)?;
            let target = PackageNamespace::connect(&flags).await?;
            target.check_versions(&tree).await?;
            target.warn_of_rights(&upgrade.account.packages_service_account).await;
            let name = upgrade.instance.unwrap_or_else(|| package.default_instance_name());
            let limit = upgrade.wait.limit();
            let wanted = WantedInstance { tree: &tree, name: &name, parameters: &parameters, limit };
            target.upgrade(wanted).await?;
        }
        Verb::Uninstall(uninstall) => {
            let target = PackageNamespace::connect(&flags).await?;
            target.uninstall(&uninstall.instance, uninstall.wait.limit()).await?;
        }
        Verb::Verify(_) | Verb::Render(_) => {}
    }
    Ok(())
}
