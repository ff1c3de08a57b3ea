//! Bytes out: the AdmissionReview that answers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::decode::{Malformed, Version};
use super::door::BadReview;
use super::patch;
use super::review::Review;
use super::verdict::{Outcome, Refusal, Rendered, Verdict};
use crate::api::text::json_string;

#[derive(Serialize)]
struct AuditAnnotations<'a> {
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admitted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    message: &'a str,
    reason: &'static str,
    code: u16,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    name: &'a str,
    group: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "<[Cause]>::is_empty")]
    causes: &'a [Cause],
}

/// A cause of a refusal, as kubectl prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Reason, one of metav1's.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

/// Writes the answer to a review.
///
/// Put together by hand, member by member, as the patch is base64 and needs no second look.
pub fn encode(version: Version, review: &Review<'_>, verdict: &Verdict) -> Result<Vec<u8>, BadReview> {
    let refusal = verdict.refusal().map(Refusal::render);
    let mut out = String::with_capacity(1024);
    out.push_str("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"");
    out.push_str(version.as_str());
    out.push_str("\",\"response\":{\"uid\":");
    json_string(&mut out, &review.uid);
    out.push_str(if refusal.is_none() { ",\"allowed\":true" } else { ",\"allowed\":false" });
    if let Outcome::Allow { patch } = &verdict.outcome
        && !patch.0.is_empty()
    {
        out.push_str(",\"patchType\":\"JSONPatch\",\"patch\":\"");
        STANDARD.encode_string(patch::to_json(patch).map_err(Malformed::Encode)?, &mut out);
        out.push('"');
    }
    if let Some(refusal) = &refusal {
        member(&mut out, "status", &status(review, refusal))?;
    }
    let rules: Vec<&str> = verdict.rules().collect();
    let admitted: Vec<&str> = verdict.admitted.iter().map(|rule| rule.id()).collect();
    let audit = AuditAnnotations {
        verdict: verdict.kind().as_str(),
        admitted: (!admitted.is_empty()).then(|| admitted.join(",")),
        rule: (!rules.is_empty()).then(|| rules.join(",")),
        plan: verdict.plan.as_deref(),
    };
    member(&mut out, "auditAnnotations", &audit)?;
    if !verdict.warnings.is_empty() {
        member(&mut out, "warnings", &verdict.warnings)?;
    }
    out.push_str("}}");
    Ok(out.into_bytes())
}

fn member<T: Serialize>(out: &mut String, name: &str, value: &T) -> Result<(), BadReview> {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    out.push_str(&serde_json::to_string(value).map_err(Malformed::Encode)?);
    Ok(())
}

fn status<'a>(review: &'a Review<'_>, refusal: &'a Rendered) -> Status<'a> {
    let name = review.name.as_deref().or(review.old_object.as_ref().and_then(|o| o.metadata.name.as_deref()));
    Status {
        status: "Failure",
        message: &refusal.message,
        reason: refusal.code.reason(),
        code: refusal.code.number(),
        details: Details {
            name: name.unwrap_or_default(),
            group: &review.kind.group,
            kind: &review.kind.kind,
            causes: &refusal.causes,
        },
    }
}
