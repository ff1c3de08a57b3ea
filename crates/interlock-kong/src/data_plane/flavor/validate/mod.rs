//! The rules RF01 to RF21 about one change: reasons to deny it, and warnings.
//!
//! The rules compare a change with the flavor of the live pods, not with the stored spec, which may be
//! staged. They do not repeat existing problems, so an object stays editable in its other fields; going
//! back to the live flavor is always allowed.

use interlock_core::api::meta;
use interlock_core::api::rule::Rule;

use super::change::{Finding, Findings, FlavorChange};
use super::compatibility::{InPlace, Loads, MatrixRow, Staged};
use super::environment::Unknown;
use super::gateway_ref::GatewayKind;
use super::reading::{Effective, FILE_VARIABLE, FlavorReading, VARIABLE};
use super::sources::SourceKind;
use super::{Flavor, compatibility};
use crate::data_plane::rules::ids::{
    FLAVOR_ALLOWED, FLAVOR_DEPRECATED, FLAVOR_DIALECTS, FLAVOR_EXCLUSIVE, FLAVOR_IN_PLACE, FLAVOR_INVALID,
    FLAVOR_NO_EFFECT, FLAVOR_PREVIEW, FLAVOR_PRODUCER, FLAVOR_SKIP, FLAVOR_STAGED, FLAVOR_TWICE,
    FLAVOR_UNKNOWN, FLAVOR_UNSTAGED,
};

mod served;
mod versions;

/// Validates a change by all rules.
pub fn judge(change: &FlavorChange<'_>) -> Findings {
    let mut findings = Findings::default();
    slips(change, &mut findings);
    match &change.new.reading.effective {
        Effective::Invalid(_) | Effective::Exclusive => broken(change, &mut findings),
        Effective::Unknown(_) => unknown_flavor(change, &mut findings),
        Effective::Known(to) => known(change, *to, &mut findings),
        // The router before 3.0 behaves like `traditional`.
        Effective::Legacy => {
            versions::ignored(change, &mut findings);
            known(change, Flavor::Traditional, &mut findings);
        }
    }
    findings
}

fn stored<'a>(change: &FlavorChange<'a>) -> Option<&'a FlavorReading> {
    change.stored.map(|spec| &spec.reading)
}

/// RF14, RF16: settings without an effect, or with a misleading one.
fn slips(change: &FlavorChange<'_>, findings: &mut Findings) {
    let new = &change.new.reading;
    for container in &new.elsewhere {
        if !stored(change).is_some_and(|stored| stored.elsewhere.contains(container)) {
            findings.warn(FLAVOR_NO_EFFECT, format!("{VARIABLE} on container \"{container}\" has no effect"));
        }
    }
    if new.duplicated && !stored(change).is_some_and(|stored| stored.duplicated) {
        findings.warn(
            FLAVOR_TWICE,
            format!("{VARIABLE} is set more than once, to different values; the last entry counts"),
        );
    }
}

/// RF01, RF15: Kong would not start.
fn broken(change: &FlavorChange<'_>, findings: &mut Findings) {
    let new = &change.new.reading.effective;
    if stored(change).is_some_and(|stored| stored.effective == *new) {
        return;
    }
    match new {
        Effective::Invalid(value) => {
            let names = Flavor::ALL.map(Flavor::as_str).join(", ");
            findings.deny(
                FLAVOR_INVALID,
                format!(
                    "{}: container \"{}\": {VARIABLE}={value} is not a Kong router flavor ({names}); Kong \
                     would not start",
                    change.subject.kind.template(),
                    change.new.reading.container
                ),
            );
        }
        Effective::Exclusive | Effective::Known(_) | Effective::Legacy | Effective::Unknown(_) => findings
            .deny(
                FLAVOR_EXCLUSIVE,
                format!("{VARIABLE} and {FILE_VARIABLE} are exclusive; the Kong image exits"),
            ),
    }
}

/// RF10: the flavor is unknown.
fn unknown_flavor(change: &FlavorChange<'_>, findings: &mut Findings) {
    let Effective::Unknown(why) = &change.new.reading.effective else { return };
    let before = stored(change).map(|stored| &stored.effective);
    if before == Some(&change.new.reading.effective) {
        return;
    }
    let text = format!("cannot determine {VARIABLE}: {why}");
    let was_known = change.live.is_some_and(|live| live.effective.known().is_some());
    if why.blocks_pod_start() {
        match was_known {
            true => findings.deny(FLAVOR_UNKNOWN, text),
            false => findings.warn(FLAVOR_UNKNOWN, format!("{text}; the pods wait for it")),
        }
        return;
    }
    let verify = match change.new.staged {
        true => "verify it on the preview pods before promotion",
        false => "verify it on the first new pod (`GET /` of its Admin API)",
    };
    // Interlock does not watch ConfigMaps without the label.
    let known = match why {
        Unknown::Unseen(key) if key.source.kind == SourceKind::ConfigMap => {
            format!("label it {} first, or ", meta::FLAVOR_SOURCE)
        }
        _ => String::new(),
    };
    findings.warn(FLAVOR_UNKNOWN, format!("{text}; {known}{verify}"));
}

