//! Which listener carries which route, by scanning all objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::conflicts::conflicts;

const GROUP: &str = "gateway.networking.k8s.io";

/// All objects, found by scanning.
pub struct World<'a>(pub &'a [&'a Value]);

pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

pub fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn or<'a>(value: &'a str, default: &'a str) -> &'a str {
    if value.is_empty() { default } else { value }
}

pub fn locator(object: &Value) -> String {
    let (kind, namespace, name) =
        (text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
}

/// A text that sorts by age; what was never created comes last.
pub fn age(object: &Value) -> String {
    let created = match text(object, "/metadata/creationTimestamp") {
        "" => "9",
        "2026-01-02T00:00:00+01:00" => "2026-01-01T23:00:00Z",
        created => created,
    };
    created.to_owned()
}

impl<'a> World<'a> {
    fn get(&self, locator_: &str) -> Option<&'a Value> {
        self.0.iter().find(|object| locator(object) == locator_).copied()
    }

    pub fn of_kinds(&self, kinds: &'a [&'a str]) -> impl Iterator<Item = &'a Value> {
        self.0.iter().copied().filter(move |object| kinds.contains(&text(object, "/kind")))
    }

    pub fn exists(&self, target: &str) -> bool {
        let Some((object, section)) = target.split_once('#') else { return self.get(target).is_some() };
        let Some(object) = self.get(object) else { return false };
        match text(object, "/kind") {
            "Gateway" | "ListenerSet" | "XListenerSet" => {
                list(object, "/spec/listeners").iter().any(|own| text(own, "/name") == section)
            }
            "Service" => list(object, "/spec/ports")
                .iter()
                .any(|port| or(text(port, "/name"), &port["port"].to_string()) == section),
            _ => rule_names(object).iter().any(|own| own == section),
        }
    }

    /// None: the namespace is unknown.
    pub fn selects(&self, rule: &Value, default: &str, own: &str, other: &str) -> Option<bool> {
        match or(text(rule, "/from"), default) {
            "All" => Some(true),
            "Same" => Some(own == other),
            "None" => Some(false),
            _ => {
                let namespace = self.get(&format!("Namespace/{other}"))?;
                let label = |key: &str| {
                    let stored = namespace["metadata"]["labels"].get(key).and_then(Value::as_str);
                    if key == "kubernetes.io/metadata.name" { stored.or(Some(other)) } else { stored }
                };
                let Some(selector) = rule.get("selector") else { return Some(false) };
                let mut all = true;
                for (key, value) in selector["matchLabels"].as_object().unwrap_or(&Map::new()) {
                    all &= label(key) == value.as_str();
                }
                for own in list(selector, "/matchExpressions") {
                    let value = label(text(own, "/key"));
                    let listed = list(own, "/values").iter().any(|listed| listed.as_str() == value);
                    all &= match text(own, "/operator") {
                        "In" => value.is_some() && listed,
                        "NotIn" => value.is_none() || !listed,
                        "Exists" => value.is_some(),
                        _ => value.is_none(),
                    };
                }
                Some(all)
            }
        }
    }
}

pub fn rule_names(route: &Value) -> Vec<String> {
    let rules: Vec<String> = match route.pointer("/spec/rules") {
        None if text(route, "/kind") == "HTTPRoute" => vec![String::new()],
        None => Vec::new(),
        Some(rules) => rules.as_array().unwrap().iter().map(|rule| text(rule, "/name").to_owned()).collect(),
    };
    let mut names: Vec<String> = Vec::new();
    for (index, name) in rules.iter().enumerate() {
        let position = format!("rule-{}", index + 1);
        let free = if name.is_empty() { !rules.contains(&position) } else { !rules[..index].contains(name) };
        let wanted = if name.is_empty() { position } else { name.clone() };
        names.push(if free { wanted } else { format!("#{}", index + 1) });
    }
    names
}

/// Labels from the right: equal as far as both go, and a star stands for one or more.
fn common(left: &str, right: &str) -> Option<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (left.rsplit('.').collect(), right.rsplit('.').collect());
    for index in 0.. {
        match (a.get(index), b.get(index)) {
            (None, None) => return Some(left.to_owned()),
            (Some(&"*"), Some(_)) => return Some(right.to_owned()),
            (Some(_), Some(&"*")) => return Some(left.to_owned()),
            (Some(x), Some(y)) if x == y => {}
            _ => return None,
        }
    }
    None
}

