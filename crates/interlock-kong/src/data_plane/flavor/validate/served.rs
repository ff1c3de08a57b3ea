//! RF05, RF09: requirements of the existing routes on a router.

use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::change::Findings;
use crate::data_plane::flavor::change::FlavorChange;
use crate::data_plane::flavor::routes::{Listed, Trait};
use crate::data_plane::flavor::version::KongVersion;
use crate::data_plane::rules::ids::{FLAVOR_REGEX, FLAVOR_ROUTES};

/// The effects of both ends of a change on the routes.
pub(super) fn routes(change: &FlavorChange<'_>, from: Flavor, to: Flavor, findings: &mut Findings) {
    let change_of = format!("router flavor change {from} -> {to}");
    match from {
        Flavor::Traditional => regex_engine(change, &change_of, findings),
        Flavor::TraditionalCompatible => {}
        Flavor::Expressions => leaving_expressions(change, &change_of, findings),
    }
    match to {
        Flavor::Traditional => wildcard_snis(change, &change_of, findings),
        Flavor::TraditionalCompatible => {}
        Flavor::Expressions => entering_expressions(change, &change_of, findings),
    }
    if !change.routes.unlisted().is_empty() {
        findings.warn(
            FLAVOR_ROUTES,
            format!(
                "{change_of}: not judged by what is not seen here: {}",
                change.routes.unlisted().join(", ")
            ),
        );
    }
}

fn list(change: &FlavorChange<'_>, word: &str, which: &Trait) -> Option<Listed> {
    let namespace = &change.subject.name.namespace;
    change.routes.list(namespace, |found| (found == which).then(|| word.to_owned()))
}

fn leaving_expressions(change: &FlavorChange<'_>, change_of: &str, findings: &mut Findings) {
    if let Some(lost) = list(change, "queryParams", &Trait::QueryParameters) {
        let routes = if lost.count == 1 { "route that needs" } else { "routes that need" };
        findings.deny(
            FLAVOR_ROUTES,
            format!("{change_of} would drop {} {routes} expressions: {}", lost.count, lost.text),
        );
    }
}

fn entering_expressions(change: &FlavorChange<'_>, change_of: &str, findings: &mut Findings) {
    let ignored = change.routes.list(&change.subject.name.namespace, |found| match found {
        Trait::Ignored(key) => Some((*key).to_owned()),
        Trait::Pattern(_) | Trait::QueryParameters | Trait::WildcardSni => None,
    });
    if let Some(ignored) = ignored {
        findings.warn(
            FLAVOR_ROUTES,
            format!("{change_of}: annotations that are ignored under expressions: {}", ignored.text),
        );
    }
    if let Some(wildcards) = list(change, "wildcard host", &Trait::WildcardSni) {
        findings.warn(
            FLAVOR_ROUTES,
            format!("{change_of}: Kong may reject (Kong/kong#14252): {}", wildcards.text),
        );
    }
}

/// `traditional` supports none, and the others do from 3.7 on.
fn wildcard_snis(change: &FlavorChange<'_>, change_of: &str, findings: &mut Findings) {
    let wildcards = list(change, "wildcard SNI", &Trait::WildcardSni);
    if let Some(lost) = wildcards.filter(|_| change.version() >= KongVersion::new(3, 7, 0)) {
        let text = format!("{change_of}: traditional does not take wildcard SNIs: {}", lost.text);
        match change.new.staged {
            true => findings.warn(FLAVOR_ROUTES, text),
            false => findings.deny(FLAVOR_ROUTES, text),
        }
    }
}

/// RF09: leaving PCRE.
fn regex_engine(change: &FlavorChange<'_>, change_of: &str, findings: &mut Findings) {
    if rejected_patterns(change, change_of, findings) {
        return;
    }
    let check = match change.new.staged {
        true => "check the preview before promoting",
        false => "check the first new pod",
    };
    findings.warn(
        FLAVOR_REGEX,
        format!(
            "traditional_compatible uses Rust regular expressions: look-around and backreferences are not supported and \
             path_handling v1 is ignored; {check}"
        ),
    );
}

/// RF09: the paths that Rust's engine does not compile. Whether there are any.
pub(super) fn rejected_patterns(change: &FlavorChange<'_>, change_of: &str, findings: &mut Findings) -> bool {
    let (rejected, not_tried) = change.routes.rejected_patterns(&change.subject.name.namespace);
    if let Some(rejected) = &rejected {
        let (these, they) = if rejected.count == 1 { ("path", "does") } else { ("paths", "do") };
        findings.deny(
            FLAVOR_REGEX,
            format!(
                "{change_of}: {} {these} {they} not compile as a Rust regular expression: {}",
                rejected.count, rejected.text
            ),
        );
    }
    if let Some(left_out) = not_tried {
        let these = if left_out.count == 1 { "expression of routes is" } else { "expressions of routes are" };
        findings.warn(
            FLAVOR_REGEX,
            format!(
                "{} regular {these} too large or too many to be compiled here: {}",
                left_out.count, left_out.text
            ),
        );
    }
    rejected.is_some()
}