fn known(change: &FlavorChange<'_>, to: Flavor, findings: &mut Findings) {
    versions::crossings(change, to, findings);
    let Some(from) = change.live.and_then(runs_with) else {
        return first(change, to, findings);
    };
    if from == to {
        return;
    }
    let mut found = Findings::default();
    if !upgraded_from_legacy(change) {
        between(change, from, to, &mut found);
    } else if stored(change).and_then(runs_with) != Some(to) {
        served::rejected_patterns(change, "moving to Kong 3.x", &mut found);
    }
    let_through(change, from, to, &mut found);
    findings.denied.append(&mut found.denied);
    findings.warned.append(&mut found.warned);
}

/// A change from one flavor to another.
fn between(change: &FlavorChange<'_>, from: Flavor, to: Flavor, findings: &mut Findings) {
    let before = stored(change).and_then(runs_with);
    let was_staged = change.stored.is_some_and(|stored| stored.staged);
    if before == Some(to) {
        if was_staged && !change.new.staged {
            findings.deny(
                FLAVOR_UNSTAGED,
                format!(
                    "removing spec.deployment.rollout now would apply the staged router flavor ({to}) directly to \
                     live pods running {from}; promote or revert first"
                ),
            );
        }
        return;
    }
    if let Some(staged) = before.filter(|before| *before != from && was_staged) {
        findings.deny(
            FLAVOR_STAGED,
            format!(
                "a router flavor change {from} -> {staged} is staged and not promoted yet; promote it or restore \
                 the live spec before changing the flavor again"
            ),
        );
        return;
    }
    step(change, from, to, findings);
}

/// The router of the pods, in terms of flavors.
fn runs_with(reading: &FlavorReading) -> Option<Flavor> {
    match &reading.effective {
        Effective::Known(flavor) => Some(*flavor),
        Effective::Legacy => Some(Flavor::Traditional),
        Effective::Invalid(_) | Effective::Exclusive | Effective::Unknown(_) => None,
    }
}

/// Neither the spec before Kong 3.0 nor the new one sets a flavor: RF12 and the routes suffice.
fn upgraded_from_legacy(change: &FlavorChange<'_>) -> bool {
    !change.new.reading.said && change.live.is_some_and(|live| live.effective == Effective::Legacy)
}

/// A first flavor, or one after an unknown one: denies only what never works.
fn first(change: &FlavorChange<'_>, to: Flavor, findings: &mut Findings) {
    if stored(change).and_then(runs_with) == Some(to) {
        return;
    }
    versions::too_low(change, to, findings);
    deprecated(change, to, findings);
    mixed(change, to, findings);
}

fn step(change: &FlavorChange<'_>, from: Flavor, to: Flavor, findings: &mut Findings) {
    deprecated(change, to, findings);
    let skips = from != Flavor::TraditionalCompatible && to != Flavor::TraditionalCompatible;
    if skips {
        let roll_out = if change.new.staged { "promote it" } else { "roll it out" };
        findings.deny(
            FLAVOR_SKIP,
            format!(
                "router flavor change {from} -> {to} skips a step; change to traditional_compatible first, {roll_out}, \
                 then change to {to} (this isolates regex-engine failures from route-format failures)"
            ),
        );
    }
    versions::too_low(change, to, findings);
    if !skips && let Some(row) = compatibility::find(from, to, change.version(), change.configuration) {
        by_the_table(change, row, findings);
    }
    served::routes(change, from, to, findings);
    mixed(change, to, findings);
}

/// RF13.
fn deprecated(change: &FlavorChange<'_>, to: Flavor, findings: &mut Findings) {
    if to == Flavor::Traditional && change.new.reading.effective != Effective::Legacy {
        findings.warn(
            FLAVOR_DEPRECATED,
            "router flavor traditional is deprecated and will be removed in the next major release of Kong",
        );
    }
}

fn by_the_table(change: &FlavorChange<'_>, row: &MatrixRow, findings: &mut Findings) {
    let (from, to) = (row.from, row.to);
    // RF04 and RF03 report it if staging does not help either.
    if !change.new.staged && row.in_place == InPlace::Deny {
        findings.deny(
            FLAVOR_IN_PLACE,
            format!(
                "router flavor change {from} -> {to} cannot be applied in place on {}: {}; {}",
                change.kong(),
                deadlock(row.loads),
                instead(change, row)
            ),
        );
    } else if change.new.staged && row.staged == Staged::Producer {
        findings.warn(
            FLAVOR_PREVIEW,
            format!(
                "staged: promote to {to} only when every preview pod reports router_flavor={to} and has received a \
                 configuration; run a separate ingress controller against the preview's admin Service"
            ),
        );
    } else if to == Flavor::Expressions && row.loads == Loads::Yes {
        findings.warn(
            FLAVOR_PRODUCER,
            "after all pods run expressions, restart the ingress controller so that it starts producing \
             expression routes",
        );
    }
}

