//! A second reading of the environment of Kong's container, simple and slow: every variable is
//! made, in order, as the kubelet makes it (`pkg/kubelet/kubelet_pods.go`), then Kong's entrypoint
//! (`build/dockerfiles/entrypoint.sh`) and loader (`kong/conf_loader`) are followed to the router.
//!
//! It shares nothing with the product. What nobody can see (objects that are not given, fields of
//! the running pod, files) is guessed: what holds under every guess is known.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const VARIABLE: &str = "KONG_ROUTER_FLAVOR";
const FILE_VARIABLE: &str = "KONG_ROUTER_FLAVOR_FILE";

type Data = BTreeMap<String, String>;

/// What stands where nobody can look.
#[derive(Clone, Copy, Debug)]
pub enum Guess {
    /// The object does not exist.
    NoObject,
    /// It has no such key; the field is empty.
    Nothing,
    /// Everything that is asked for is this.
    Always(&'static str),
}

/// Enough to tell any two flavors apart.
pub const GUESSES: [Guess; 6] = [
    Guess::NoObject,
    Guess::Nothing,
    Guess::Always("traditional"),
    Guess::Always("traditional_compatible"),
    Guess::Always("expressions"),
    Guess::Always("x"),
];

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The kubelet does not start it.
    NeverStarts,
    /// The entrypoint exits, as two settings exclude each other.
    Exits,
    /// Kong rejects the value.
    Rejects,
    /// Kong runs with a router.
    Runs(String),
    /// Kong has no such setting.
    Legacy,
    /// The value refers to something that no guess stands for.
    Elsewhere,
}

/// A pod template and the objects of its namespace.
pub struct Pod<'a> {
    /// The template.
    pub template: &'a Value,
    /// All that is given; what is not there may exist.
    pub objects: &'a [Value],
    /// Whether anybody may have written the template, and named its containers.
    pub is_deployment: bool,
}

/// `None`: no API server would hold such an object.
type Held<T> = Option<T>;

