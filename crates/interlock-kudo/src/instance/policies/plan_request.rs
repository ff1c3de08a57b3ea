//! Plan requests.

use interlock_core::api::meta;
use interlock_core::kinds::descriptor::cel;
use interlock_core::kinds::descriptor::{PolicyOptions, only_where};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};

use super::instance_policy::{guard, policy};
use super::lock_in_cel::LOCKED;
use crate::instance::change::plan_request;
use crate::instance::change::plan_request::PlanVerb;
use crate::instance::rules::ids::{VERB_REQUEST, VERB_RIGHTS};

/// Plan requests, by the API server's own authorizer: only it knows the rights of a user. The policy checks
/// the verb of that name on the Instance, and no user can claim to be another. A request runs only while
/// policy and binding are intact.
pub const VERBS: &str = "interlock-verbs";

/// The annotations of limits that have changed. CREATE has no old object.
fn limits_changed() -> String {
    let keys = [meta::STEP_DEADLINE, meta::CLEANUP_PATIENCE].map(cel::string).join(", ");
    let of = |object: &str| format!("{object}.?metadata.?annotations[?k].orValue('')");
    format!("oldObject == null ? [] : [{keys}].filter(k, {} != {})", of("object"), of("oldObject"))
}

/// Whether the user has a verb, given in CEL, on the Instance.
fn has_verb(verb: &str) -> String {
    format!(
        "authorizer.group({}).resource('instances').namespace(request.namespace).name(request.name)\
         .check({verb}).allowed()",
        cel::string(meta::KUDO_GROUP)
    )
}

/// A limit of a running plan can end it, as an abort does, and takes the same right.
fn limits_kept(options: &PolicyOptions) -> Validation {
    guard(
        options,
        VERB_RIGHTS,
        &format!(
            "variables.limits.size() == 0 || !(variables.locked || variables.deleting) || {}",
            has_verb("'abort'")
        ),
        "to change a limit of a plan that is scheduled or runs, or of a deletion, takes the verb abort on \
         instances.kudo.dev; ask for a role that gives it",
        "annotation ' + variables.limits[0] + ' is a limit of what is under way, and user ' + \
         request.userInfo.username + ' has no verb abort on instances.kudo.dev here; wait until it has ended, or \
         ask for a role that gives the verb, as admin and edit do",
    )
}

/// An annotation of the object or of the old one, in CEL; empty without it.
fn annotation(object: &str, key: &str) -> String {
    format!("{object}.?metadata.?annotations[?{}].orValue('')", cel::string(key))
}

/// The verb that a request takes, in CEL; a text that is no request is refused by its shape.
fn verb() -> String {
    PlanVerb::ALL.into_iter().filter(|verb| verb.right() != "abort").fold(
        "'abort'".to_owned(),
        |other, verb| {
            format!("variables.request.startsWith('{}/') ? '{}' : {other}", verb.word(), verb.right())
        },
    )
}

/// The request, its author and its reason, now and before.
fn asked() -> [(&'static str, String); 11] {
    let now = |key: &str| annotation("object", key);
    let before = |key: &str| format!("oldObject == null ? '' : {}", annotation("oldObject", key));
    [
        ("request", now(meta::REQUEST)),
        ("oldRequest", before(meta::REQUEST)),
        ("reason", now(meta::REASON)),
        ("oldReason", before(meta::REASON)),
        ("by", now(meta::REQUESTED_BY)),
        ("oldBy", before(meta::REQUESTED_BY)),
        ("asks", "variables.request != '' && variables.request != variables.oldRequest".to_owned()),
        ("stays", "variables.request != '' && variables.request == variables.oldRequest".to_owned()),
        ("verb", verb()),
        ("limits", limits_changed()),
        ("deleting", "oldObject != null && has(oldObject.metadata.deletionTimestamp)".to_owned()),
    ]
}

/// Whether a write adds a request or changes a limit; otherwise the policy does not apply.
fn concerned() -> String {
    format!("{} != '' || ({}).size() > 0", annotation("object", meta::REQUEST), limits_changed())
}

pub fn verbs(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let owned = asked();
    let mut variables = LOCKED.to_vec();
    variables.extend(owned.iter().map(|(name, text)| (*name, text.as_str())));
    let words = PlanVerb::ALL.map(PlanVerb::word).join("|");
    let (shortest, longest) = plan_request::NONCE;
    let shape = format!(
        "^({words})/[A-Za-z0-9-]{{1,{}}}/[A-Za-z0-9-]{{{shortest},{longest}}}$",
        plan_request::RUN_LIMIT
    );
    let reason = format!("^[^\\x00-\\x1f\\x7f]{{1,{}}}$", plan_request::REASON_LIMIT);
    let request = meta::REQUEST;
    let reason_key = meta::REASON;
    let ours = "let `interlock plan abort` or another of its verbs write it";
    let unnamed = format!("leave annotation {} out", meta::REQUESTED_BY);
    let says = |text: &str| (text.to_owned(), text.to_owned());
    let (malformed, malformed_text) = says(&format!(
        "annotation {request} is VERB/RUN-UID/NONCE, with {} as VERB and a nonce of {shortest} to \
         {longest} letters, digits or dashes; {ours}",
        PlanVerb::words()
    ));
    let (unreasoned, unreasoned_text) = says(&format!(
        "annotation {reason_key} says why in one line of at most {} characters; {ours}",
        plan_request::REASON_LIMIT
    ));
    let (changed, changed_text) = says(&format!(
        "annotation {reason_key} and who asked stay as they are while the request is there; take the request away first"
    ));
    let (created, created_text) =
        says(&format!("a new Instance has no run yet; leave annotation {request} out"));
    let validations = vec![
        guard(options, VERB_REQUEST, "!variables.asks || oldObject != null", &created, &created_text),
        guard(
            options,
            VERB_REQUEST,
            &format!("!variables.asks || variables.request.matches('{shape}')"),
            &malformed,
            &malformed_text,
        ),
        guard(
            options,
            VERB_REQUEST,
            &format!("!variables.asks || variables.reason.matches('{reason}')"),
            &unreasoned,
            &unreasoned_text,
        ),
        guard(
            options,
            VERB_REQUEST,
            "!variables.asks || variables.by in ['', request.userInfo.username]",
            &format!("who asks is recorded by Interlock, and is nobody else; {unnamed}"),
            &format!(
                "who asks is recorded by Interlock, and is nobody but ' + request.userInfo.username + '; {unnamed}"
            ),
        ),
        guard(
            options,
            VERB_REQUEST,
            "!variables.stays || (variables.reason == variables.oldReason && variables.by == variables.oldBy)",
            &changed,
            &changed_text,
        ),
        guard(
            options,
            VERB_RIGHTS,
            &format!("!variables.asks || oldObject == null || {}", has_verb("variables.verb")),
            "this needs the verb of the request on instances.kudo.dev; ask for a role that gives it",
            "user ' + request.userInfo.username + ' has no verb ' + variables.verb + ' on instances.kudo.dev here; \
             ask for a role that gives it, as admin and edit do",
        ),
        limits_kept(options),
    ];
    let all = policy(VERBS, ("instances", &["CREATE", "UPDATE"]), &variables, validations, options);
    only_where(all, "asks-or-limits", &concerned())
}
