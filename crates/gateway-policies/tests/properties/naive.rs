//! A second implementation, from the same sheet of rules: everything anew each time, on raw JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

const GROUP: &str = "gateway.networking.k8s.io";

/// All objects, found by scanning.
struct World<'a>(&'a [&'a Value]);

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn or<'a>(value: &'a str, default: &'a str) -> &'a str {
    if value.is_empty() { default } else { value }
}

fn locator(object: &Value) -> String {
    let (kind, namespace, name) =
        (text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
}

impl<'a> World<'a> {
    fn get(&self, locator_: &str) -> Option<&'a Value> {
        self.0.iter().find(|object| locator(object) == locator_).copied()
    }

    fn of_kinds(&self, kinds: &'a [&'a str]) -> impl Iterator<Item = &'a Value> {
        self.0.iter().copied().filter(move |object| kinds.contains(&text(object, "/kind")))
    }

    fn exists(&self, target: &str) -> bool {
        let Some((object, section)) = target.split_once('#') else { return self.get(target).is_some() };
        let Some(object) = self.get(object) else { return false };
        match text(object, "/kind") {
            "Gateway" | "ListenerSet" => {
                list(object, "/spec/listeners").iter().any(|own| text(own, "/name") == section)
            }
            "Service" => list(object, "/spec/ports")
                .iter()
                .any(|port| or(text(port, "/name"), &port["port"].to_string()) == section),
            _ => rule_names(object).iter().any(|own| own == section),
        }
    }

    /// None: the namespace is unknown.
    fn selects(&self, rule: &Value, default: &str, own: &str, other: &str) -> Option<bool> {
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

fn rule_names(route: &Value) -> Vec<String> {
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
type Carried = BTreeMap<Vec<String>, Vec<String>>;

fn carried(world: &World, route: &Value, controller: &str, refused: &mut BTreeSet<String>) -> Carried {
    let mut carried = Carried::new();
    let namespace = text(route, "/metadata/namespace");
    for parent in list(route, "/spec/parentRefs") {
        let kind = or(text(parent, "/kind"), "Gateway");
        let base = format!("{}/{}", or(text(parent, "/namespace"), namespace), text(parent, "/name"));
        let section = text(parent, "/sectionName");
        let mut name = if kind == "GatewayClass" {
            format!("GatewayClass/{}", text(parent, "/name"))
        } else {
            format!("{kind}/{base}")
        };
        let object = name.clone();
        if !section.is_empty() && kind != "Mesh" {
            name = format!("{name}#{section}");
        }
        let mut refuse = |parent: &str, reason: &str| {
            refused.insert(format!("{} {parent} {reason}", locator(route)));
        };
        let owner = world.get(&object);
        let gateway = match (kind, owner) {
            ("Gateway", Some(gateway)) => gateway,
            ("ListenerSet", Some(set)) => {
                let own = text(set, "/metadata/namespace");
                let up = or(text(set, "/spec/parentRef/namespace"), own);
                let Some(gateway) = world.get(&format!("Gateway/{up}/{}", text(set, "/spec/parentRef/name")))
                else {
                    refuse(&name, "ParentNotFound");
                    continue;
                };
                match world.selects(&gateway["spec"]["allowedListeners"]["namespaces"], "None", up, own) {
                    Some(true) => gateway,
                    Some(false) => {
                        refuse(&name, "ListenerSetNotAllowed");
                        continue;
                    }
                    None => {
                        refuse(&name, "NamespaceUnknown");
                        continue;
                    }
                }
            }
            ("Gateway" | "ListenerSet", None) => {
                refuse(&name, "ParentNotFound");
                continue;
            }
            _ => {
                refuse(&name, "ParentKindUnsupported");
                continue;
            }
        };
        let class = format!("GatewayClass/{}", text(gateway, "/spec/gatewayClassName"));
        let Some(stored) = world.get(&class) else {
            refuse(&name, "ClassNotFound");
            continue;
        };
        if text(stored, "/spec/controllerName") != controller {
            refuse(&name, "ForeignController");
            continue;
        }
        let owner = owner.unwrap();
        let listeners = list(owner, "/spec/listeners").iter();
        let listeners: Vec<&Value> =
            listeners.filter(|own| section.is_empty() || text(own, "/name") == section).collect();
        if listeners.is_empty() {
            refuse(&name, "SectionNotFound");
            continue;
        }
        let port = parent.get("port");
        if listeners.iter().all(|own| port.is_some() && own.get("port") != port) {
            refuse(&name, "PortNotFound");
            continue;
        }
        for listener in listeners.into_iter().filter(|own| port.is_none() || own.get("port") == port) {
            let key = format!("{}#{}", locator(owner), text(listener, "/name"));
            let allowed = &listener["allowedRoutes"];
            let own = text(owner, "/metadata/namespace");
            let selected = world.selects(&allowed["namespaces"], "Same", own, namespace);
            let route_kind = text(route, "/kind");
            if !by_protocol(listener, route_kind) {
                refuse(&key, "ProtocolMismatch");
            } else if !list(allowed, "/kinds").is_empty() && !listed(listener, route_kind) {
                refuse(&key, "KindNotAllowed");
            } else if selected == Some(false) {
                refuse(&key, "NamespaceNotAllowed");
            } else if selected.is_none() {
                refuse(&key, "NamespaceUnknown");
            } else if let Some(hostnames) = hostnames(listener, route) {
                let mut above = vec![class.clone(), locator(gateway)];
                if kind == "ListenerSet" {
                    above.push(locator(owner));
                }
                above.push(key);
                carried.insert(above, hostnames);
            } else {
                refuse(&key, "HostnameMismatch");
            }
        }
    }
    carried
}

fn backends(world: &World, route: &Value, found: &mut Vec<String>) {
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

/// A policy: everything that the fold needs.
struct Policy<'a> {
    object: &'a Value,
    short: String,
    targets: BTreeSet<String>,
    overrides: bool,
    merges: bool,
    /// None: never valid.
    rules: Option<BTreeMap<String, Value>>,
    age: (String, String),
}

fn policies<'a>(world: &World<'a>, kind: &'a str) -> Vec<Policy<'a>> {
    let mut all: Vec<Policy> = world
        .0
        .iter()
        .copied()
        .filter(|object| text(object, "/kind") == kind)
        .map(|object| {
            let namespace = text(object, "/metadata/namespace");
            let spec = &object["spec"];
            let references = spec.get("targetRef").into_iter().chain(list(spec, "/targetRefs"));
            let targets = references.map(|reference| {
                let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
                let object = if kind == "GatewayClass" {
                    format!("{kind}/{name}")
                } else {
                    format!("{kind}/{namespace}/{name}")
                };
                let section = text(reference, "/sectionName");
                if section.is_empty() { object } else { format!("{object}#{section}") }
            });
            let used: Vec<&Value> =
                [spec.get("defaults"), spec.get("overrides")].into_iter().flatten().collect();
            let block = used.first().copied().unwrap_or(spec);
            let limits = block["limits"].as_object().unwrap();
            let rules = limits.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            let short = format!("{namespace}/{}", text(object, "/metadata/name"));
            let created = match text(object, "/metadata/creationTimestamp") {
                "" => "9",
                "2026-01-02T00:00:00+01:00" => "2026-01-01T23:00:00Z",
                created => created,
            };
            Policy {
                object,
                targets: targets.collect(),
                overrides: spec.get("overrides").is_some(),
                merges: text(block, "/strategy") == "merge",
                rules: (used.len() < 2).then_some(rules),
                age: (created.to_owned(), short.clone()),
                short,
            }
        })
        .collect();
    all.sort_by(|a, b| a.age.cmp(&b.age));
    all
}

fn is_alive(policy: &Policy) -> bool {
    policy.object.pointer("/metadata/deletionTimestamp").is_none()
}

/// The rules of a chain by key, each with the number of its policy.
fn combine(chain: &[&Policy]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let valid: Vec<usize> = (0..chain.len()).filter(|index| chain[*index].rules.is_some()).collect();
    let Some((first, rest)) = valid.split_first() else { return found };
    let own: Vec<&String> = chain[*first].rules.as_ref().unwrap().keys().collect();
    let Some(next) = rest.first() else {
        return own.into_iter().map(|key| (key.clone(), *first)).collect();
    };
    let lower: BTreeMap<String, usize> =
        combine(&chain[*next..]).into_iter().map(|(key, index)| (key, index + next)).collect();
    let keys: BTreeSet<String> = own.iter().map(|key| (*key).clone()).chain(lower.keys().cloned()).collect();
    for key in keys {
        let (mine, theirs) = (own.contains(&&key), lower.get(&key));
        let winner = match (chain[*first].overrides, chain[*first].merges) {
            (true, false) => mine.then_some(*first),
            (false, false) => theirs.copied(),
            (true, true) => mine.then_some(*first).or(theirs.copied()),
            (false, true) => theirs.copied().or(mine.then_some(*first)),
        };
        if let Some(winner) = winner {
            found.insert(key, winner);
        }
    }
    found
}

/// What the policies of a chain come to, and for each policy: whether it acts, and who replaced it.
fn effective(chain: &[&Policy]) -> (Value, BTreeMap<String, (bool, BTreeSet<String>, bool)>) {
    let rules = combine(chain);
    let sources: BTreeSet<&str> = rules.values().map(|index| chain[*index].short.as_str()).collect();
    let (mut order, mut replaced, mut unreadable, mut states) =
        (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
    for policy in chain {
        if order.contains(&policy.short) {
            continue;
        }
        order.push(policy.short.clone());
        let mut by_all = BTreeSet::new();
        let mut lost = false;
        match &policy.rules {
            None => unreadable.push(policy.short.clone()),
            Some(own) => {
                for key in own.keys() {
                    let by: Vec<String> = match rules.get(key) {
                        Some(index) if chain[*index].short == policy.short => continue,
                        Some(index) => vec![chain[*index].short.clone()],
                        None => sources.iter().map(|source| (*source).to_owned()).collect(),
                    };
                    lost = true;
                    by_all.extend(by.iter().cloned());
                    let place = (
                        text(policy.object, "/metadata/namespace"),
                        text(policy.object, "/metadata/name"),
                        key,
                    );
                    replaced.push((place, json!({"policy": policy.short, "rule": key, "by": sorted(by)})));
                }
            }
        }
        states.insert(policy.short.clone(), (sources.contains(policy.short.as_str()), by_all, lost));
    }
    replaced.sort_by(|a, b| a.0.cmp(&b.0));
    let rules: Map<String, Value> = rules
        .iter()
        .map(|(key, index)| {
            let rule = &chain[*index].rules.as_ref().unwrap()[key];
            (key.clone(), json!({"source": chain[*index].short, "rule": rule}))
        })
        .collect();
    let replaced: Vec<Value> = replaced.into_iter().map(|(_, own)| own).collect();
    let value =
        json!({"rules": rules, "policies": order, "replaced": replaced, "unreadable": sorted(unreadable)});
    (value, states)
}

/// Sorted by namespace and name, as the identities of policies are.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_by(|a, b| a.split_once('/').cmp(&b.split_once('/')));
    names
}

type Ancestors = BTreeMap<String, BTreeMap<String, (bool, BTreeSet<String>, bool)>>;

fn add(ancestors: &mut Ancestors, ancestor: &str, states: BTreeMap<String, (bool, BTreeSet<String>, bool)>) {
    for (policy, (live, by, lost)) in states {
        let entry = ancestors.entry(policy).or_default().entry(ancestor.to_owned()).or_default();
        entry.0 |= live;
        entry.1.extend(by);
        entry.2 |= lost;
    }
}

pub fn compute(objects: &[&Value], controller: &str) -> Value {
    let world = World(objects);
    let (mut paths, mut refused, mut found_backends) = (Map::new(), BTreeSet::new(), Vec::new());
    let mut outputs = Map::new();
    let limits = policies(&world, "LimitPolicy");
    let certificates = policies(&world, "CertificatePolicy");
    let (mut of_limits, mut of_certificates) = (Ancestors::new(), Ancestors::new());
    for route in world.of_kinds(&["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"]) {
        backends(&world, route, &mut found_backends);
        for (above, hostnames) in carried(&world, route, controller, &mut refused) {
            for (index, rule) in rule_names(route).iter().enumerate() {
                let mut nodes = above.clone();
                nodes.push(locator(route));
                nodes.push(format!("{}#{rule}", locator(route)));
                let path = format!("{} @{index}", nodes.join(" > "));
                let chain: Vec<&Policy> = nodes
                    .iter()
                    .flat_map(|node| {
                        limits.iter().filter(|own| is_alive(own) && own.targets.contains(node)).take(16)
                    })
                    .collect();
                if !chain.is_empty() {
                    let (value, states) = effective(&chain);
                    add(&mut of_limits, &above[1], states);
                    outputs.insert(format!("LimitPolicy on {path}"), value);
                }
                paths.insert(path, json!(hostnames));
            }
        }
    }
    let targets: BTreeSet<&String> = certificates.iter().flat_map(|own| &own.targets).collect();
    for target in targets.into_iter().filter(|target| world.exists(target)) {
        let winner = certificates.iter().find(|own| is_alive(own) && own.targets.contains(target));
        if let Some(winner) = winner {
            let (value, states) = effective(&[winner]);
            add(&mut of_certificates, target.split('#').next().unwrap(), states);
            outputs.insert(format!("CertificatePolicy on {target}"), value);
        }
    }
    let mut states = Map::new();
    for (kind, all, ancestors) in
        [("LimitPolicy", &limits, &of_limits), ("CertificatePolicy", &certificates, &of_certificates)]
    {
        for policy in all {
            let state = state(&world, kind, all, policy, ancestors.get(&policy.short));
            states.insert(format!("{kind}/{}", policy.short), state);
        }
    }
    found_backends.sort();
    json!({
        "paths": paths, "refused": refused, "backends": found_backends, "outputs": outputs, "states": states,
    })
}

fn state(
    world: &World,
    kind: &str,
    all: &[Policy],
    policy: &Policy,
    ancestors: Option<&BTreeMap<String, (bool, BTreeSet<String>, bool)>>,
) -> Value {
    let targets: Map<String, Value> = policy
        .targets
        .iter()
        .map(|target| {
            let winner = all.iter().find(|own| is_alive(own) && own.targets.contains(target));
            let state = match winner {
                _ if !world.exists(target) => "NotFound".to_owned(),
                Some(winner)
                    if kind == "CertificatePolicy" && is_alive(policy) && winner.short != policy.short =>
                {
                    format!("Conflicted by {kind}/{}", winner.short)
                }
                _ => "Attached".to_owned(),
            };
            (target.clone(), json!(state))
        })
        .collect();
    let ancestors: Map<String, Value> = ancestors
        .into_iter()
        .flatten()
        .map(|(ancestor, (live, by, lost))| {
            let by = sorted(by.iter().cloned().collect());
            let by: Vec<String> = by.iter().map(|by| format!("{kind}/{by}")).collect();
            (ancestor.clone(), json!({"live": live, "replaced": lost, "by": by}))
        })
        .collect();
    json!({"targets": targets, "ancestors": ancestors})
}
