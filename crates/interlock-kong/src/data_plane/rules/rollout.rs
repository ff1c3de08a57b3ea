//! The rules about rollouts of DataPlanes: what could never be promoted, what would reach live pods without
//! a promotion, and requests for promotions that do not do what they look like.
//!
//! What stands already is not said again, so that an object stays editable in its other fields.

use std::borrow::Cow;

use interlock_core::admission::review::ReviewObject;
use interlock_core::api::meta;
use serde_json::Value;

use super::last_applied::{Live, Staging, text_of};
use crate::api::condition;
use crate::data_plane::flavor::change::Findings;
use crate::data_plane::flavor::gateway_ref::GatewayRef;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::children::service_selector;
use crate::data_plane::rollout::history;
use crate::data_plane::rollout::promotion;
use crate::data_plane::rollout::promotion::{PromotionRequest, requested};
use crate::data_plane::rollout::sourced_flavor;
use crate::data_plane::rollout::view::parse_grace_period;
use crate::data_plane::rules::ids::{
    DATA_PLANE_HISTORY_LIMIT, DATA_PLANE_PROMOTION, DATA_PLANE_SELECTOR, DATA_PLANE_SERVICE_NAME,
    DATA_PLANE_STAGED,
};
use crate::data_plane::validation::children::SpecChange;

/// Longest part of a value that is repeated to its author.
const REPEATED: usize = 40;
/// How many staged fields a denial names.
const NAMED: usize = 3;

/// A write of a DataPlane.
pub struct RolloutChange<'c, 'a> {
    subject: &'c GatewayRef,
    new: PlaneParts<'a>,
    old: Option<PlaneParts<'a>>,
    /// What is live before the write.
    live: Option<&'c Live<'c>>,
}

/// The parts of an object that these rules read.
struct PlaneParts<'a> {
    spec: Value,
    promote: Option<Cow<'a, str>>,
    selector: Option<Cow<'a, str>>,
    history_limit: Option<Cow<'a, str>>,
    grace_period: Option<Cow<'a, str>>,
    /// Whether its status says that a changed source stages a router flavor.
    stages_flavor: bool,
    /// Whether its status says that another operator carries it out.
    is_of_another: bool,
}

impl<'a> PlaneParts<'a> {
    fn of(object: &ReviewObject<'a>) -> Self {
        let annotations = &object.metadata.annotations;
        let status =
            object.status.map(|status| serde_json::from_str::<Value>(status.get()).unwrap_or_default());
        let status = status.unwrap_or_default();
        Self {
            // Another rule reports a spec that cannot be read.
            spec: serde_json::from_str(text_of(object)).unwrap_or_default(),
            promote: annotations.own_text(meta::PROMOTE_WHEN_READY),
            selector: annotations.own_text(meta::SERVICE_SELECTOR_OVERRIDE),
            history_limit: annotations.own_text(meta::REVISION_HISTORY_LIMIT),
            grace_period: annotations.own_text(meta::PROMOTION_GRACE_PERIOD),
            stages_flavor: sourced_flavor::staged(&status).is_some(),
            is_of_another: is_of_another(&status),
        }
    }

    fn stages(&self) -> bool {
        live_spec::is_staged(&self.spec)
    }
}

impl<'c, 'a> RolloutChange<'c, 'a> {
    /// The write of an object over the stored one.
    pub fn of(
        subject: &'c GatewayRef,
        object: &ReviewObject<'a>,
        old: Option<&ReviewObject<'a>>,
        live: Option<&'c Live<'c>>,
    ) -> Self {
        Self { subject, new: PlaneParts::of(object), old: old.map(PlaneParts::of), live }
    }