fn hostnames(listener: &Value, route: &Value) -> Option<Vec<String>> {
    if ["TCPRoute", "UDPRoute"].contains(&text(route, "/kind")) {
        return Some(Vec::new());
    }
    let own = or(text(listener, "/hostname"), "*");
    let asked = list(route, "/spec/hostnames");
    if asked.is_empty() {
        return Some(vec![own.to_owned()]);
    }
    let found: BTreeSet<String> =
        asked.iter().filter_map(|asked| common(own, asked.as_str().unwrap())).collect();
    if found.is_empty() { None } else { Some(found.into_iter().collect()) }
}

fn by_protocol(listener: &Value, kind: &str) -> bool {
    let kinds: &[&str] = match (text(listener, "/protocol"), text(listener, "/tls/mode")) {
        ("HTTP" | "HTTPS", _) => &["HTTPRoute", "GRPCRoute"],
        ("TLS", "Passthrough") => &["TLSRoute"],
        ("TLS", _) => &["TLSRoute", "TCPRoute"],
        ("TCP", _) => &["TCPRoute"],
        ("UDP", _) => &["UDPRoute"],
        _ => return listed(listener, kind),
    };
    kinds.contains(&kind)
}

fn listed(listener: &Value, kind: &str) -> bool {
    let kinds = list(listener, "/allowedRoutes/kinds");
    kinds.iter().any(|own| text(own, "/kind") == kind && or(text(own, "/group"), GROUP) == GROUP)
}

/// A listener that carries a route: the locators above the route, and the hostnames.
pub type Carried = BTreeMap<Vec<String>, Vec<String>>;

/// A parent reference: its name, the object that it names and its section.
struct Reference<'a> {
    kind: &'a str,
    object: String,
    section: &'a str,
    name: String,
}

fn reference<'a>(route: &'a Value, parent: &'a Value) -> Reference<'a> {
    let kind = or(text(parent, "/kind"), "Gateway");
    let namespace = or(text(parent, "/namespace"), text(route, "/metadata/namespace"));
    let (own, section) = (text(parent, "/name"), text(parent, "/sectionName"));
    let object =
        if kind == "GatewayClass" { format!("{kind}/{own}") } else { format!("{kind}/{namespace}/{own}") };
    let has_section = !section.is_empty() && kind != "Mesh";
    let name = if has_section { format!("{object}#{section}") } else { object.clone() };
    Reference { kind, object, section, name }
}

/// The Gateway of a parent, and the object with the listeners.
fn parent<'a>(
    world: &World<'a>,
    reference: &Reference,
    controller: &str,
) -> Result<(&'a Value, &'a Value), &'static str> {
    if !["Gateway", "ListenerSet", "XListenerSet"].contains(&reference.kind) {
        return Err("ParentKindUnsupported");
    }
    let owner = world.get(&reference.object).ok_or("ParentNotFound")?;
    let mut gateway = owner;
    if reference.kind != "Gateway" {
        let own = text(owner, "/metadata/namespace");
        let up = or(text(owner, "/spec/parentRef/namespace"), own);
        let name = format!("Gateway/{up}/{}", text(owner, "/spec/parentRef/name"));
        gateway = world.get(&name).ok_or("ParentNotFound")?;
        match world.selects(&gateway["spec"]["allowedListeners"]["namespaces"], "None", up, own) {
            Some(true) => {}
            Some(false) => return Err("ListenerSetNotAllowed"),
            None => return Err("NamespaceUnknown"),
        }
    }
    let class = world.get(&class_of(gateway)).ok_or("ClassNotFound")?;
    if text(class, "/spec/controllerName") != controller {
        return Err("ForeignController");
    }
    Ok((gateway, owner))
}

fn class_of(gateway: &Value) -> String {
    format!("GatewayClass/{}", text(gateway, "/spec/gatewayClassName"))
}

