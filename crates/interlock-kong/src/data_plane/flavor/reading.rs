//! The effective flavor of a pod template: the one that Kong would run with.
//!
//! There is no single default: the image's is `traditional_compatible` since 3.0, charts and
//! manifests set others, so raw strings are never compared.

use std::fmt;

use super::Flavor;
use super::environment::{EnvVariable, SourceKey, Surroundings, Unknown, variables};
pub use super::environment::{FILE_VARIABLE, VARIABLE};
use interlock_core::api::pod::{Container, EnvVar, PodTemplate};

use super::kong_container;
use super::version::KongVersion;
use crate::api::PROXY;

/// Default paths of Kong's configuration file.
const CONF_FILES: [&str; 2] = ["/etc/kong/kong.conf", "/etc/kong.conf"];

/// A value that is no flavor; shown only if the object itself contains it, as others may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The value.
    Shown(String),
    Hidden(SourceKey),
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shown(value) => write!(f, "\"{}\"", value.escape_debug()),
            Self::Hidden(key) => write!(f, "*** (of {key})"),
        }
    }
}

/// What Kong would run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effective {
    Known(Flavor),
    /// The router of Kong before 3.0, which has no flavors.
    Legacy,
    /// Kong would not start: no such flavor.
    Invalid(Rejected),
    /// The image's entrypoint would exit: the flavor is set both directly and by file.
    Exclusive,
    Unknown(Unknown),
}

