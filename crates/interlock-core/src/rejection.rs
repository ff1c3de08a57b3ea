//! What a failed request means, for every kind of object: by the text of the answer first, as admission denies with any
//! code, then by its code. Pure.

use crate::api::display::display;
use crate::api::meta::condition as types;
use crate::effect::ApiFailure;

/// Longest message of a [`Rejection`], in bytes.
pub const MAX_MESSAGE: usize = 512;

/// Longest name in [`Rejection::by`], in characters: that of a Kubernetes object.
const MAX_NAME: usize = 253;

/// Why the API server rejected a request, or did not answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The kind of the rejection.
    pub kind: RejectionKind,
    /// Name of the quota, policy or webhook that denied the request, or the name of the admission plugin.
    pub by: Option<String>,
    /// The text of the API server in one line, at most [`MAX_MESSAGE`] bytes.
    pub message: String,
}

/// The kind of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectionKind {
    /// A ResourceQuota denies it.
    QuotaExceeded,
    /// A policy, a webhook, a LimitRange or the Pod Security Standards deny it.
    DeniedByAdmission,
    /// A webhook that has to be called does not answer.
    WebhookUnavailable,
    /// The user of the request lacks a right.
    MissingRight,
    /// The namespace is being terminated.
    NamespaceTerminating,
    /// The object is invalid (422).
    InvalidSpec,
    /// The object does not match the schema of the version that the API server has of its kind.
    NotInSchema,
    /// The method or the content type is not supported (405, 415).
    Unsupported,
    /// An object of that name exists.
    NameTaken,
    /// A port or address that the object names belongs to another one.
    AlreadyAllocated,
    /// The object is too large.
    TooLarge,
    /// The object was changed meanwhile, or others own a field of it.
    Conflict,
    /// The API server limits the rate of requests.
    TooManyRequests,
    /// The API server does not answer, or answers an error of its own.
    Unavailable,
    /// The kind, the namespace or the object does not exist.
    NotFound,
    /// Any other refusal.
    Forbidden,
}

impl RejectionKind {
    /// The reason of a condition that reports it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::QuotaExceeded => types::QUOTA_EXCEEDED,
            Self::DeniedByAdmission => types::DENIED_BY_ADMISSION,
            Self::WebhookUnavailable => types::WEBHOOK_UNAVAILABLE,
            Self::MissingRight => types::MISSING_RIGHT,
            Self::NamespaceTerminating => types::NAMESPACE_TERMINATING,
            Self::InvalidSpec | Self::NotInSchema => types::INVALID_SPEC,
            Self::Unsupported | Self::Forbidden => types::REQUEST_REFUSED,
            Self::NameTaken => types::NAME_TAKEN,
            Self::AlreadyAllocated => types::ALREADY_ALLOCATED,
            Self::TooLarge => types::OBJECT_TOO_LARGE,
            Self::Conflict => types::CONFLICT,
            Self::TooManyRequests => types::TOO_MANY_REQUESTS,
            Self::Unavailable => types::API_SERVER_UNAVAILABLE,
            Self::NotFound => types::MISSING_DEPENDENCY,
        }
    }

    /// Whether the request can never succeed, whatever others change.
    pub const fn is_permanent(self) -> bool {
        matches!(self, Self::NamespaceTerminating | Self::InvalidSpec | Self::Unsupported | Self::TooLarge)
    }

    /// Whether only a person can help, so that the object is `Stalled` at once; else the request may succeed when it
    /// is retried, and the object is `Stalled` after two minutes of retries.
    pub const fn needs_person(self) -> bool {
        !matches!(
            self,
            Self::WebhookUnavailable
                | Self::Conflict
                | Self::TooManyRequests
                | Self::Unavailable
                | Self::NotFound
        )
    }
}

impl Rejection {
    /// The meaning of a failed request.
    pub fn of(failure: &ApiFailure) -> Self {
        let (kind, by) = by_text(failure).unwrap_or_else(|| (by_code(failure), None));
        let text = match failure.message.as_str() {
            "" => format!("the API server answered {}", failure.status()),
            message => display(&without_own_ports(message), MAX_MESSAGE),
        };
        Self { kind, by: by.map(|name| display(name, MAX_NAME)), message: bounded(text) }
    }
}