fn refusal(world: &World, owner: &Value, listener: &Value, route: &Value) -> Option<&'static str> {
    let (kind, namespace) = (text(route, "/kind"), text(route, "/metadata/namespace"));
    let allowed = &listener["allowedRoutes"];
    let own = text(owner, "/metadata/namespace");
    let selected = world.selects(&allowed["namespaces"], "Same", own, namespace);
    if !by_protocol(listener, kind) {
        Some("ProtocolMismatch")
    } else if !list(allowed, "/kinds").is_empty() && !listed(listener, kind) {
        Some("KindNotAllowed")
    } else if selected == Some(false) {
        Some("NamespaceNotAllowed")
    } else if selected.is_none() {
        Some("NamespaceUnknown")
    } else if hostnames(listener, route).is_none() {
        Some("HostnameMismatch")
    } else {
        None
    }
}

pub fn carried(world: &World, route: &Value, controller: &str, refused: &mut BTreeSet<String>) -> Carried {
    let mut carried = Carried::new();
    let mut refuse = |parent: &str, reason: &str| {
        refused.insert(format!("{} {parent} {reason}", locator(route)));
    };
    for parent_ref in list(route, "/spec/parentRefs") {
        let reference = reference(route, parent_ref);
        let (gateway, owner) = match parent(world, &reference, controller) {
            Ok(found) => found,
            Err(reason) => {
                refuse(&reference.name, reason);
                continue;
            }
        };
        let section = reference.section;
        let listeners = list(owner, "/spec/listeners").iter();
        let listeners: Vec<&Value> =
            listeners.filter(|own| section.is_empty() || text(own, "/name") == section).collect();
        let port = parent_ref.get("port");
        if listeners.is_empty() {
            refuse(&reference.name, "SectionNotFound");
        } else if listeners.iter().all(|own| port.is_some() && own.get("port") != port) {
            refuse(&reference.name, "PortNotFound");
        }
        for listener in listeners.into_iter().filter(|own| port.is_none() || own.get("port") == port) {
            let key = format!("{}#{}", locator(owner), text(listener, "/name"));
            let conflict = conflicts(world, gateway).get(&key).copied();
            if let Some(reason) = conflict.or_else(|| refusal(world, owner, listener, route)) {
                refuse(&key, reason);
                continue;
            }
            let mut above = vec![class_of(gateway), locator(gateway)];
            if reference.kind != "Gateway" {
                above.push(locator(owner));
            }
            above.push(key);
            carried.insert(above, hostnames(listener, route).unwrap());
        }
    }
    carried
}

pub fn backends(world: &World, route: &Value, found: &mut Vec<String>) {
    let own = text(route, "/metadata/namespace");
    for (rule, name) in list(route, "/spec/rules").iter().zip(rule_names(route)) {
        for backend in list(rule, "/backendRefs") {
            let rule = format!("{}#{name}", locator(route));
            if !text(backend, "/kind").is_empty() {
                found.push(format!("{rule}  UnknownKind"));
                continue;
            }
            let namespace = or(text(backend, "/namespace"), own);
            let service = format!("Service/{namespace}/{}", text(backend, "/name"));
            let granted = world.of_kinds(&["ReferenceGrant"]).any(|grant| {
                text(grant, "/metadata/namespace") == namespace
                    && list(grant, "/spec/from").iter().any(|from| {
                        text(from, "/group") == GROUP
                            && text(from, "/kind") == text(route, "/kind")
                            && text(from, "/namespace") == own
                    })
                    && list(grant, "/spec/to").iter().any(|to| {
                        let name = text(to, "/name");
                        text(to, "/group").is_empty()
                            && text(to, "/kind") == "Service"
                            && (name.is_empty() || name == text(backend, "/name"))
                    })
            });
            let port = backend.get("port");
            let stored = world.get(&service);
            let ports = stored.map_or(&[][..], |stored| list(stored, "/spec/ports"));
            let hit = ports.iter().find(|own| own.get("port") == port);
            found.push(if namespace != own && !granted {
                format!("{rule} {service} NotPermitted")
            } else if stored.is_none() {
                format!("{rule} {service} ServiceNotFound")
            } else if port.is_none() {
                format!("{rule} {service} Resolved")
            } else if let Some(hit) = hit {
                format!("{rule} {service}#{} Resolved", or(text(hit, "/name"), &hit["port"].to_string()))
            } else {
                format!("{rule} {service} PortNotFound")
            });
        }
    }
}