impl Pod<'_> {
    /// What becomes of it; `None` where no API server would hold the objects.
    pub fn fate(&self, guess: Guess) -> Held<Fate> {
        let containers = self.template["spec"]["containers"].as_array()?;
        let proxies: Vec<&Value> = containers.iter().filter(|c| c["name"] == "proxy").collect();
        let proxy = match proxies[..] {
            [proxy] => Some(proxy),
            [] if self.is_deployment => self.kong(containers),
            _ => None,
        };
        let Some(proxy) = proxy else { return Some(Fate::Elsewhere) };
        let Some(mut environment) = self.environment(proxy, guess)? else { return Some(Fate::NeverStarts) };
        if before_3(proxy["image"].as_str().unwrap_or_default()) {
            return Some(Fate::Legacy);
        }
        let command = texts(&proxy["command"])?;
        let arguments = texts(&proxy["args"])?;
        let words: Vec<&str> = command.iter().chain(&arguments).flat_map(|w| w.split_whitespace()).collect();
        if words.iter().any(|word| word.contains(VARIABLE)) {
            return Some(Fate::Elsewhere);
        }
        let set = |all: &Data, name: &str| all.get(name).is_some_and(|value| !value.is_empty());
        let entrypoint = command.is_empty() && arguments.first().is_none_or(|first| first == "kong");
        if entrypoint && set(&environment, FILE_VARIABLE) {
            if set(&environment, VARIABLE) {
                return Some(Fate::Exits);
            }
            environment.insert(VARIABLE.to_owned(), guess.text().trim_end_matches('\n').to_owned());
        }
        Some(match environment.get(VARIABLE) {
            Some(value) => router(value),
            None if brings_a_file(proxy, &words) => match guess {
                Guess::Always(value) => router(value),
                Guess::NoObject | Guess::Nothing => Fate::Runs("traditional_compatible".to_owned()),
            },
            None => Fate::Runs("traditional_compatible".to_owned()),
        })
    }

    /// The container of Kong where none is called `proxy`, if one can be told from the others.
    fn kong<'v>(&self, containers: &'v [Value]) -> Option<&'v Value> {
        let is_of_kong = |container: &&Value| {
            let image = container["image"].as_str().unwrap_or_default();
            let name = image.split('/').next_back().unwrap_or_default();
            let name = name.split_once([':', '@']).map_or(name, |(name, _)| name);
            matches!(name, "kong" | "kong-gateway" | "kong-gateway-fips")
        };
        let sets_it = |container: &&Value| {
            let env = container["env"].as_array().into_iter().flatten();
            env.into_iter().any(|entry| entry["name"] == VARIABLE || entry["name"] == FILE_VARIABLE)
        };
        let images: Vec<&Value> = containers.iter().filter(is_of_kong).collect();
        if let [one] = images[..] {
            return Some(one);
        }
        let named = &self.template["metadata"]["annotations"]["interlock.dev/kong-container"];
        if let Some(name) = named.as_str() {
            return containers.iter().find(|container| container["name"] == name);
        }
        let setting: Vec<&Value> = containers.iter().filter(sets_it).collect();
        match (&images[..], &setting[..]) {
            ([], [one]) => Some(one),
            _ => None,
        }
    }

    /// Every variable; `Some(None)` where the kubelet does not start the container.
    fn environment(&self, proxy: &Value, guess: Guess) -> Held<Option<Data>> {
        let mut all = Data::new();
        for from in list(&proxy["envFrom"])? {
            let prefix = text(&from["prefix"])?;
            let (kind, reference) = one(from, &[("configMapRef", "ConfigMap"), ("secretRef", "Secret")])?;
            match self.object(kind, &text(&reference["name"])?)? {
                Some(data) => {
                    all.extend(data.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value)))
                }
                None => match guess {
                    Guess::NoObject if reference["optional"] == true => {}
                    Guess::NoObject => return Some(None),
                    Guess::Nothing => {}
                    Guess::Always(value) => {
                        let guessed = names(proxy)?
                            .into_iter()
                            .filter(|name| name.strip_prefix(&prefix).is_some_and(|key| !key.is_empty()));
                        all.extend(guessed.map(|name| (name, value.to_owned())));
                    }
                },
            }
        }
        for entry in list(&proxy["env"])? {
            let (name, value) = (text(&entry["name"])?, text(&entry["value"])?);
            if entry["valueFrom"].is_null() {
                let expanded = expand(&value, &all);
                all.insert(name, expanded);
                continue;
            }
            if !value.is_empty() {
                return None;
            }
            match self.referred(&entry["valueFrom"], guess)? {
                Some(Some(value)) => drop(all.insert(name, value)),
                Some(None) => {}
                None => return Some(None),
            }
        }
        Some(Some(all))
    }

    /// `Some(Some(None))`: left out, as it is optional; `Some(None)`: the container does not start.
    fn referred(&self, from: &Value, guess: Guess) -> Held<Option<Option<String>>> {
        const MEMBERS: [(&str, &str); 4] = [
            ("configMapKeyRef", "ConfigMap"),
            ("secretKeyRef", "Secret"),
            ("fieldRef", "field"),
            ("resourceFieldRef", "resource"),
        ];
        let (kind, reference) = one(from, &MEMBERS)?;
        if kind == "field" {
            let path = text(&reference["fieldPath"])?;
            let given = ["labels", "annotations"].into_iter().find_map(|map| {
                let key = path.strip_prefix(&format!("metadata.{map}['"))?.strip_suffix("']")?;
                self.template["metadata"][map].as_object()?.get(key)
            });
            return Some(Some(Some(match given {
                Some(value) => value.as_str()?.to_owned(),
                None => guess.text().to_owned(),
            })));
        }
        if kind == "resource" {
            return Some(Some(Some(guess.text().to_owned())));
        }
        let optional = reference["optional"] == true;
        let missing = if optional { Some(None) } else { None };
        let key = text(&reference["key"])?;
        Some(match (self.object(kind, &text(&reference["name"])?)?, guess) {
            (Some(data), _) => data.get(&key).cloned().map_or(missing, |value| Some(Some(value))),
            (None, Guess::Always(value)) => Some(Some(value.to_owned())),
            (None, Guess::NoObject | Guess::Nothing) => missing,
        })
    }

    /// The data of an object; the last of a name counts.
    fn object(&self, kind: &str, name: &str) -> Held<Option<Data>> {
        let named =
            |o: &&Value| o["apiVersion"] == "v1" && o["kind"] == kind && o["metadata"]["name"] == name;
        let Some(object) = self.objects.iter().rev().find(named) else { return Some(None) };
        let mut data = Data::new();
        for (key, value) in map(&object["data"])? {
            let value = value.as_str()?;
            let decoded = match kind {
                "Secret" => String::from_utf8(STANDARD.decode(value).ok()?).ok()?,
                _ => value.to_owned(),
            };
            data.insert(key, decoded);
        }
        if kind == "Secret" {
            for (key, value) in map(&object["stringData"])? {
                data.insert(key, value.as_str()?.to_owned());
            }
        }
        Some(Some(data))
    }
}