    /// What becomes of the spec. `is_on` = Interlock carries DataPlanes out, if they are not another operator's.
    pub fn of_spec(&self, is_on: bool) -> SpecChange<'_> {
        let old = self.old.as_ref();
        let is_ours = is_on && !old.is_some_and(|old| old.is_of_another);
        SpecChange { new: &self.new.spec, old: old.map(|old| &old.spec), is_ours }
    }

    /// The findings about the write.
    pub fn findings(&self) -> Findings {
        let (new, old) = (&self.new, self.old.as_ref());
        let mut findings = Findings::default();
        selector(new, old, &mut findings);
        service_name(new, old, &mut findings);
        automatic(new, old, &mut findings);
        history_limit(new, old, &mut findings);
        grace_period(new, old, &mut findings);
        if let (Some(old), Some(live)) = (old, self.live) {
            staged(new, old, live, &mut findings);
        }
        self.promotion(new, old, &mut findings);
        findings
    }

    fn promotion(&self, new: &PlaneParts<'_>, old: Option<&PlaneParts<'_>>, findings: &mut Findings) {
        let Some(said) = self.promotion_of(new) else {
            return;
        };
        let stands = old.is_some_and(|old| old.promote == new.promote);
        let same = stands && old.and_then(|old| self.promotion_of(old)).as_ref() == Some(&said);
        let edited =
            old.is_some_and(|old| live_spec::after(None, &old.spec) != live_spec::after(None, &new.spec));
        match said {
            PromotionWarning::Any if !(stands && edited) => {}
            said if same && !matches!(said, PromotionWarning::Any) => {}
            said => findings.warn(DATA_PLANE_PROMOTION, said.text(self.subject)),
        }
    }

    /// What is to be said about the annotation of an object.
    fn promotion_of(&self, parts: &PlaneParts<'_>) -> Option<PromotionWarning> {
        let value = parts.promote.as_deref()?;
        let request = requested(value, &parts.spec);
        let nothing = !parts.stages()
            || !parts.stages_flavor
                && self.live.is_none_or(|live| live.staging(&parts.spec) == Staging::Nothing);
        Some(match request {
            PromotionRequest::Nonsense => PromotionWarning::Nonsense,
            _ if nothing => PromotionWarning::NothingStaged,
            PromotionRequest::AnotherSpec => PromotionWarning::AnotherSpec,
            PromotionRequest::True => PromotionWarning::Any,
            PromotionRequest::ThisSpec => return None,
        })
    }
}

/// Whether a status says that another operator carries a DataPlane out: its condition `Managed` is false for another
/// reason than a wrong spec.
fn is_of_another(status: &Value) -> bool {
    condition(status, meta::condition::MANAGED)
        .is_some_and(|managed| managed["status"] == "False" && managed["reason"] != "InvalidSpec")
}

/// What is wrong with a request for a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromotionWarning {
    /// It is neither `true` nor a hash.
    Nonsense,
    NothingStaged,
    /// Its hash is that of another spec.
    AnotherSpec,
    /// It is `true`, and counts for a spec that is changed under it.
    Any,
}

impl PromotionWarning {
    fn text(self, subject: &GatewayRef) -> String {
        let (key, arguments) = (meta::PROMOTE_WHEN_READY, arguments(subject));
        match self {
            Self::Nonsense => {
                format!(
                    "annotation {key} is neither true nor a hash, and promotes nothing; run `interlock rollout promote {arguments}`"
                )
            }
            Self::NothingStaged => {
                format!(
                    "annotation {key}: nothing is staged; remove it, as it may promote the next change without a stop"
                )
            }
            Self::AnotherSpec => format!(
                "annotation {key} is for another spec, and does not promote this one; run `interlock rollout promote {arguments}`"
            ),
            Self::Any => {
                format!(
                    "annotation {key} is true: this change is promoted as soon as it is ready; remove it for a stop"
                )
            }
        }
    }
}

/// An override of the selectors of all Services.
fn selector(new: &PlaneParts<'_>, old: Option<&PlaneParts<'_>>, findings: &mut Findings) {
    let Some(value) = new.selector.as_deref() else { return };
    let key = meta::SERVICE_SELECTOR_OVERRIDE;
    let stands = old.is_some_and(|old| old.selector == new.selector);
    if !stands && service_selector::parse(value).is_none() {
        let shown: String = value.chars().take(REPEATED).collect();
        findings.deny(
            DATA_PLANE_SELECTOR,
            format!("annotation {key} is \"{shown}\", and takes labels as k=v,k2=v2"),
        );
    }
    let stood = old.is_some_and(|old| old.selector.is_some() && old.stages());
    if !stood && new.stages() {
        findings.deny(
            DATA_PLANE_SELECTOR,
            format!(
                "annotation {key} gives live and preview Services one selector, so that no promotion could end beside \
                 spec.deployment.rollout.strategy.blueGreen"
            ),
        );
    }
}

/// A promotion without a request, which Kong's operator carries out and Kong's definition does not admit.
fn automatic(new: &PlaneParts<'_>, old: Option<&PlaneParts<'_>>, findings: &mut Findings) {
    let asked = |parts: &PlaneParts<'_>| promotion::is_automatic(&parts.spec);
    if asked(new) && !old.is_some_and(asked) {
        findings.warn(
            DATA_PLANE_PROMOTION,
            "spec.deployment.rollout.strategy.blueGreen.promotion.strategy is AutomaticPromotion: each change is \
             promoted as soon as its pods are ready; Kong's own definition of DataPlanes refuses this value"
                .to_owned(),
        );
    }
}

