//! The index of a repository of packages, `index.yaml` (KUDO `kudoctl/util/repo`): which packages there are, and
//! which of them a name means.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use go_template::yaml::{self, YamlError};
use interlock_core::api::suggest;
use semver::Version;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::bundle::PackageBundle;
use super::bundle::field::{PackagedField, WrongType};
use super::versions;
use crate::api::Maintainer;

/// Name of the file, below the address of its repository.
pub const INDEX: &str = "index.yaml";

/// `apiVersion` of an index that is written.
const API_VERSION: &str = "v1";

/// Versions that a message lists.
const LISTED: usize = 8;

/// Why an index cannot be used.
#[derive(Debug, Error)]
pub enum IndexError {
    /// It is not YAML.
    #[error("it is not YAML: {0}")]
    Yaml(#[from] YamlError),
    /// A field has a value of another type.
    #[error("{0}")]
    Type(#[from] WrongType),
    /// It is something else.
    #[error("it has no apiVersion, so it is no index of a repository of KUDO's packages")]
    NoIndex,
    /// An entry is without its version.
    #[error("entries.{name}[{at}] has no operatorVersion, which every package has")]
    NoVersion {
        /// Name of the package.
        name: String,
        /// Place in its list.
        at: usize,
    },
    /// Two entries of one version.
    #[error("two packages are {name} {version}")]
    Twice {
        /// Name of the package.
        name: String,
        version: String,
    },
}

/// Why no package of an index is meant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotIndexed {
    /// There is none of that name.
    #[error("the repository has no package {name}")]
    Name { name: String, remedy: String },
    /// There is none of that version.
    #[error("the repository has no package {name} of {wanted}")]
    Version {
        name: String,
        /// The versions that were asked for.
        wanted: String,
        remedy: String,
    },
}

impl NotIndexed {
    pub fn remedy(&self) -> &str {
        let (Self::Name { remedy, .. } | Self::Version { remedy, .. }) = self;
        remedy
    }
}

/// An entry of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedPackage {
    /// Name of the operator.
    pub name: String,
    pub version: String,
    /// Version of the application.
    pub app_version: Option<String>,
    /// One sentence.
    pub description: Option<String>,
    /// Who keeps it.
    pub maintainers: Vec<Maintainer>,
    /// Addresses of its archive, each of the same.
    pub urls: Vec<String>,
    /// SHA-256 of its archive, in hexadecimal digits.
    pub digest: Option<String>,
}

impl IndexedPackage {
    /// The entry of a package, without addresses and digest.
    pub fn of(package: &PackageBundle) -> Self {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let about = &package.operator["spec"];
        let person = |one: &Value| Maintainer { name: text(&one["name"]), email: text(&one["email"]) };
        let maintainers = about["maintainers"].as_array().into_iter().flatten();
        Self {
            name: package.operator_name.clone(),
            version: package.version.clone(),
            app_version: text(&package.operator_version["spec"]["appVersion"]),
            description: text(&about["description"]),
            maintainers: maintainers.map(person).collect(),
            ..Self::default()
        }
    }

    /// Its name and versions.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.versions())
    }

    /// Its versions, such as `1.3.2` or `1.3.2 (appVersion 2.5.1)`.
    pub fn versions(&self) -> String {
        shown(Some(&self.version), self.app_version.as_deref())
    }

    /// Name of its archive (KUDO `kudoctl/packages/writer`).
    pub fn file_name(&self) -> String {
        let Self { name, version, .. } = self;
        match &self.app_version {
            Some(app_version) => format!("{name}-{app_version}_{version}.tgz"),
            None => format!("{name}-{version}.tgz"),
        }
    }

    fn same_version(&self, other: &Self) -> bool {
        self.version == other.version && self.app_version == other.app_version
    }

    fn read(name: &str, at: usize, entry: &PackagedField<'_>) -> Result<Self, IndexError> {
        let text = |key: &str| Ok::<_, WrongType>(entry.text(key)?.filter(|text| !text.is_empty()));
        let maintainers = entry.list("maintainers")?.unwrap_or_default();
        let maintainer =
            |one: &PackagedField<'_>| Ok(Maintainer { name: one.text("name")?, email: one.text("email")? });
        Ok(Self {
            name: name.to_owned(),
            version: text("operatorVersion")?
                .ok_or_else(|| IndexError::NoVersion { name: name.to_owned(), at })?,
            app_version: text("appVersion")?,
            description: text("description")?,
            maintainers: maintainers.iter().map(maintainer).collect::<Result<_, WrongType>>()?,
            urls: entry.texts("urls")?.unwrap_or_default(),
            digest: text("digest")?,
        })
    }

    fn written(&self) -> Value {
        let mut entry = Map::new();
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(key.to_owned(), value);
            }
        };
        let person = |one: &Maintainer| {
            let fields = [("name", &one.name), ("email", &one.email)].into_iter();
            fields.filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))).collect()
        };
        let maintainers: Vec<Value> = self.maintainers.iter().map(|one| Value::Object(person(one))).collect();
        add("name", Some(json!(self.name)));
        add("operatorVersion", Some(json!(self.version)));
        add("appVersion", self.app_version.as_ref().map(|text| json!(text)));
        add("description", self.description.as_ref().map(|text| json!(text)));
        add("maintainers", (!maintainers.is_empty()).then_some(Value::Array(maintainers)));
        add("urls", Some(json!(self.urls)));
        add("digest", self.digest.as_ref().map(|text| json!(text)));
        Value::Object(entry)
    }
}

