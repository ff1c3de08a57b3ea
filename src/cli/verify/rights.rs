//! Whether the service accounts of the process have the rights that they need: a SubjectAccessReview for
//! each.

use futures::StreamExt as _;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, PostParams};

use super::report::CheckResult;
use crate::cli::common::installation::Installation;
use crate::cli::common::reader::api_message;
use crate::install::account_rights::{NeededRight, needed};

const CHECK: &str = "rights";
/// Reviews at a time.
const CONCURRENT: usize = 8;
/// Missing rights that are named; the rest is counted.
const NAMED: usize = 5;

pub(super) async fn check(installation: &Installation) -> CheckResult {
    let needed = match needed(&installation.options) {
        Ok(needed) => needed,
        Err(error) => return CheckResult::failed(CHECK, error.to_string(), "report it"),
    };
    let reviews: Api<SubjectAccessReview> = Api::all(installation.client.clone());
    let answers = futures::stream::iter(&needed)
        .map(|right| {
            let reviews = &reviews;
            async move { (right, allows(reviews, right).await) }
        })
        .buffered(CONCURRENT)
        .collect::<Vec<_>>()
        .await;
    let mut missing = Vec::new();
    for (right, answer) in answers {
        match answer {
            Ok(true) => {}
            Ok(false) => missing.push(format!("{} may not {right}", right.user)),
            Err(error) => {
                let next = "run this as a user who may create subjectaccessreviews.authorization.k8s.io";
                return CheckResult::failed(CHECK, api_message(&error), next);
            }
        }
    }
    if missing.is_empty() {
        return CheckResult::ok(CHECK, format!("the process has the {} that it needs", needed.len()));
    }
    CheckResult::failed(
        CHECK,
        shortened(&missing),
        "apply the roles and bindings: `interlock render rbac | kubectl apply --server-side -f -` with the flags \
         of the installation",
    )
}

fn shortened(missing: &[String]) -> String {
    let named = missing.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    match missing.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

async fn allows(reviews: &Api<SubjectAccessReview>, right: &NeededRight) -> Result<bool, kube::Error> {
    let review = SubjectAccessReview { spec: asked(right), ..SubjectAccessReview::default() };
    let review = reviews.create(&PostParams::default(), &review).await?;
    Ok(review.status.is_some_and(|status| status.allowed && status.denied != Some(true)))
}

/// The review, with the groups that an authenticated user has.
fn asked(right: &NeededRight) -> SubjectAccessReviewSpec {
    let mut groups = vec!["system:authenticated".to_owned()];
    if let Some(account) = right.user.strip_prefix("system:serviceaccount:") {
        let namespace = account.split(':').next().unwrap_or_default();
        groups.extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
    }
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    SubjectAccessReviewSpec {
        user: Some(right.user.clone()),
        groups: Some(groups),
        resource_attributes: Some(ResourceAttributes {
            group: given(&right.group),
            resource: given(&right.resource),
            subresource: given(&right.subresource),
            verb: given(&right.verb),
            namespace: given(&right.namespace),
            name: given(&right.name),
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    }
}