fn deadlock(loads: Loads) -> &'static str {
    match loads {
        Loads::NoFields => {
            "new pods reject the routes that running pods use (\"paths: unknown field\") and the rollout deadlocks"
        }
        Loads::NoExpressions => {
            "new pods reject the routes that running pods use (\"expression: unknown field\") and the rollout \
             deadlocks"
        }
        Loads::BreaksRouter => {
            "one regular expression that Rust does not know breaks the whole router of a new pod"
        }
        Loads::Yes | Loads::DropsRoutes | Loads::AllOrNothing | Loads::UnlessWildcardSni => {
            "new pods may not route as running pods do"
        }
    }
}

fn instead(change: &FlavorChange<'_>, row: &MatrixRow) -> String {
    let stage = match change.subject.kind {
        GatewayKind::DataPlane => {
            "set spec.deployment.rollout.strategy.blueGreen and follow the flavor change plan"
        }
        GatewayKind::Deployment => "stop its pods for the change",
    };
    match (row.from, row.to) {
        (Flavor::TraditionalCompatible, Flavor::Expressions) => {
            format!("{stage}, or upgrade to Kong >= 3.7 first")
        }
        (Flavor::Traditional, Flavor::TraditionalCompatible) => {
            format!("{stage}, or upgrade to Kong >= 3.2 first")
        }
        _ => stage.to_owned(),
    }
}

/// RF21.
fn mixed(change: &FlavorChange<'_>, to: Flavor, findings: &mut Findings) {
    let Some(group) = change.group else { return };
    let already = change.live.and_then(runs_with).is_some_and(|live| live.dialect() == to.dialect());
    if already {
        return;
    }
    if let Some(namespace) = &group.unconfirmed_in {
        findings.warn(
            FLAVOR_DIALECTS,
            format!(
                "{} names {} as its configuration producer, which does not name it: the gateways in {namespace} do \
                 not wait for it",
                change.subject, group.producer
            ),
        );
    }
    let Some((other, flavor)) = group.conflicting(to) else { return };
    let text = format!(
        "{} with {to} would share the configuration producer {} with {other}, which runs {flavor}; one producer \
         speaks one dialect",
        change.subject, group.producer
    );
    if change.new.staged {
        findings.warn(FLAVOR_DIALECTS, format!("{text}: promote all of its gateways together"));
    } else {
        findings.deny(
            FLAVOR_DIALECTS,
            format!(
                "{text}: stage the change in all of its gateways, or give this one a producer of its own"
            ),
        );
    }
}

/// RF19: an override permits it, or no pod runs.
fn let_through(change: &FlavorChange<'_>, from: Flavor, to: Flavor, findings: &mut Findings) {
    if change.stopped {
        without_pods(from, to, findings);
    }
    if findings.denied.is_empty() {
        return;
    }
    match change.allowance.map(|allowance| allowance.permits(from, to)) {
        None => {}
        Some(Err(why)) => findings.warn(FLAVOR_ALLOWED, why),
        Some(Ok(())) => {
            let rules = ids(&findings.denied);
            findings.warned.append(&mut findings.denied);
            findings.warn(
                FLAVOR_ALLOWED,
                format!(
                    "{from} -> {to} ({rules}) is allowed by annotation {}; expect downtime",
                    meta::ALLOW_FLAVOR
                ),
            );
        }
    }
}

fn ids(findings: &[Finding]) -> String {
    let ids: Vec<&str> = findings.iter().map(|finding| finding.rule.id()).collect();
    ids.join(", ")
}

/// Without pods there is no deadlock; lost routes are lost all the same.
fn without_pods(from: Flavor, to: Flavor, findings: &mut Findings) {
    let of_pods = |rule: Rule| matches!(rule, FLAVOR_IN_PLACE | FLAVOR_SKIP);
    let (passed, kept): (Vec<_>, Vec<_>) =
        findings.denied.drain(..).partition(|finding| of_pods(finding.rule));
    findings.denied = kept;
    if !passed.is_empty() {
        findings.warn(
            FLAVOR_ALLOWED,
            format!(
                "{from} -> {to} ({}) is allowed as no pod runs; start the configuration producer again only when \
                 all pods run {to}",
                ids(&passed)
            ),
        );
    }
}