impl Effective {
    /// The flavor, if there is one.
    pub fn known(&self) -> Option<Flavor> {
        match self {
            Self::Known(flavor) => Some(*flavor),
            Self::Legacy | Self::Invalid(_) | Self::Exclusive | Self::Unknown(_) => None,
        }
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(flavor) => write!(f, "{flavor}"),
            Self::Legacy => write!(f, "the router of Kong before 3.0"),
            Self::Invalid(value) => write!(f, "{value}, which is no flavor"),
            Self::Exclusive => write!(f, "none, as {VARIABLE} and {FILE_VARIABLE} are both set"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

/// The flavor of a pod template, and how it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorReading {
    /// What Kong would run with.
    pub effective: Effective,
    /// Whether anything sets it; else it is the image's default.
    pub said: bool,
    /// A flavor that is set although this Kong is older than flavors, and ignores it.
    pub ignored: Option<Flavor>,
    /// The version of Kong, if the image names it.
    pub version: Option<KongVersion>,
    /// The keys that it was computed from beside the template.
    pub keys: Vec<SourceKey>,
    /// Other containers that set the variable, to no effect.
    pub elsewhere: Vec<String>,
    /// Whether entries of the variable differ; the last one counts.
    pub duplicated: bool,
    /// The container that runs Kong.
    pub container: String,
}

impl FlavorReading {
    /// Reads the pod template of a DataPlane in a namespace: Kong is the container `proxy`.
    pub fn of(template: &PodTemplate, surroundings: Surroundings<'_>) -> Self {
        Self::of_container(kong_container::proxy(template), template, surroundings)
    }

    /// Reads a pod template that anybody may have written.
    pub fn of_any(template: &PodTemplate, surroundings: Surroundings<'_>) -> Self {
        Self::of_container(kong_container::find(template), template, surroundings)
    }

    fn of_container(
        kong: Result<&Container, Unknown>,
        template: &PodTemplate,
        surroundings: Surroundings<'_>,
    ) -> Self {
        let name = kong.as_ref().map_or(PROXY, |kong| &kong.name).to_owned();
        // Of several that may run Kong, none is known to set it to no effect.
        let elsewhere = match kong {
            Err(Unknown::ManyKongs(_)) => Vec::new(),
            _ => elsewhere(template, &name),
        };
        let reading = kong.map_or_else(Self::unknown, |kong| of_proxy(kong, surroundings));
        Self { elsewhere, container: name, ..reading }
    }

    /// A reading of live pods of which at most the flavor is known.
    pub fn of_live(flavor: Option<Flavor>, unknown: Unknown) -> Self {
        let reading = Self::unknown(unknown);
        flavor.map_or(reading.clone(), |flavor| reading.with(flavor))
    }

    fn unknown(why: Unknown) -> Self {
        Self {
            effective: Effective::Unknown(why),
            said: false,
            ignored: None,
            version: None,
            keys: Vec::new(),
            elsewhere: Vec::new(),
            duplicated: false,
            container: PROXY.to_owned(),
        }
    }

    /// The same template with another flavor.
    #[must_use]
    pub fn with(&self, flavor: Flavor) -> Self {
        Self {
            effective: Effective::Known(flavor),
            said: true,
            ignored: None,
            keys: Vec::new(),
            ..self.clone()
        }
    }

    /// The version to look up in the table.
    pub fn assumed_version(&self) -> KongVersion {
        self.version.unwrap_or(KongVersion::ASSUMED)
    }
}

fn elsewhere(template: &PodTemplate, kong: &str) -> Vec<String> {
    let others = template.spec.init_containers.iter().chain(&template.spec.containers);
    others
        .filter(|container| container.name != kong && container.env.iter().any(sets_it))
        .map(|container| container.name.clone())
        .collect()
}

fn sets_it(entry: &EnvVar) -> bool {
    entry.name == VARIABLE
}

fn of_proxy(proxy: &Container, surroundings: Surroundings<'_>) -> FlavorReading {
    let version = proxy.image.as_deref().and_then(KongVersion::of_image);
    let mut found = variables(proxy, surroundings, &[VARIABLE, FILE_VARIABLE]);
    let direct = found.remove(VARIABLE).unwrap_or(EnvVariable::Unset);
    let by_file =
        found.remove(FILE_VARIABLE).filter(|_| runs_entrypoint(proxy)).unwrap_or(EnvVariable::Unset);
    let mut entries = proxy.env.iter().filter(|entry| sets_it(entry));
    let duplicated = entries.next().is_some_and(|first| entries.any(|entry| entry != first));
    let said = !matches!((&direct, &by_file), (EnvVariable::Unset, EnvVariable::Unset));
    let keys = match &direct {
        EnvVariable::Set { keys, .. } => keys.clone(),
        EnvVariable::Unknown(Unknown::Unseen(key) | Unknown::NoKey(key)) => vec![key.clone()],
        EnvVariable::Unknown(_) | EnvVariable::Unset => Vec::new(),
    };
    let set = effective(proxy, &direct, by_file);
    let (effective, ignored) = match version {
        Some(version) if !version.has_flavors() => (Effective::Legacy, set.known().filter(|_| said)),
        _ => (set, None),
    };
    let container = proxy.name.clone();
    FlavorReading { effective, said, ignored, version, keys, elsewhere: Vec::new(), duplicated, container }
}

/// The environment overrides the configuration file, which overrides the image's default.
fn effective(proxy: &Container, direct: &EnvVariable, by_file: EnvVariable) -> Effective {
    let words = || proxy.command.iter().chain(&proxy.args);
    if words().any(|word| word.contains(VARIABLE)) {
        return Effective::Unknown(Unknown::Command);
    }
    // An empty variable counts as absent for the entrypoint, and as invalid for Kong.
    let by_file = match by_file {
        EnvVariable::Set { value, .. } if value.is_empty() => EnvVariable::Unset,
        other => other,
    };
    match (direct, by_file) {
        (EnvVariable::Unknown(why), _) => Effective::Unknown(why.clone()),
        (EnvVariable::Set { value, .. }, EnvVariable::Set { .. }) if !value.is_empty() => {
            Effective::Exclusive
        }
        (EnvVariable::Set { value, .. }, EnvVariable::Unknown(why)) if !value.is_empty() => {
            Effective::Unknown(why)
        }
        (EnvVariable::Set { value, keys }, EnvVariable::Unset) => of_value(value, keys),
        (_, EnvVariable::Set { value, .. }) => Effective::Unknown(Unknown::File(value)),
        (_, EnvVariable::Unknown(why)) => Effective::Unknown(why),
        (EnvVariable::Unset, EnvVariable::Unset) => match conf_file(proxy) {
            Some(path) => Effective::Unknown(Unknown::ConfFile(path)),
            None => Effective::Known(Flavor::TraditionalCompatible),
        },
    }
}

/// Kong trims Lua's white space (`kong/tools/string.lua`), and rejects an empty value
/// (`kong/conf_loader/parse.lua`).
fn of_value(value: &str, keys: &[SourceKey]) -> Effective {
    let trimmed = value.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    if trimmed.starts_with("{vault://") {
        return Effective::Unknown(Unknown::Vault);
    }
    match (Flavor::named(trimmed), keys.first()) {
        (Some(flavor), _) => Effective::Known(flavor),
        (None, None) => Effective::Invalid(Rejected::Shown(trimmed.to_owned())),
        (None, Some(key)) => Effective::Invalid(Rejected::Hidden(key.clone())),
    }
}

/// The image's entrypoint reads files only if it is not replaced and starts Kong.
fn runs_entrypoint(proxy: &Container) -> bool {
    proxy.command.is_empty() && proxy.args.first().is_none_or(|first| first == "kong")
}

/// A configuration file of the container; the words of a script count like arguments.
fn conf_file(proxy: &Container) -> Option<String> {
    let mut words = proxy.command.iter().chain(&proxy.args).flat_map(|word| word.split_whitespace());
    if words.any(|word| word == "kong" || word.ends_with("/kong")) {
        while let Some(word) = words.next() {
            let named = match word {
                "-c" | "--conf" => words.next(),
                _ => word.strip_prefix("--conf="),
            };
            if let Some(path) = named {
                return Some(path.to_owned());
            }
        }
    }
    let covers = |mount: &str| {
        CONF_FILES
            .iter()
            .any(|file| file.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    let mounts = proxy.volume_mounts.iter().map(|mount| mount.mount_path.trim_end_matches('/'));
    mounts.filter(|mount| !mount.is_empty()).find(|mount| covers(mount)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use crate::data_plane::flavor::reading::FlavorReading;
    use crate::data_plane::flavor::tests::world::{config_map, data_plane, read};

    fn cluster() -> Vec<Value> {
        vec![
            config_map(
                "router",
                json!({"flavor": "expressions", "ROUTER_FLAVOR": " traditional\n", "bad": "s3cret"}),
            ),
            config_map("late", json!({"FLAVOR": "expressions"})),
            config_map("empty", json!({})),
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "kong", "name": "router"},
                "data": {"flavor": "dHJhZGl0aW9uYWw="},
            }),
        ]
    }

    fn reading(container: Value) -> FlavorReading {
        let mut container = container;
        container["name"] = json!("proxy");
        if container.get("image").is_none() {
            container["image"] = json!("kong:3.9");
        }
        read(&data_plane(container, false), &cluster()).spec.reading
    }

    const FLAVOR: &str = "KONG_ROUTER_FLAVOR";
    const DEFAULT: &str = "traditional_compatible";

    fn key(kind: &str, name: &str, key: &str, optional: bool) -> Value {
        json!({"name": FLAVOR, "valueFrom": {kind: {"name": name, "key": key, "optional": optional}}})
    }

    #[rstest]
    #[case::nothing(json!([]), DEFAULT)]
    #[case::value(json!([{"name": FLAVOR, "value": " expressions\n"}]), "expressions")]
    #[case::empty(json!([{"name": FLAVOR, "value": ""}]), "\"\", which is no flavor")]
    #[case::absent_value(json!([{"name": FLAVOR}]), "\"\", which is no flavor")]
    #[case::typo(json!([{"name": FLAVOR, "value": "expression"}]), "\"expression\", which is no flavor")]
    #[case::case_matters(json!([{"name": FLAVOR, "value": "Expressions"}]), "\"Expressions\", which is no flavor")]
    #[case::the_last_counts(json!([{"name": FLAVOR, "value": "traditional"}, {"name": FLAVOR, "value": "expressions"}]), "expressions")]
    #[case::reference(json!([{"name": "A", "value": "press"}, {"name": FLAVOR, "value": "ex$(A)ions"}]), "expressions")]
    #[case::forward_reference(json!([{"name": FLAVOR, "value": "$(A)"}, {"name": "A", "value": "expressions"}]), "\"$(A)\", which is no flavor")]
    #[case::escaped(json!([{"name": "A", "value": "expressions"}, {"name": FLAVOR, "value": "$$(A)"}]), "\"$(A)\", which is no flavor")]
    #[case::to_itself(json!([{"name": FLAVOR, "value": "expressions"}, {"name": FLAVOR, "value": "$(KONG_ROUTER_FLAVOR)"}]), "expressions")]
    #[case::what_lua_calls_a_space(json!([{"name": FLAVOR, "value": "\t\u{b}expressions\r\n"}]), "expressions")]
    #[case::no_space_for_lua(json!([{"name": FLAVOR, "value": "\u{a0}expressions"}]), "\"\\u{a0}expressions\", which is no flavor")]
    #[case::vault(json!([{"name": FLAVOR, "value": "{vault://env/x}"}]), "unknown: it comes from a vault")]
    #[case::config_map(json!([key("configMapKeyRef", "router", "flavor", false)]), "expressions")]
    #[case::secret_decoded_once(json!([key("secretKeyRef", "router", "flavor", false)]), "traditional")]
    #[case::hidden(json!([key("configMapKeyRef", "router", "bad", false)]), "*** (of ConfigMap kong/router key \"bad\"), which is no flavor")]
    #[case::no_key(json!([key("configMapKeyRef", "router", "lost", false)]), "unknown: ConfigMap kong/router key \"lost\" not found")]
    #[case::optional_key(json!([key("configMapKeyRef", "router", "lost", true)]), DEFAULT)]
    #[case::optional_keeps_what_is_there(json!([{"name": FLAVOR, "value": "traditional"}, key("configMapKeyRef", "router", "lost", true)]), "traditional")]
    #[case::not_seen(json!([key("secretKeyRef", "other", "flavor", true)]), "unknown: it comes from Secret kong/other key \"flavor\", which cannot be read here")]
    #[case::own_label(json!([{"name": FLAVOR, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['flavor']"}}}]), "expressions")]
    #[case::pod_field(json!([{"name": FLAVOR, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), "unknown: it comes from fieldRef metadata.name")]
    #[case::resource(json!([{"name": FLAVOR, "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]), "unknown: it comes from a valueFrom that is not known here")]
    #[case::unknown_reference(json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": FLAVOR, "value": "$(A)"}]), "unknown: it comes from fieldRef spec.nodeName")]
    #[case::file(json!([{"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/run/flavor"}]), "unknown: it comes from the file /run/flavor")]
    #[case::file_and_value(json!([{"name": FLAVOR, "value": "expressions"}, {"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/run/flavor"}]), "none, as KONG_ROUTER_FLAVOR and KONG_ROUTER_FLAVOR_FILE are both set")]
    #[case::file_and_empty(json!([{"name": FLAVOR, "value": ""}, {"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/run/flavor"}]), "unknown: it comes from the file /run/flavor")]
    #[case::no_file(json!([{"name": FLAVOR, "value": "expressions"}, {"name": "KONG_ROUTER_FLAVOR_FILE", "value": ""}]), "expressions")]
    fn by_env(#[case] env: Value, #[case] effective: &str) {
        assert_eq!(reading(json!({"env": env})).effective.to_string(), effective);
    }

    #[rstest]
    #[case::prefix(json!([{"prefix": "KONG_", "configMapRef": {"name": "router"}}]), "traditional")]
    #[case::longer_prefix(json!([{"prefix": "KONG_ROUTER_", "configMapRef": {"name": "late"}}]), "expressions")]
    #[case::later_wins(json!([{"prefix": "KONG_", "configMapRef": {"name": "router"}}, {"prefix": "KONG_ROUTER_", "configMapRef": {"name": "late"}}]), "expressions")]
    #[case::other_prefix(json!([{"prefix": "NGINX_", "configMapRef": {"name": "lost"}}]), DEFAULT)]
    #[case::no_key(json!([{"configMapRef": {"name": "empty"}}]), DEFAULT)]
    #[case::not_seen(json!([{"configMapRef": {"name": "lost", "optional": true}}]), "unknown: it comes from ConfigMap kong/lost key \"KONG_ROUTER_FLAVOR\", which cannot be read here")]
    #[case::neither(json!([{"prefix": "KONG_"}]), DEFAULT)]
    fn by_env_from(#[case] env_from: Value, #[case] effective: &str) {
        assert_eq!(reading(json!({"envFrom": env_from})).effective.to_string(), effective);
    }

    #[rstest]
    #[case::env_beats_env_from(json!({"env": [{"name": FLAVOR, "value": "expressions"}], "envFrom": [{"prefix": "KONG_", "configMapRef": {"name": "router"}}]}), "expressions")]
    #[case::before_3_0(json!({"image": "kong:2.8.4", "env": [{"name": FLAVOR, "value": "expressions"}]}), "the router of Kong before 3.0")]
    #[case::no_version(json!({"image": "kong:latest"}), DEFAULT)]
    #[case::own_command(json!({"command": ["kong", "start"], "env": [{"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/x"}]}), DEFAULT)]
    #[case::own_arguments(json!({"args": ["kong", "docker-start"], "env": [{"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/x"}]}), "unknown: it comes from the file /x")]
    #[case::conf_argument(json!({"args": ["kong", "start", "-c", "/conf"]}), "unknown: it may be set in the configuration file /conf")]
    #[case::env_beats_conf(json!({"args": ["kong", "start", "-c", "/conf"], "env": [{"name": FLAVOR, "value": "expressions"}]}), "expressions")]
    #[case::mounted_conf(json!({"volumeMounts": [{"mountPath": "/etc/kong/"}]}), "unknown: it may be set in the configuration file /etc/kong")]
    #[case::other_mount(json!({"volumeMounts": [{"mountPath": "/etc/kong-plugins"}]}), DEFAULT)]
    #[case::conf_in_a_script(json!({"command": ["sh", "-c", "exec kong start -c /conf"]}), "unknown: it may be set in the configuration file /conf")]
    #[case::script(json!({"command": ["sh", "-c", "exec kong start"]}), DEFAULT)]
    #[case::shell(json!({"command": ["sh", "-c", "KONG_ROUTER_FLAVOR=expressions kong start"]}), "unknown: the container's command line names it")]
    #[case::null(json!({"env": null, "envFrom": null, "args": null}), DEFAULT)]
    fn by_container(#[case] container: Value, #[case] effective: &str) {
        assert_eq!(reading(container).effective.to_string(), effective);
    }

    #[test]
    fn only_the_container_named_proxy_counts() {
        let mut plane = data_plane(json!({"name": "proxy", "image": "kong:3.9"}), false);
        let containers = &mut plane["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
        let sidecar =
            json!({"name": "sidecar", "image": "x:1.0", "env": [{"name": FLAVOR, "value": "expressions"}]});
        containers.as_array_mut().unwrap().insert(0, sidecar);
        let reading = read(&plane, &[]).spec.reading;
        assert_eq!(reading.effective.to_string(), DEFAULT);
        assert_eq!(reading.elsewhere, ["sidecar"]);
        let containers = &mut plane["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
        containers.as_array_mut().unwrap().remove(1);
        assert_eq!(
            read(&plane, &[]).spec.reading.effective.to_string(),
            "unknown: no container is called \"proxy\""
        );
    }

    /// Each entry doubles the previous one: no value longer than any flavor is built.
    #[test]
    fn values_that_grow_are_not_followed() {
        let mut env = vec![json!({"name": "A0", "value": "expressions"})];
        for i in 1..5000 {
            env.push(json!({"name": format!("A{i}"), "value": format!("$(A{0})$(A{0})", i - 1)}));
        }
        env.push(json!({"name": FLAVOR, "value": "$(A4999)"}));
        let reading = reading(json!({"env": env}));
        assert_eq!(reading.effective.to_string(), "unknown: its value is longer than 256 bytes");
    }
}
