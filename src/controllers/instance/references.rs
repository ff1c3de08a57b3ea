//! Access checks for references to OperatorVersions of other namespaces.
//!
//! Such a reference counts only while the policy that checks its author is intact, and the packages'
//! service account may get the OperatorVersion: a reference written while the policy was absent is
//! otherwise never checked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::effect::ApiFailure;
use interlock_kudo::instance::change::next::{DriftRefusal, ReferenceAccess};
use interlock_kudo::instance::rules::ids::VERSION_NAMESPACE;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::authorize::Authorizer;
use crate::cluster::requests::failure;
use crate::cluster::tamper::GuardState;

/// How long an answer is cached: rights are not watched.
const ALLOWED: Duration = Duration::from_secs(60);
/// The same of a denial: the right may be granted soon.
const REFUSED: Duration = Duration::from_secs(5);
/// Maximum number of cached answers.
const LIMIT: usize = 4_096;

/// What the API server answered, by service account and OperatorVersion.
pub struct References {
    authorizer: Authorizer,
    policy: watch::Receiver<GuardState>,
    answers: Mutex<HashMap<(NamespacedName, NamespacedName), Answer>>,
}

#[derive(Clone, Copy)]
struct Answer {
    allowed: bool,
    until: Instant,
}

impl References {
    /// Asks as the user of `client`, who must have the right to create SubjectAccessReviews; `policy` is
    /// the state of `interlock-versions` and its binding.
    pub fn new(client: &Client, policy: watch::Receiver<GuardState>) -> Self {
        Self { authorizer: Authorizer::new(client), policy, answers: Mutex::default() }
    }

    pub fn policy(&self) -> watch::Receiver<GuardState> {
        self.policy.clone()
    }

    /// The cached access of an Instance in that namespace, whose packages act as `account`.
    pub fn known(
        &self,
        namespace: &str,
        account: Result<&NamespacedName, &String>,
        version: &NamespacedName,
    ) -> ReferenceAccess {
        if version.namespace == namespace {
            return ReferenceAccess::Allowed;
        }
        match &*self.policy.borrow() {
            GuardState::Unknown => return ReferenceAccess::Unknown,
            GuardState::Broken(why) => return refused(format!("{}: {why}", unguarded(version))),
            GuardState::Intact => {}
        }
        let account = match account {
            Ok(account) => account,
            Err(why) => return refused(why.clone()),
        };
        let key = (account.clone(), version.clone());
        match self.answers().get(&key).filter(|answer| Instant::now() < answer.until) {
            None => ReferenceAccess::Unknown,
            Some(Answer { allowed: true, .. }) => ReferenceAccess::Allowed,
            Some(_) => refused(may_not(namespace, account, version)),
        }
    }

    /// Asks the API server; returns whether there is an answer now.
    pub async fn ask(&self, account: &NamespacedName, version: &NamespacedName) -> Result<bool, ApiFailure> {
        if *self.policy.borrow() == GuardState::Unknown {
            return Ok(false);
        }
        let allowed =
            self.authorizer.may_get_version(account, version).await.map_err(|error| failure(&error))?;
        let now = Instant::now();
        let until = now + if allowed { ALLOWED } else { REFUSED };
        let mut answers = self.answers();
        if answers.len() >= LIMIT {
            answers.retain(|_, answer| now < answer.until);
        }
        if answers.len() >= LIMIT {
            answers.clear();
        }
        answers.insert((account.clone(), version.clone()), Answer { allowed, until });
        Ok(true)
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<(NamespacedName, NamespacedName), Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(message: String) -> ReferenceAccess {
    ReferenceAccess::Refused(DriftRefusal { rule: VERSION_NAMESPACE.id().to_owned(), message, passes: true })
}

fn unguarded(version: &NamespacedName) -> String {
    format!(
        "OperatorVersion {version} is in another namespace, and such a reference counts only while the policy {} \
         guards it",
        meta::install::VERSIONS_POLICY
    )
}

/// Why a reference is denied, and the remedy.
fn may_not(namespace: &str, account: &NamespacedName, version: &NamespacedName) -> String {
    let (of, name) = (&version.namespace, &version.name);
    format!(
        "service account {account}, as which packages act in namespace {namespace}, may not get OperatorVersion \
         {version}; use one of namespace {namespace}, or grant it: kubectl create role use-{name} -n {of} --verb=get \
         --resource=operatorversions.kudo.dev --resource-name={name} && kubectl create rolebinding \
         use-{name}-{namespace} -n {of} --role=use-{name} --serviceaccount={}:{}",
        account.namespace, account.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(policy: GuardState) -> References {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        References::new(&client, watch::Sender::new(policy).subscribe())
    }

    fn account() -> NamespacedName {
        NamespacedName::new("interlock-system", "interlock-packages")
    }

    fn answered(references: &References, allowed: bool, until: Instant) {
        let version = NamespacedName::new("platform", "kafka");
        references.answers().insert((account(), version), Answer { allowed, until });
    }

    #[track_caller]
    fn refusal(reference: ReferenceAccess) -> String {
        let ReferenceAccess::Refused(refusal) = reference else { panic!("{reference:?}") };
        assert!(refusal.passes && refusal.rule == "version-namespace", "{refusal:?}");
        refusal.message
    }

    #[tokio::test(start_paused = true)]
    async fn a_reference_counts_while_its_policy_is_intact_and_the_account_may_get_it() {
        let version = NamespacedName::new("platform", "kafka");
        let known = |references: &References| references.known("shop", Ok(&account()), &version);
        let broken = references(GuardState::Broken("the binding is not there".to_owned()));
        answered(&broken, true, Instant::now() + ALLOWED);
        assert!(refusal(known(&broken)).ends_with("interlock-versions guards it: the binding is not there"));
        let unknown = references(GuardState::Unknown);
        answered(&unknown, true, Instant::now() + ALLOWED);
        assert_eq!(known(&unknown), ReferenceAccess::Unknown);
        assert!(!unknown.ask(&account(), &version).await.unwrap(), "nobody is asked yet");

        let intact = references(GuardState::Intact);
        assert_eq!(known(&intact), ReferenceAccess::Unknown);
        assert_eq!(intact.known("platform", Ok(&account()), &version), ReferenceAccess::Allowed, "its own");
        answered(&intact, true, Instant::now() + ALLOWED);
        assert_eq!(known(&intact), ReferenceAccess::Allowed);
        let other = NamespacedName::new("shop", "deployer");
        assert_eq!(intact.known("shop", Ok(&other), &version), ReferenceAccess::Unknown, "another account");
        tokio::time::advance(ALLOWED).await;
        assert_eq!(known(&intact), ReferenceAccess::Unknown, "rights are not watched");
        answered(&intact, false, Instant::now() + REFUSED);
        let why = refusal(known(&intact));
        assert!(why.contains("--serviceaccount=interlock-system:interlock-packages"), "{why}");
        assert!(why.contains("create role use-kafka -n platform --verb=get"), "{why}");
        let nobody = "no account".to_owned();
        assert_eq!(refusal(intact.known("shop", Err(&nobody), &version)), "no account");
    }
}
