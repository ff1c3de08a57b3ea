//! Whether the holder of a token may read a path of ours: TokenReview, then SubjectAccessReview.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
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

    /// Whether whoever holds `token` may `get` the non-resource path.
    pub async fn may_get(&self, token: &str, path: &str) -> Result<bool, Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review = self.tokens.create(&PostParams::default(), &review).await?;
        let status = review.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(false);
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let review = self.access.create(&PostParams::default(), &review).await?;
        Ok(review.status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }
}
