//! Real packages: every template is read, and rendered with the parameters' defaults.

use std::path::{Path, PathBuf};

use go_template::{Never, Root, Value, yaml};
use interlock_core::package::functions;

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
fn params(operator: &Path) -> Value {
    let text = std::fs::read_to_string(operator.join("params.yaml")).unwrap_or_default();
    let file = yaml::read(&text).expect("params.yaml is YAML");
    let params = file["parameters"].as_array().cloned().unwrap_or_default();
    params
        .iter()
        .map(|param| {
            let default = match &param["default"] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                other => yaml::write(other),
            };
            let value = match param["type"].as_str() {
                Some("array" | "map") => Value::from(yaml::read(&default).expect("the default is YAML")),
                _ => Value::from(default.trim_end_matches('\n')),
            };
            (param["name"].as_str().unwrap_or_default().to_owned(), value)
        })
        .collect()
}

#[test]
fn templates_of_real_packages_are_read_and_rendered() {
    let Some(packages) = shared::find("packages") else { return };
    let entries = std::fs::read_dir(&packages).expect("a folder");
    let (mut read, mut wrong) = (0, Vec::new());
    for operator in entries.flatten().map(|entry| entry.path().join("operator")) {
        let mut templates = Vec::new();
        files(&operator.join("templates"), &mut templates);
        let params = params(&operator);
        for path in templates {
            let text = std::fs::read_to_string(&path).expect("a template is text");
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            read += 1;
            let roots =
                ["Name", "Namespace", "OperatorName", "AppVersion", "PlanName", "StepName", "PhaseName"];
            let mut root: std::collections::BTreeMap<String, Value> =
                roots.iter().map(|root| ((*root).to_owned(), Value::from("x"))).collect();
            root.insert("Params".to_owned(), params.clone());
            let pipes = [("NodeConfig", "x"), ("indexHtml", "x"), ("certificate", "x")];
            root.insert("Pipes".to_owned(), pipes.into_iter().collect());
            let result = functions::parse(&name, &text)
                .map_err(|error| error.to_string())
                .and_then(|template| {
                    template.render(&Root::from(&Value::Map(root)), &Never).map_err(|error| error.to_string())
                })
                .and_then(|text| yaml::documents(&text).map_err(|error| error.to_string()));
            if let Err(error) = result {
                wrong.push(format!("{}: {error}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {read}:\n{}", wrong.len(), wrong.join("\n"));
}
