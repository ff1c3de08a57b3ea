//! What is known of kinds: which fields say that one is being changed, as data.

use std::time::Duration;

use serde::Deserialize;

use crate::api::BusyWhen;

/// A preset, as its file has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preset {
    /// Its name, a DNS label.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What says what the fields mean.
    pub source: String,
    /// The kinds that it is for.
    pub kinds: Vec<PresetKind>,
    /// What may not change while an object is busy.
    pub paths: Vec<String>,
    /// What of that may.
    #[serde(default)]
    pub except: Vec<String>,
    /// When an object is busy: where any of these is true.
    pub busy: Vec<BusyWhen>,
    /// How long an object may be busy before a change is only warned of.
    #[serde(deserialize_with = "duration")]
    pub patience: Duration,
    /// What it cannot know.
    #[serde(default)]
    pub notes: String,
}

/// A kind of a preset.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PresetKind {
    /// The API group.
    #[serde(default)]
    pub group: Option<String>,
    /// In place of it, how the groups of a family end.
    #[serde(default)]
    pub group_suffix: Option<String>,
    /// The kind; `*` = all of these groups.
    pub kind: String,
    /// The plural; none for `*`.
    #[serde(default)]
    pub resource: Option<String>,
    /// The versions, of which the first that is served is guarded; empty = any.
    #[serde(default)]
    pub versions: Vec<String>,
}

impl Preset {
    /// Whether it is for a kind.
    pub fn is_for(&self, group: &str, kind: &str) -> bool {
        self.kinds.iter().any(|own| own.is(group, kind))
    }
}

impl Preset {
    /// The plural of a kind of it.
    pub fn resource(&self, group: &str, kind: &str) -> Option<&str> {
        self.kinds.iter().find(|own| own.is(group, kind))?.resource.as_deref()
    }
}

impl PresetKind {
    fn is(&self, group: &str, kind: &str) -> bool {
        let is_named = self.group.as_ref().is_some_and(|own| own == group);
        let is_of_family = self.group_suffix.as_ref().is_some_and(|suffix| group.ends_with(suffix.as_str()));
        (is_named || is_of_family) && (self.kind == "*" || self.kind == kind)
    }
}

impl std::fmt::Display for PresetKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.group, &self.group_suffix) {
            (Some(group), _) => write!(f, "{group}/{}", self.kind),
            (None, suffix) => write!(f, "*{}/{}", suffix.as_deref().unwrap_or_default(), self.kind),
        }
    }
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    use serde::de::Error as _;
    let text = String::deserialize(deserializer)?;
    let parsed: jiff::SignedDuration = text.parse().map_err(D::Error::custom)?;
    Duration::try_from(parsed).map_err(D::Error::custom)
}