impl Rejection {
    /// The meaning of the text in which a controller reports that the API server rejected a request of its own: in the
    /// condition `ReplicaFailure`, or in an Event, after words of the controller. Its code is not known.
    pub fn of_report(text: &str) -> Self {
        let markers = ["Error creating: ", " failed error: "];
        let answer = markers.iter().find_map(|marker| Some(text.split_once(marker)?.1)).unwrap_or(text);
        let code = match () {
            () if answer.contains(" is forbidden: ") => 403,
            () if answer.contains(" is invalid: ") => 422,
            () if answer.starts_with("Operation cannot be fulfilled ") => 409,
            () => 0,
        };
        Self::of(&ApiFailure { code, message: answer.to_owned(), ..ApiFailure::default() })
    }
}

/// A text without the API server's own port in `10.0.0.1:51234->10.0.0.2:443`: that is another one at each try, and the
/// text is that of the same failure.
fn without_own_ports(text: &str) -> String {
    let cut = |part: &str| match part.rsplit_once(':') {
        Some((address, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            address.to_owned()
        }
        _ => part.to_owned(),
    };
    let (own, peer) = match text.rsplit_once("->") {
        Some((own, peer)) => (own, peer),
        None => return text.to_owned(),
    };
    let own: Vec<String> = own.split("->").map(cut).collect();
    format!("{}->{peer}", own.join("->"))
}

/// At most [`MAX_MESSAGE`] bytes of a text.
fn bounded(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > MAX_MESSAGE {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE - MARK.len()));
        text.push_str(MARK);
    }
    text
}

type Known<'a> = Option<(RejectionKind, Option<&'a str>)>;

/// The texts of kube-apiserver 1.36. A webhook chooses the rest of its text and its code, so the webhook comes first.
fn by_text(failure: &ApiFailure) -> Known<'_> {
    let text = failure.message.as_str();
    if let Some(rest) = text.strip_prefix("admission webhook \"") {
        return Some((RejectionKind::DeniedByAdmission, until(rest, '"')));
    }
    if failure.namespace_terminating {
        return Some((RejectionKind::NamespaceTerminating, None));
    }
    if let Some(name) = between(text, "failed calling webhook \"", '"') {
        return Some((RejectionKind::WebhookUnavailable, Some(name)));
    }
    if text.starts_with("conversion webhook for ") {
        return Some((RejectionKind::WebhookUnavailable, None));
    }
    // An admission plugin and the authorizer answer `RESOURCE "NAME" is forbidden: CAUSE`.
    let cause = text.split_once(" is forbidden: ").map_or(text, |(_, cause)| cause);
    let schema =
        ["failed to create typed patch object", "field not declared in schema", "strict decoding error"];
    let large =
        ["request is too large", "Request entity too large", "trying to send message larger than max"];
    let taken = ["provided port is already allocated", "provided IP is already allocated"];
    let has = |texts: &[&str]| texts.iter().any(|known| text.contains(known));
    policy(cause).or_else(|| quota(cause)).or_else(|| right(cause)).or_else(|| plugin(cause)).or_else(|| {
        let kind = match () {
            () if has(&taken) => RejectionKind::AlreadyAllocated,
            () if has(&large) => RejectionKind::TooLarge,
            () if failure.code != 422 && has(&schema) => RejectionKind::NotInSchema,
            () => return None,
        };
        Some((kind, None))
    })
}

/// A ValidatingAdmissionPolicy, or a MutatingAdmissionPolicy, which the API server calls `policy`.
fn policy(cause: &str) -> Known<'_> {
    let policies = [("ValidatingAdmissionPolicy '", '\''), ("policy '", '\''), ("policy \"", '"')];
    let name = policies.iter().find_map(|(start, end)| until(cause.strip_prefix(start)?, *end))?;
    cause.contains(" denied request: ").then_some((RejectionKind::DeniedByAdmission, Some(name)))
}

fn quota(cause: &str) -> Known<'_> {
    let named = |start: &str, end| until(cause.strip_prefix(start)?, end);
    if let Some(name) = named("exceeded quota: ", ',').or_else(|| named("failed quota: ", ':')) {
        return Some((RejectionKind::QuotaExceeded, Some(name)));
    }
    if cause.starts_with("insufficient quota to ") {
        return Some((RejectionKind::QuotaExceeded, None));
    }
    // The quota is new, and its controller has not counted yet.
    named("status unknown for quota: ", ',').map(|name| (RejectionKind::Unavailable, Some(name)))
}

fn right(cause: &str) -> Known<'_> {
    let denied = cause.starts_with("User \"") && cause.contains(" cannot ")
        || cause.contains(" is attempting to grant RBAC permissions not currently held")
        || cause.starts_with("cannot set blockOwnerDeletion ");
    denied.then_some((RejectionKind::MissingRight, None))
}