/// The packages of a repository, by name; of each the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryIndex {
    packages: BTreeMap<String, Vec<IndexedPackage>>,
}

impl RepositoryIndex {
    pub fn read(text: &str) -> Result<Self, IndexError> {
        let value = yaml::read(text)?;
        let root = PackagedField::root(&value);
        if !value.is_object() || root.text("apiVersion")?.is_none_or(|version| version.is_empty()) {
            return Err(IndexError::NoIndex);
        }
        let mut packages = BTreeMap::new();
        for (name, _) in root.entries("entries")?.unwrap_or_default() {
            let entries = root.get("entries").list(&name)?.unwrap_or_default();
            let read = |(at, entry)| IndexedPackage::read(&name, at, entry);
            let mut versions = entries.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
            versions.sort_by(|one, other| compare(other, one));
            packages.insert(name, versions);
        }
        Ok(Self { packages })
    }

    pub fn of(packages: Vec<IndexedPackage>) -> Result<Self, IndexError> {
        let mut index = Self::default();
        for package in packages {
            let versions = index.packages.entry(package.name.clone()).or_default();
            if versions.iter().any(|known| known.same_version(&package)) {
                return Err(IndexError::Twice { version: package.versions(), name: package.name });
            }
            versions.push(package);
            versions.sort_by(|one, other| compare(other, one));
        }
        Ok(index)
    }

    /// As a file that was made at this time.
    pub fn write(&self, generated: &str) -> String {
        let versions = |all: &Vec<IndexedPackage>| all.iter().map(IndexedPackage::written).collect::<Value>();
        let entries: Map<String, Value> =
            self.packages.iter().map(|(name, all)| (name.clone(), versions(all))).collect();
        yaml::write(&json!({ "apiVersion": API_VERSION, "entries": entries, "generated": generated }))
    }

    /// All packages by name, of each the newest first.
    pub fn packages(&self) -> impl Iterator<Item = &[IndexedPackage]> {
        self.packages.values().map(Vec::as_slice).filter(|versions| !versions.is_empty())
    }

    /// The newest package of this name and these versions, where they are given.
    pub fn find(
        &self,
        name: &str,
        version: Option<&str>,
        app_version: Option<&str>,
    ) -> Result<&IndexedPackage, NotIndexed> {
        let known = self.packages.get(name).map(Vec::as_slice).unwrap_or_default();
        if known.is_empty() {
            let names: Vec<&str> = self.packages.keys().map(String::as_str).collect();
            let remedy = suggest::remedy(name, "packages of the repository", &names);
            let remedy = remedy.unwrap_or_else(|| "give another --repo: this one has no packages".to_owned());
            return Err(NotIndexed::Name { name: name.to_owned(), remedy });
        }
        let fits = |package: &&IndexedPackage| {
            version.is_none_or(|wanted| package.version == wanted)
                && app_version.is_none_or(|wanted| package.app_version.as_deref() == Some(wanted))
        };
        known.iter().find(fits).ok_or_else(|| NotIndexed::Version {
            name: name.to_owned(),
            wanted: shown(version, app_version),
            remedy: format!("name a version that it has: {}", listed(known)),
        })
    }
}

fn shown(version: Option<&str>, app_version: Option<&str>) -> String {
    match (version, app_version) {
        (Some(version), Some(app_version)) => format!("{version} (appVersion {app_version})"),
        (Some(version), None) => version.to_owned(),
        (None, app_version) => format!("appVersion {}", app_version.unwrap_or_default()),
    }
}

fn listed(known: &[IndexedPackage]) -> String {
    let names: Vec<String> = known.iter().take(LISTED).map(IndexedPackage::versions).collect();
    let more = known.len().saturating_sub(LISTED);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("{}{more}", names.join(", "))
}

/// By the version of the application, then by that of the package; what is no version is the oldest. (KUDO calls
/// each of two that are no version less than the other, so that for packages without an application the order of
/// the file decides what is the newest.)
fn compare(one: &IndexedPackage, other: &IndexedPackage) -> Ordering {
    let app = |package: &IndexedPackage| versions::parse(package.app_version.as_deref().unwrap_or_default());
    let own = |package: &IndexedPackage| versions::parse(&package.version);
    precedence(&app(one), &app(other)).then_with(|| precedence(&own(one), &own(other)))
}

fn precedence(one: &Option<Version>, other: &Option<Version>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => one.cmp_precedence(other),
        _ => one.is_some().cmp(&other.is_some()),
    }
}

#[cfg(test)]
mod tests;
