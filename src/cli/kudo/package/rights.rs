//! Warns where a package may do more than the user who installs it: its effects use a service account, and
//! users with the right to write packages or Instances have the rights of that account.

use std::fmt::Write as _;

use interlock_core::api::interlock;
use interlock_core::api::interlock::{Account, Accounts, Interlock};
use interlock_core::api::object::NamespacedName;
use k8s_openapi::api::authorization::v1::{
    LocalSubjectAccessReview, ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::{Api, PostParams};
use kube::{Client, Error};

use crate::cli::common::error::reason;

const DOCS: &str = "docs/rights.md";

/// The API server's answer to this user about the packages' service account.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AccountRights {
    /// It may do everything everywhere: cluster-admin.
    Cluster,
    /// It may do everything in this namespace; the user may not ask about others.
    Namespace,
    /// It is not cluster-admin.
    Limited,
    /// No answer; the reason.
    Unknown(String),
}

/// The service account of packages in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PackageAccount {
    account: NamespacedName,
    /// Why it may be another one.
    uncertain: Option<String>,
}

/// The warning before a package is written to a namespace, if there is one; `default` is the packages'
/// service account where the Interlock object names no other.
pub(super) async fn warning(client: &Client, namespace: &str, default: &NamespacedName) -> Option<String> {
    if is_cluster_admin(client).await.unwrap_or(false) {
        return None;
    }
    let package_account = package_account(client, namespace, default).await?;
    let account_rights = account_rights(client, namespace, &package_account.account).await;
    let account_rights = account_rights.unwrap_or_else(|error| AccountRights::Unknown(reason(&error)));
    text(namespace, &package_account, &account_rights)
}

/// The service account that packages act as; `None` where Interlock is not installed.
async fn package_account(
    client: &Client,
    namespace: &str,
    default: &NamespacedName,
) -> Option<PackageAccount> {
    let settings = match Api::<Interlock>::all(client.clone()).get(interlock::DEFAULT).await {
        Ok(interlock) => interlock.spec.instances.map(|instances| instances.service_accounts),
        // The answer names a missing object, but not an unserved kind.
        Err(Error::Api(status)) if status.is_not_found() => {
            status.details.as_ref().filter(|details| details.name == interlock::DEFAULT)?;
            None
        }
        Err(error) => {
            return Some(PackageAccount { account: default.clone(), uncertain: Some(reason(&error)) });
        }
    };
    let (accounts, _) = Accounts::read(&settings.unwrap_or_default());
    Some(match accounts.of(namespace) {
        Account::Named(account) => PackageAccount { account, uncertain: None },
        Account::Default => PackageAccount { account: default.clone(), uncertain: None },
        Account::Invalid(why) => PackageAccount { account: default.clone(), uncertain: Some(why) },
    })
}

async fn is_cluster_admin(client: &Client) -> Result<bool, Error> {
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(everything(None)),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    Ok(allowed(api.create(&PostParams::default(), &review).await?.status))
}

/// A user who may ask about others in the whole cluster is often an admin; in a namespace, its admin is.
async fn account_rights(
    client: &Client,
    namespace: &str,
    account: &NamespacedName,
) -> Result<AccountRights, Error> {
    let everywhere = SubjectAccessReview { spec: of(account, None), ..SubjectAccessReview::default() };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    match api.create(&PostParams::default(), &everywhere).await {
        Ok(review) if allowed(review.status.clone()) => return Ok(AccountRights::Cluster),
        Ok(_) => return Ok(AccountRights::Limited),
        Err(Error::Api(status)) if status.is_forbidden() => {}
        Err(error) => return Err(error),
    }
    let mut here = LocalSubjectAccessReview {
        spec: of(account, Some(namespace)),
        ..LocalSubjectAccessReview::default()
    };
    here.metadata.namespace = Some(namespace.to_owned());
    let api: Api<LocalSubjectAccessReview> = Api::namespaced(client.clone(), namespace);
    match api.create(&PostParams::default(), &here).await {
        Ok(review) if allowed(review.status.clone()) => Ok(AccountRights::Namespace),
        Ok(_) => Ok(AccountRights::Limited),
        Err(error) => Err(error),
    }
}

