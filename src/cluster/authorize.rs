//! Asks the API server's authorizer: may the holder of a token read a path of ours (TokenReview, then
//! SubjectAccessReview), and may a service account get an OperatorVersion.

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::{Client, Error};

/// Asks the API server.
#[derive(Clone)]
pub struct Authorizer {
    tokens: Api<TokenReview>,
    access: Api<SubjectAccessReview>,
}

impl Authorizer {
    /// Asks as the user of `client`.
    pub fn new(client: &Client) -> Self {
        Self { tokens: Api::all(client.clone()), access: Api::all(client.clone()) }
    }

    /// Whether the holder of `token` may `get` the non-resource path.
    pub async fn may_get(&self, token: &str, path: &str) -> Result<bool, Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review = self.tokens.create(&PostParams::default(), &review).await?;
        let status = review.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(false);
        };
        self.allows(SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some("get".to_owned()),
            }),
            resource_attributes: None,
        })
        .await
    }

    /// Whether a service account may `get` an OperatorVersion.
    pub async fn may_get_version(
        &self,
        account: &NamespacedName,
        version: &NamespacedName,
    ) -> Result<bool, Error> {
        self.allows(of_version(account, version)).await
    }

    async fn allows(&self, spec: SubjectAccessReviewSpec) -> Result<bool, Error> {
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let review = self.access.create(&PostParams::default(), &review).await?;
        Ok(review.status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }
}

/// The review, with the groups that an authenticated service account has.
fn of_version(account: &NamespacedName, version: &NamespacedName) -> SubjectAccessReviewSpec {
    let NamespacedName { namespace, name } = account;
    SubjectAccessReviewSpec {
        user: Some(format!("system:serviceaccount:{namespace}:{name}")),
        groups: Some(vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ]),
        resource_attributes: Some(ResourceAttributes {
            group: Some(meta::KUDO_GROUP.to_owned()),
            resource: Some("operatorversions".to_owned()),
            verb: Some("get".to_owned()),
            namespace: Some(version.namespace.clone()),
            name: Some(version.name.clone()),
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    }
}
