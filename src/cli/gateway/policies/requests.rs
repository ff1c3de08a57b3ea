//! The requests that a rule of a route is for: hostnames and matches, for people.

use std::collections::BTreeMap;

use gateway_policies::{NodeKey, ObjectKind, Path};
use interlock_core::api::display::display;
use interlock_gateway::policies::PolicySurvey;
use serde_json::Value;

/// Hostnames, and matches of a rule, that are shown, and the characters of each.
const SHOWN: usize = 4;
const WIDTH: usize = 120;

/// The routes by their node.
pub(super) struct Requests<'a> {
    survey: &'a PolicySurvey,
    routes: BTreeMap<NodeKey, &'a Value>,
}

impl<'a> Requests<'a> {
    pub(super) fn of(survey: &'a PolicySurvey, objects: &'a [Value]) -> Self {
        let node = |object: &'a Value| {
            let text = |value: &'a Value| value.as_str().filter(|text| !text.is_empty());
            let group = text(&object["apiVersion"])?.rsplit_once('/')?.0;
            let kind = ObjectKind::find(group, text(&object["kind"])?).filter(|kind| kind.is_route())?;
            let metadata = &object["metadata"];
            let namespace = text(&metadata["namespace"]).unwrap_or("default");
            Some((NodeKey::new(kind, namespace, text(&metadata["name"])?), object))
        };
        Self { survey, routes: objects.iter().filter_map(node).collect() }
    }

    /// `requests: HOSTNAME, HOSTNAME; MATCH or MATCH`; none for routes of connections.
    pub(super) fn text(&self, path: &Path) -> Option<String> {
        let links = self.survey.index().links(&path.route)?;
        let attached = links.attached.iter().find(|own| own.listener == path.listener)?;
        let matches = &self.routes.get(&path.route)?["spec"]["rules"][path.rule_index]["matches"];
        let matches = matches.as_array().filter(|matches| !matches.is_empty());
        let matches = match (path.route.kind, matches) {
            (ObjectKind::HttpRoute, Some(matches)) => first(matches.iter().map(http), " or "),
            (ObjectKind::GrpcRoute, Some(matches)) => first(matches.iter().map(grpc), " or "),
            (ObjectKind::HttpRoute | ObjectKind::GrpcRoute, None) => "all".to_owned(),
            _ => return None,
        };
        let redirected = match links.redirects.contains(&path.rule_index) {
            true => " (the proxy redirects them: limits that Interlock carries out do not apply)",
            false => "",
        };
        let hostnames = first(attached.hostnames.iter().cloned(), ", ");
        Some(format!("requests: {hostnames}; {matches}{redirected}"))
    }
}

fn first(all: impl Iterator<Item = String>, between: &str) -> String {
    let all: Vec<String> = all.map(|text| display(&text, WIDTH)).collect();
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(between);
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `GET path prefix /api, header x-env=test`.
fn http(own: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let how = match own["path"]["type"].as_str() {
        Some("Exact") => "path",
        Some("RegularExpression") => "path regex",
        _ => "path prefix",
    };
    let mut parts = vec![format!("{how} {}", own["path"]["value"].as_str().unwrap_or("/"))];
    if let Some(method) = own["method"].as_str() {
        parts[0] = format!("{method} {}", parts[0]);
    }
    for (field, word) in [("headers", "header"), ("queryParams", "parameter")] {
        let all = own[field].as_array().into_iter().flatten();
        parts.extend(all.map(|one| format!("{word} {}={}", text(&one["name"]), text(&one["value"]))));
    }
    parts.join(", ")
}

/// `method SERVICE/METHOD`.
fn grpc(own: &Value) -> String {
    let part = |field: &str| own["method"][field].as_str().unwrap_or("*").to_owned();
    let headers = own["headers"].as_array().into_iter().flatten();
    let headers = headers.map(|one| {
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        format!("header {}={}", text("name"), text("value"))
    });
    let method = format!("method {}/{}", part("service"), part("method"));
    std::iter::once(method).chain(headers).collect::<Vec<_>>().join(", ")
}