fn allowed(status: Option<SubjectAccessReviewStatus>) -> bool {
    status.is_some_and(|status| status.allowed && status.denied != Some(true))
}

/// Rights that only cluster-admin has.
fn everything(namespace: Option<&str>) -> ResourceAttributes {
    let all = || Some("*".to_owned());
    ResourceAttributes {
        verb: all(),
        group: all(),
        version: all(),
        resource: all(),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

/// The review for a service account, with the groups that the API server gives it.
fn of(account: &NamespacedName, namespace: Option<&str>) -> SubjectAccessReviewSpec {
    let groups = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{}", account.namespace),
        "system:authenticated".to_owned(),
    ];
    SubjectAccessReviewSpec {
        user: Some(user(account)),
        groups: Some(groups.into()),
        resource_attributes: Some(everything(namespace)),
        ..SubjectAccessReviewSpec::default()
    }
}

fn user(account: &NamespacedName) -> String {
    format!("system:serviceaccount:{}:{}", account.namespace, account.name)
}

/// One line, or `None` without a problem.
fn text(namespace: &str, package_account: &PackageAccount, account_rights: &AccountRights) -> Option<String> {
    let PackageAccount { account, uncertain } = package_account;
    let mut acts = format!("packages in namespace {namespace} act as the service account {account}");
    if let Some(why) = uncertain {
        let _ = write!(acts, ", unless the Interlock object names another, which is unknown ({why})");
    }
    let ask = format!("an administrator can ask: kubectl auth can-i '*' '*' --as={}", user(account));
    Some(match account_rights {
        AccountRights::Limited if uncertain.is_none() => return None,
        AccountRights::Limited => format!("note: {acts}; {account} is not cluster-admin ({DOCS})"),
        AccountRights::Cluster => format!(
            "warning: {acts}; it is cluster-admin, and you are not: all users who may write OperatorVersions or \
             Instances here may do anything in the cluster. Name an account with fewer rights in \
             spec.instances.serviceAccounts of the Interlock object ({DOCS})"
        ),
        AccountRights::Namespace => format!(
            "warning: {acts}; it may do everything in this namespace, and you may not ask whether it is \
             cluster-admin: {ask} ({DOCS})"
        ),
        AccountRights::Unknown(why) => {
            format!("note: {acts}; whether it is cluster-admin is unknown ({why}): {ask} ({DOCS})")
        }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FORBIDDEN: &str = "interlocks is forbidden";

    #[rstest]
    #[case::limited(None, AccountRights::Limited, None)]
    #[case::limited_perhaps(
        Some(FORBIDDEN),
        AccountRights::Limited,
        Some(
            "note: packages in namespace shop act as the service account shop/deployer, unless the Interlock object \
             names another, which is unknown (interlocks is forbidden); shop/deployer is not cluster-admin"
        )
    )]
    #[case::cluster_admin(
        None,
        AccountRights::Cluster,
        Some(
            "warning: packages in namespace shop act as the service account shop/deployer; it is cluster-admin, and \
             you are not: "
        )
    )]
    #[case::everything_here(
        None,
        AccountRights::Namespace,
        Some(
            "warning: packages in namespace shop act as the service account shop/deployer; it may do everything in \
             this namespace, and you may not ask whether it is cluster-admin: an administrator can ask: "
        )
    )]
    #[case::unknown(
        None,
        AccountRights::Unknown("reviews are forbidden".to_owned()),
        Some(
            "note: packages in namespace shop act as the service account shop/deployer; whether it is cluster-admin \
             is unknown (reviews are forbidden): an administrator can ask: kubectl auth can-i '*' '*' \
             --as=system:serviceaccount:shop:deployer"
        )
    )]
    fn the_warning_says_which_rights_are_known(
        #[case] uncertain: Option<&str>,
        #[case] account_rights: AccountRights,
        #[case] expected: Option<&str>,
    ) {
        let account = NamespacedName::new("shop", "deployer");
        let found = text(
            "shop",
            &PackageAccount { account, uncertain: uncertain.map(str::to_owned) },
            &account_rights,
        );
        let Some(expected) = expected else { return assert_eq!(found, None) };
        let found = found.unwrap();
        assert!(found.starts_with(expected), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}