fn plugin(cause: &str) -> Known<'_> {
    // Several limits that are exceeded stand in brackets.
    let limit = cause.strip_prefix('[').unwrap_or(cause);
    let bound = limit.starts_with("minimum ") || limit.starts_with("maximum ");
    let limited =
        bound && limit.contains(" usage per ") || limit.contains(" max limit to request ratio per ");
    let name = match () {
        () if cause.starts_with("violates PodSecurity ") => "PodSecurity",
        () if limited => "LimitRange",
        () => return None,
    };
    Some((RejectionKind::DeniedByAdmission, Some(name)))
}

fn by_code(failure: &ApiFailure) -> RejectionKind {
    match failure.code {
        0 | 408 | 410 | 500.. => RejectionKind::Unavailable,
        400 => RejectionKind::NotInSchema,
        404 => RejectionKind::NotFound,
        405 | 406 | 415 => RejectionKind::Unsupported,
        409 if failure.reason == "AlreadyExists" => RejectionKind::NameTaken,
        409 => RejectionKind::Conflict,
        413 => RejectionKind::TooLarge,
        422 => RejectionKind::InvalidSpec,
        429 => RejectionKind::TooManyRequests,
        _ => RejectionKind::Forbidden,
    }
}

fn between<'a>(text: &'a str, start: &str, end: char) -> Option<&'a str> {
    until(text.split_once(start)?.1, end)
}

