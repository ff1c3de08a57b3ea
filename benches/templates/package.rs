//! The real package with the most bytes of templates.

use std::collections::BTreeMap;
use std::path::Path;

use go_template::yaml;
use interlock_kudo::engine::tasks;
use interlock_kudo::package::bundle::{PackageBundle, PackageFiles};
use serde_json::{Map, Value, json};

use crate::shared;

/// A package, and what its templates are rendered with.
pub struct Package {
    /// Its folder.
    pub name: String,
    /// File names and texts.
    pub templates: Vec<(String, String)>,
    /// The values.
    pub data: Value,
}

impl Package {
    /// `None` = no real packages are there, which is printed.
    pub fn largest() -> Option<Self> {
        let folders = std::fs::read_dir(shared::find("packages")?).expect("a folder");
        let found = folders.map(|entry| entry.expect("a package").path());
        let found = found.filter(|folder| folder.join("operator").is_dir()).map(|folder| Self::of(&folder));
        found
            .max_by_key(|package| package.templates.iter().map(|(_, template)| template.len()).sum::<usize>())
    }

    fn of(folder: &Path) -> Self {
        let operator = folder.join("operator");
        let text = |name: &str| std::fs::read_to_string(operator.join(name)).expect("a file of a package");
        let mut templates = BTreeMap::new();
        files(&operator.join("templates"), "", &mut templates);
        let source = PackageFiles { operator: text("operator.yaml"), params: text("params.yaml"), templates };
        let packaged = PackageBundle::read(&source, tasks::client_problems).expect("a package");
        let spec = &packaged.operator_version["spec"];
        let data = json!({
            "Name": "demo", "Namespace": "team",
            "OperatorName": spec["operator"]["name"], "OperatorVersion": spec["version"],
            "AppVersion": spec["appVersion"].as_str().unwrap_or_default(),
            "PlanName": "deploy", "PhaseName": "nodes", "StepName": "node",
            "Params": defaults(&spec["parameters"]), "Pipes": {"NodeConfig": "a", "certificate": "b"},
        });
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, templates: source.templates.into_iter().collect(), data }
    }
}

/// Lists and maps by their type, all else as text.
fn defaults(parameters: &Value) -> Map<String, Value> {
    let value = |parameter: &Value| {
        let text = parameter["default"].as_str().unwrap_or_default();
        match parameter["value-type"].as_str() {
            Some("array" | "map") => yaml::read(text).expect("the default is YAML"),
            _ => text.into(),
        }
    };
    let all = parameters.as_array().map_or(&[][..], Vec::as_slice);
    all.iter().map(|p| (p["name"].as_str().unwrap_or_default().to_owned(), value(p))).collect()
}

fn files(folder: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("a file")) {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, std::fs::read_to_string(entry.path()).expect("a template is text"));
        }
    }
}