/// A fixed name of the ingress Service.
fn service_name(new: &PlaneParts<'_>, old: Option<&PlaneParts<'_>>, findings: &mut Findings) {
    let name = |parts: &PlaneParts<'_>| {
        let found = parts.spec.pointer("/network/services/ingress/name").and_then(Value::as_str);
        found.filter(|name| !name.is_empty() && parts.stages()).map(str::to_owned)
    };
    let found = name(new);
    if found.is_some() && found != old.and_then(name) {
        findings.warn(
            DATA_PLANE_SERVICE_NAME,
            "spec.network.services.ingress.name beside blueGreen: Kong's operator gives the preview's Service the same \
             name, and its rollouts fail; leave the name out",
        );
    }
}

/// The number of revisions that the history keeps.
fn history_limit(new: &PlaneParts<'_>, old: Option<&PlaneParts<'_>>, findings: &mut Findings) {
    let Some(value) = new.history_limit.as_deref() else { return };
    let stands = old.is_some_and(|old| old.history_limit == new.history_limit);
    if stands || history::parse_limit(value).is_some() {
        return;
    }
    let shown: String = value.chars().take(REPEATED).collect();
    let (key, most, default) = (meta::REVISION_HISTORY_LIMIT, history::MOST_KEPT, history::DEFAULT_LIMIT);
    findings.warn(
        DATA_PLANE_HISTORY_LIMIT,
        format!("annotation {key} is \"{shown}\": write a number from 0 to {most}; {default} revisions are kept until then"),
    );
}

/// How long the former side is kept after a promotion.
fn grace_period(new: &PlaneParts<'_>, old: Option<&PlaneParts<'_>>, findings: &mut Findings) {
    let Some(value) = new.grace_period.as_deref() else { return };
    let stands = old.is_some_and(|old| old.grace_period == new.grace_period);
    if stands || parse_grace_period(value).is_some() {
        return;
    }
    let shown: String = value.chars().take(REPEATED).collect();
    let key = meta::PROMOTION_GRACE_PERIOD;
    findings.warn(
        DATA_PLANE_PROMOTION,
        format!("annotation {key} is \"{shown}\": write a time such as 10m; the former side is kept for 30 s until then"),
    );
}

/// The end of staging while something is staged.
fn staged(new: &PlaneParts<'_>, old: &PlaneParts<'_>, live: &Live<'_>, findings: &mut Findings) {
    if !old.stages() || new.stages() {
        return;
    }
    let (before, after) = (live.staging(&old.spec), live.staging(&new.spec));
    let what = "removing spec.deployment.rollout.strategy.blueGreen now";
    match (before, after) {
        (Staging::Nothing, _) | (_, Staging::Nothing) => {}
        (Staging::Something, Staging::Something) => findings.deny(
            DATA_PLANE_STAGED,
            format!("{what} would apply what is staged to the live pods at once"),
        ),
        (Staging::Unknown, _) | (_, Staging::Unknown) => findings.warn(
            DATA_PLANE_STAGED,
            format!("{what} applies the spec to the live pods at once; whether that changes them is not known here, as the live \
                 spec is kept in a ControllerRevision"),
        ),
    }
}

/// The first fields that are staged in a stored object.
pub fn staged_fields(live: &Live<'_>, old: &ReviewObject<'_>) -> Option<String> {
    let fields = live.staged_fields(&PlaneParts::of(old).spec)?;
    Some(fields.paths(NAMED))
}

/// `NAME -n NAMESPACE`, as commands name a DataPlane.
pub fn arguments(subject: &GatewayRef) -> String {
    format!("{} -n {}", subject.name.name, subject.name.namespace)
}

/// How to end what is staged.
pub fn settle(subject: &GatewayRef) -> String {
    let (key, arguments) = (meta::PROMOTE_WHEN_READY, arguments(subject));
    format!(
        "promote it (`kubectl annotate dataplane {arguments} --overwrite {key}=true` or `interlock rollout promote \
         {arguments}`), or take it back (`interlock rollout abort {arguments}`); then send the change again"
    )
}

/// How to remove the override of selectors.
pub fn without_override(subject: &GatewayRef) -> String {
    let key = meta::SERVICE_SELECTOR_OVERRIDE;
    format!(
        "leave the annotation out (`kubectl annotate dataplane {} {key}-`), or write it as k=v,k2=v2 without blueGreen",
        arguments(subject)
    )
}
