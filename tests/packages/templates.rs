//! The templates of real packages, with the values that they are rendered with.

use std::path::{Path, PathBuf};

use go_template::yaml;
use serde_json::{Map, Value, json};

use crate::compared::Pair;
use crate::shared;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Parameters as KUDO turns them into values: lists and maps by their type, all else as text.
fn params(operator: &Path) -> Map<String, Value> {
    let text = std::fs::read_to_string(operator.join("params.yaml")).unwrap_or_default();
    let file = yaml::read(&text).expect("params.yaml is YAML");
    let params = file["parameters"].as_array().cloned().unwrap_or_default();
    params
        .iter()
        .map(|param| {
            let default = match &param["default"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => yaml::write(other),
            };
            let value = match param["type"].as_str() {
                Some("array" | "map") => yaml::read(&default).expect("the default is YAML"),
                _ => default.trim_end_matches('\n').into(),
            };
            (param["name"].as_str().unwrap_or_default().to_owned(), value)
        })
        .collect()
}

/// Every template of every package, with the defaults of its parameters. `None` = they are not there.
pub fn all() -> Option<Vec<Pair>> {
    let packages = shared::find("packages")?;
    let mut pairs = Vec::new();
    for operator in
        std::fs::read_dir(&packages).expect("a folder").flatten().map(|entry| entry.path().join("operator"))
    {
        let mut templates = Vec::new();
        files(&operator.join("templates"), &mut templates);
        let data = json!({
            "Name": "demo", "Namespace": "team", "OperatorName": "operator", "AppVersion": "1.2.3",
            "OperatorVersion": "0.1.0", "PlanName": "deploy", "PhaseName": "nodes", "StepName": "node",
            "Params": params(&operator),
            "Pipes": {"NodeConfig": "a", "indexHtml": "b", "certificate": "c"},
        });
        for path in templates {
            let template = std::fs::read_to_string(&path).expect("a template is text");
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            pairs.push(Pair { name, template, data: data.clone() });
        }
    }
    Some(pairs)
}

#[test]
fn templates_of_real_packages_are_read_and_rendered() {
    let Some(pairs) = all() else { return };
    let wrong: Vec<String> = pairs
        .iter()
        .filter_map(|pair| {
            let text = pair.render().map(|text| yaml::documents(&text).map_err(|error| error.to_string()));
            text.and_then(|documents| documents).err().map(|error| format!("{}: {error}", pair.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), pairs.len(), wrong.join("\n"));
}