fn until(text: &str, end: char) -> Option<&str> {
    text.split_once(end).map(|(before, _)| before).filter(|before| !before.is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::RejectionKind::*;
    use super::*;

    fn failure(code: u16, message: &str) -> ApiFailure {
        ApiFailure { code, message: message.to_owned(), ..ApiFailure::default() }
    }

    /// The texts are those that kube-apiserver 1.36 answers.
    #[rstest]
    #[case::quota(403, r#"deployments.apps "x" is forbidden: exceeded quota: compute, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0"#, QuotaExceeded, Some("compute"))]
    #[case::quota_needs_requests(
        403,
        r#"pods "x" is forbidden: failed quota: compute: must specify cpu for: c; memory for: c"#,
        QuotaExceeded,
        Some("compute")
    )]
    #[case::quota_of_priorities(
        500,
        "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]",
        QuotaExceeded,
        None
    )]
    #[case::quota_is_new(
        403,
        r#"pods "x" is forbidden: status unknown for quota: compute, resources: pods"#,
        Unavailable,
        Some("compute")
    )]
    #[case::quota_is_changed(409, r#"Operation cannot be fulfilled on resourcequotas "compute": the object has been modified; please apply your changes to the latest version and try again"#, Conflict, None)]
    #[case::validating_policy(422, r#"deployments.apps "x" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'all' denied request: no images named latest"#, DeniedByAdmission, Some("no-latest"))]
    #[case::validating_policy_forbids(403, r#"deployments.apps "x" is forbidden: ValidatingAdmissionPolicy 'no-latest' denied request: exceeded quota: x,"#, DeniedByAdmission, Some("no-latest"))]
    #[case::mutating_policy(
        422,
        r#"configmaps "x" is forbidden: policy 'adds' with binding 'b' denied request: bad patch"#,
        DeniedByAdmission,
        Some("adds")
    )]
    #[case::mutating_policy_unbound(
        500,
        r#"policy "adds" denied request: no parameters"#,
        DeniedByAdmission,
        Some("adds")
    )]
    #[case::webhook(
        400,
        r#"admission webhook "policy.acme.com" denied the request: not on Fridays"#,
        DeniedByAdmission,
        Some("policy.acme.com")
    )]
    #[case::webhook_invalid(
        422,
        r#"admission webhook "policy.acme.com" denied the request: not on Fridays"#,
        DeniedByAdmission,
        Some("policy.acme.com")
    )]
    #[case::webhook_with_a_forged_text(500, r#"admission webhook "w" denied the request: pods "x" is forbidden: exceeded quota: a, User "b" cannot c"#, DeniedByAdmission, Some("w"))]
    #[case::webhook_without_a_word(
        503,
        r#"admission webhook "w" denied the request without explanation"#,
        DeniedByAdmission,
        Some("w")
    )]
    #[case::webhook_is_down(500, r#"Internal error occurred: failed calling webhook "w.acme.com": failed to call webhook: Post "https://acme:443/?timeout=10s": connection refused"#, WebhookUnavailable, Some("w.acme.com"))]
    #[case::conversion_webhook_is_down(
        500,
        "conversion webhook for acme.com/v1, Kind=Widget failed: Post \"https://acme:443/\": EOF",
        WebhookUnavailable,
        None
    )]
    #[case::limit_range(
        403,
        r#"pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2"#,
        DeniedByAdmission,
        Some("LimitRange")
    )]
    #[case::limit_ranges(403, r#"pods "x" is forbidden: [minimum memory usage per Pod is 1Gi.  No request is specified, maximum cpu usage per Pod is 1, but limit is 2]"#, DeniedByAdmission, Some("LimitRange"))]
    #[case::limit_range_ratio(403, r#"pods "x" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000"#, DeniedByAdmission, Some("LimitRange"))]
    #[case::pod_security(403, r#"pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set ...)"#, DeniedByAdmission, Some("PodSecurity"))]
    #[case::right(403, r#"deployments.apps is forbidden: User "system:serviceaccount:a:b" cannot create resource "deployments" in API group "apps" in the namespace "ns""#, MissingRight, None)]
    #[case::right_to_impersonate(403, r#"users "jane" is forbidden: User "joe" cannot impersonate resource "users" in API group "" at the cluster scope"#, MissingRight, None)]
    #[case::right_to_grant(403, r#"roles.rbac.authorization.k8s.io "x" is forbidden: user "joe" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held: ..."#, MissingRight, None)]
    #[case::right_to_block(403, r#"pods "x" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"#, MissingRight, None)]
    #[case::another_plugin(
        403,
        r#"pods "x" is forbidden: no PriorityClass with name high was found"#,
        Forbidden,
        None
    )]
    #[case::unauthorized(401, "Unauthorized", Forbidden, None)]
    #[case::invalid(
        422,
        r#"Deployment.apps "x" is invalid: spec.selector: Invalid value: {}: field is immutable"#,
        InvalidSpec,
        None
    )]
    #[case::invalid_says_schema(
        422,
        r#"Widget.acme.com "x" is invalid: spec.note: Invalid value: "strict decoding error": no"#,
        InvalidSpec,
        None
    )]
    #[case::unknown_field_applied(
        500,
        "failed to create typed patch object (ns/x; apps/v1, Kind=Deployment): .spec.template.spec.containers[name=\"c\"].imagePolicy: field not declared in schema",
        NotInSchema,
        None
    )]
    #[case::duplicate_applied(
        500,
        "failed to create typed patch object (ns/x; /v1, Kind=Service): errors:\n  .spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]",
        NotInSchema,
        None
    )]
    #[case::unknown_field(400, r#"Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.x""#, NotInSchema, None)]
    #[case::wrong_type(400, r#"Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field"#, NotInSchema, None)]
    #[case::port(422, r#"Service "x" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"#, AlreadyAllocated, None)]
    #[case::address(422, r#"Service "x" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated"#, AlreadyAllocated, None)]
    #[case::too_large(413, "Request entity too large: limit is 3145728", TooLarge, None)]
    #[case::too_large_for_etcd(500, "etcdserver: request is too large", TooLarge, None)]
    #[case::too_large_for_a_webhook_call(
        500,
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3000000 vs. 2097152)",
        TooLarge,
        None
    )]
    #[case::conflict(
        409,
        r#"Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas"#,
        Conflict,
        None
    )]
    #[case::rate(
        429,
        "the server has received too many requests and has asked us to try again later",
        TooManyRequests,
        None
    )]
    #[case::no_answer(0, "error trying to connect: tcp connect error", Unavailable, None)]
    #[case::time_out(
        504,
        "Timeout: request did not complete within requested timeout - context deadline exceeded",
        Unavailable,
        None
    )]
    #[case::request_time_out(408, "", Unavailable, None)]
    #[case::no_namespace(404, r#"namespaces "ns" not found"#, NotFound, None)]
    #[case::method(405, "the server does not allow this method on the requested resource", Unsupported, None)]
    fn what_an_answer_means(
        #[case] code: u16,
        #[case] message: &str,
        #[case] kind: RejectionKind,
        #[case] by: Option<&str>,
    ) {
        let found = Rejection::of(&failure(code, message));
        assert_eq!((found.kind, found.by.as_deref()), (kind, by));
    }

    /// What the controllers of ReplicaSets, Jobs and StatefulSets report.
    #[rstest]
    #[case::condition(
        r#"pods "x-" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"#,
        QuotaExceeded
    )]
    #[case::event(
        r#"Error creating: pods "x-" is forbidden: exceeded quota: q, requested: pods=1"#,
        QuotaExceeded
    )]
    #[case::stateful_set(r#"create Pod x-0 in StatefulSet x failed error: pods "x-0" is forbidden: exceeded quota: q, requested: pods=1"#, QuotaExceeded)]
    #[case::webhook(r#"Error creating: admission webhook "w" denied the request: no"#, DeniedByAdmission)]
    #[case::account(r#"Error creating: pods "x-" is forbidden: error looking up service account ns/a: serviceaccount "a" not found"#, Forbidden)]
    #[case::invalid(
        r#"create Pod x-0 in StatefulSet x failed error: Pod "x-0" is invalid: spec.x: no"#,
        InvalidSpec
    )]
    #[case::conflict(r#"Error creating: Operation cannot be fulfilled on resourcequotas "q": the object has been modified"#, Conflict)]
    #[case::unavailable("Error creating: the server is currently unable to handle the request", Unavailable)]
    fn what_a_controller_reports(#[case] text: &str, #[case] kind: RejectionKind) {
        let found = Rejection::of_report(text);
        assert_eq!(found.kind, kind);
        assert!(!found.message.starts_with("Error") && !found.message.starts_with("create"), "{found:?}");
    }

    #[test]
    fn a_namespace_that_is_terminated_and_a_name_that_is_taken() {
        let text = r#"pods "x" is forbidden: unable to create new content in namespace ns because it is being terminated"#;
        let terminating = ApiFailure { namespace_terminating: true, ..failure(403, text) };
        assert_eq!(Rejection::of(&terminating).kind, NamespaceTerminating);
        let taken = ApiFailure { reason: "AlreadyExists".to_owned(), ..failure(409, "x already exists") };
        assert_eq!(Rejection::of(&taken).kind, NameTaken);
    }

    /// Only what no change can mend is permanent, and nothing permanent is left to retries.
    #[rstest]
    #[case(QuotaExceeded, "QuotaExceeded", false, true)]
    #[case(DeniedByAdmission, "DeniedByAdmission", false, true)]
    #[case(WebhookUnavailable, "WebhookUnavailable", false, false)]
    #[case(MissingRight, "MissingRight", false, true)]
    #[case(NamespaceTerminating, "NamespaceTerminating", true, true)]
    #[case(InvalidSpec, "InvalidSpec", true, true)]
    #[case(NotInSchema, "InvalidSpec", false, true)]
    #[case(Unsupported, "RequestRefused", true, true)]
    #[case(NameTaken, "NameTaken", false, true)]
    #[case(AlreadyAllocated, "AlreadyAllocated", false, true)]
    #[case(TooLarge, "ObjectTooLarge", true, true)]
    #[case(Conflict, "Conflict", false, false)]
    #[case(TooManyRequests, "TooManyRequests", false, false)]
    #[case(Unavailable, "ApiServerUnavailable", false, false)]
    #[case(NotFound, "MissingDependency", false, false)]
    #[case(Forbidden, "RequestRefused", false, true)]
    fn who_can_help(
        #[case] kind: RejectionKind,
        #[case] reason: &str,
        #[case] permanent: bool,
        #[case] person: bool,
    ) {
        assert_eq!((kind.reason(), kind.is_permanent(), kind.needs_person()), (reason, permanent, person));
    }

    #[rstest]
    #[case::lines("denied:\n  a\tb\u{1b}[2J\u{202e}", "denied:   a b\\u001b[2J\\u202e")]
    #[case::nothing("", "the API server answered 422")]
    fn a_message_is_one_line(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(Rejection::of(&failure(422, text)).message, shown);
    }

    /// Each try of the API server has a port of its own; a policy's text is left as it is.
    #[rstest]
    #[case(
        "read tcp 10.0.0.1:51234->10.0.0.2:443: connection reset",
        "read tcp 10.0.0.1->10.0.0.2:443: connection reset"
    )]
    #[case("a: read tcp [::1]:5->[::1]:9443: b", "a: read tcp [::1]->[::1]:9443: b")]
    #[case("a->b: no", "a->b: no")]
    #[case("no", "no")]
    fn the_same_failure_has_the_same_text(#[case] message: &str, #[case] wanted: &str) {
        let failure = ApiFailure { code: 500, message: message.to_owned(), ..ApiFailure::default() };
        assert_eq!(Rejection::of(&failure).message, wanted);
    }

    #[rstest]
    #[case::wide("é")]
    #[case::escaped("\u{1b}")]
    #[case::plain("x")]
    fn a_message_is_bounded(#[case] piece: &str) {
        let text = format!("admission webhook \"{0}\" {0}", piece.repeat(4000));
        let found = Rejection::of(&failure(400, &text));
        assert!(found.message.len() <= MAX_MESSAGE && found.message.ends_with('…'), "{}", found.message);
        assert!(found.by.is_some_and(|by| by.len() <= 10 * (MAX_NAME + 1)));
    }
}