impl Guess {
    fn text(self) -> &'static str {
        match self {
            Self::NoObject | Self::Nothing => "",
            Self::Always(value) => value,
        }
    }
}

fn text(value: &Value) -> Held<String> {
    if value.is_null() { Some(String::new()) } else { value.as_str().map(str::to_owned) }
}

fn list(value: &Value) -> Held<Vec<&Value>> {
    if value.is_null() { Some(Vec::new()) } else { value.as_array().map(|all| all.iter().collect()) }
}

fn map(value: &Value) -> Held<Vec<(String, &Value)>> {
    let pairs = |all: &'_ serde_json::Map<String, Value>| all.keys().cloned().collect::<Vec<_>>();
    if value.is_null() {
        return Some(Vec::new());
    }
    Some(pairs(value.as_object()?).into_iter().map(|key| (key.clone(), &value[key.as_str()])).collect())
}

fn texts(value: &Value) -> Held<Vec<String>> {
    list(value)?.into_iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

/// The one member of a union.
fn one<'v>(value: &'v Value, members: &[(&str, &'static str)]) -> Held<(&'static str, &'v Value)> {
    let there: Vec<_> = members.iter().filter(|(member, _)| !value[*member].is_null()).collect();
    let [(member, kind)] = there[..] else { return None };
    (value.as_object()?.values().filter(|v| v.is_object()).count() == 1).then_some((*kind, &value[*member]))
}

/// Every name that an object could set to an effect.
fn names(proxy: &Value) -> Held<Vec<String>> {
    let mut names = vec![VARIABLE.to_owned(), FILE_VARIABLE.to_owned()];
    for entry in list(&proxy["env"])? {
        let value = text(&entry["value"])?;
        names.extend(value.match_indices("$(").filter_map(|(at, _)| {
            let rest = &value[at + 2..];
            Some(rest[..rest.find(')')?].to_owned())
        }));
    }
    Some(names)
}

/// Character by character (`third_party/forked/golang/expansion`).
fn expand(value: &str, all: &Data) -> String {
    let chars: Vec<char> = value.chars().collect();
    let (mut out, mut i) = (String::new(), 0);
    while i < chars.len() {
        let next = chars.get(i + 1);
        if chars[i] != '$' || next.is_none() {
            out.push(chars[i]);
            i += 1;
        } else if next == Some(&'$') {
            out.push('$');
            i += 2;
        } else if next == Some(&'(') && chars[i + 2..].contains(&')') {
            let name: String = chars[i + 2..].iter().take_while(|c| **c != ')').collect();
            out.push_str(&all.get(&name).cloned().unwrap_or_else(|| format!("$({name})")));
            i += 3 + name.chars().count();
        } else {
            out.push('$');
            i += 1;
        }
    }
    out
}

/// A tag that says so; any other image may be any version.
fn before_3(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map_or("", |(_, tag)| tag);
    let numbers = tag.strip_prefix('v').unwrap_or(tag).split('-').next().unwrap_or_default();
    let parts: Vec<Option<u32>> = numbers
        .split('.')
        .map(|part| if part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None })
        .collect();
    matches!(parts[..], [Some(0..=2), Some(_), ..]) && parts.len() <= 4 && parts.iter().all(Option::is_some)
}

/// Whether the container brings a configuration file for Kong.
fn brings_a_file(proxy: &Value, words: &[&str]) -> bool {
    let kong = words.iter().position(|word| *word == "kong" || word.ends_with("/kong"));
    let named = kong.is_some_and(|kong| {
        words[kong..].iter().enumerate().any(|(at, word)| {
            word.starts_with("--conf=") || (["-c", "--conf"].contains(word) && kong + at + 1 < words.len())
        })
    });
    let mounts = proxy["volumeMounts"].as_array().into_iter().flatten();
    let covers = |mount: &str| {
        mount.starts_with('/')
            && !mount.trim_end_matches('/').is_empty()
            && ["/etc/kong/kong.conf", "/etc/kong.conf"].iter().any(|file| Path::new(file).starts_with(mount))
    };
    named || mounts.filter_map(|mount| mount["mountPath"].as_str()).any(covers)
}

/// Lua's `%s` is trimmed (`kong/tools/string.lua`), then the value is one of the enum or refused.
fn router(value: &str) -> Fate {
    let trimmed = value.trim_matches(|c: char| c == ' ' || ('\t'..='\r').contains(&c));
    match trimmed {
        "traditional" | "traditional_compatible" | "expressions" => Fate::Runs(trimmed.to_owned()),
        _ if trimmed.starts_with("{vault://") => Fate::Elsewhere,
        _ => Fate::Rejects,
    }
}
