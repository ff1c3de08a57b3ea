//! Objects from files and folders.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use go_template::yaml::{self, YamlProblem};
use serde_json::Value;

/// The readable inputs, for messages.
pub(in crate::cli) const READABLE: &str = "give a file of YAML or JSON, or - for standard input";

/// The one object of a file.
pub(in crate::cli) fn read_one(path: &Path) -> anyhow::Result<Value> {
    let objects = parse(path, &text_of(path)?)?;
    match <[Value; 1]>::try_from(objects) {
        Ok([object]) => Ok(object),
        Err(objects) => bail!("{} holds {} objects: give a file with one", path.display(), objects.len()),
    }
}

/// The objects of a file, or of all YAML and JSON files of a folder and its folders.
pub(in crate::cli) fn read_all(path: &Path) -> anyhow::Result<Vec<Value>> {
    if !path.is_dir() {
        return parse(path, &text_of(path)?);
    }
    let mut objects = Vec::new();
    for entry in entries(path)? {
        if is_manifest(&entry) || entry.is_dir() {
            objects.extend(read_all(&entry)?);
        }
    }
    Ok(objects)
}

/// The entries of a folder, sorted.
pub(in crate::cli) fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| {
        anyhow!("{} cannot be read: {error}; give a folder that you may read", folder.display())
    })?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    Ok(paths)
}

/// Whether a file of a folder is read.
pub(in crate::cli) fn is_manifest(file: &Path) -> bool {
    file.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    text.map_err(|error| anyhow!("{} cannot be read: {error}; {READABLE}", path.display()))
}

/// Objects of a file that may lack metadata, as those of a test do.
pub(in crate::cli) fn read_bare(path: &Path) -> anyhow::Result<Vec<Value>> {
    let values = values(path, &text_of(path)?)?.into_iter();
    let values = values.map(|(what, value)| {
        if !value["kind"].is_string() {
            bail!("{} holds {what} without a kind: give it apiVersion and kind", path.display());
        }
        Ok(value)
    });
    values.collect()
}

/// Documents that are objects; a List counts as its items.
fn parse(path: &Path, text: &str) -> anyhow::Result<Vec<Value>> {
    let values = values(path, text)?.into_iter();
    values.map(|(what, value)| object(path, &what, value)).collect()
}

/// What a file holds, and what to call each in a message; a List counts as its items.
fn values(path: &Path, text: &str) -> anyhow::Result<Vec<(String, Value)>> {
    // One value, or one a line.
    let json: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let documents = match json {
        Ok(documents) => documents,
        Err(_) => {
            let place = path.display();
            yaml::documents(text).map_err(|error| match error.problem {
                YamlProblem::TooLarge => {
                    anyhow!("{place} is too large for YAML: {error}; give the same as JSON")
                }
                _ => anyhow!("{place} is neither YAML nor JSON: {error}"),
            })?
        }
    };
    let mut values = Vec::new();
    for mut document in documents {
        let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        if is_list && document.get("items").is_some_and(Value::is_null) {
            continue;
        }
        match document.get_mut("items").and_then(Value::as_array_mut).filter(|_| is_list) {
            Some(items) => {
                let items = std::mem::take(items).into_iter().enumerate();
                values.extend(items.map(|(i, item)| (format!("items[{i}]"), item)));
            }
            None => values.push(("a document".to_owned(), document)),
        }
    }
    Ok(values)
}

/// Members of `metadata` that the rules read as text.
const TEXTS: [&str; 6] = ["name", "generateName", "namespace", "uid", "resourceVersion", "deletionTimestamp"];

/// Validates an object, so that readers may rely on its metadata.
pub(in crate::cli) fn object(path: &Path, what: &str, value: Value) -> anyhow::Result<Value> {
    let kind = value["kind"].as_str().map(|kind| format!(" of kind {kind}")).unwrap_or_default();
    let holds = || format!("{} holds {what}{kind}", path.display());
    let Some(metadata) = value.get("metadata") else {
        bail!(
            "{} that is no Kubernetes object: give it apiVersion, kind and metadata, or leave it out",
            holds()
        );
    };
    let Value::Object(metadata) = metadata else {
        bail!("{} whose metadata is {}: write a mapping with a name in it", holds(), shown(metadata));
    };
    let given = |field: &str| metadata.get(field).filter(|value| !value.is_null());
    for field in TEXTS {
        if let Some(other) = given(field).filter(|value| !value.is_string()) {
            bail!(
                "{} whose metadata.{field} is {}: write a string, in quotes where YAML takes it for something else",
                holds(),
                shown(other)
            );
        }
    }
    if !["name", "generateName"].iter().any(|field| given(field).is_some_and(|name| name != "")) {
        bail!("{} that has no name: give it metadata.name or metadata.generateName", holds());
    }
    Ok(value)
}

/// The start of a value that may be long.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> anyhow::Result<Vec<Value>> {
        parse(Path::new("a.yaml"), text)
    }

    #[rstest]
    #[case::one("metadata: {name: a}", 1)]
    #[case::generated("metadata: {generateName: a-}", 1)]
    #[case::cluster_scoped("metadata: {name: a, namespace: null}", 1)]
    #[case::two("metadata: {name: a}\n---\nmetadata: {name: b}", 2)]
    #[case::list("kind: List\nmetadata: {resourceVersion: \"\"}\nitems: [{metadata: {name: a}}]", 1)]
    #[case::empty_list("kind: List\nitems: []", 0)]
    #[case::null_list("kind: List\nitems: null", 0)]
    #[case::like_a_list("kind: AllowList\nmetadata: {name: a}", 1)]
    #[case::json(r#"{"metadata": {"name": "a"}}"#, 1)]
    #[case::json_lines("{\"metadata\": {\"name\": \"a\"}}\n{\"metadata\": {\"name\": \"b\"}}\n", 2)]
    #[case::nothing("", 0)]
    fn objects(#[case] text: &str, #[case] count: usize) {
        let objects = parsed(text).unwrap();
        assert_eq!(objects.len(), count);
        assert!(objects.iter().all(|object| object["metadata"].is_object()));
    }

    #[rstest]
    #[case::number(
        "5",
        "holds a document that is no Kubernetes object: give it apiVersion, kind and metadata"
    )]
    #[case::no_metadata("kind: Pod", "holds a document of kind Pod that is no Kubernetes object")]
    #[case::item("kind: List\nitems: [5]", "holds items[0] that is no Kubernetes object")]
    #[case::metadata_is_a_number("metadata: 7", "whose metadata is 7: write a mapping")]
    #[case::metadata_is_text("metadata: x", "whose metadata is \"x\": write a mapping")]
    #[case::metadata_is_a_list("metadata: []", "whose metadata is []: write a mapping")]
    #[case::metadata_is_a_word("metadata: true", "whose metadata is true: write a mapping")]
    #[case::metadata_is_null("metadata: ~", "whose metadata is null: write a mapping")]
    #[case::metadata_of_an_item(
        "kind: List\nitems: [{metadata: {name: a}}, {kind: Pod, metadata: 7}]",
        "holds items[1] of kind Pod whose metadata is 7"
    )]
    #[case::name("metadata: {name: 2024}", "whose metadata.name is 2024: write a string, in quotes")]
    #[case::namespace(
        "metadata: {name: a, namespace: on}",
        "whose metadata.namespace is true: write a string"
    )]
    #[case::generate_name(
        "metadata: {generateName: {}}",
        "whose metadata.generateName is {}: write a string"
    )]
    #[case::no_name("metadata: {namespace: a}", "that has no name: give it metadata.name or")]
    #[case::empty_name("metadata: {name: \"\"}", "that has no name: give it metadata.name or")]
    #[case::item_without_a_name(
        "kind: List\nitems: [{kind: Pod, metadata: {}}]",
        "holds items[0] of kind Pod that has no name"
    )]
    fn what_is_no_object_is_named(#[case] text: &str, #[case] api_message: &str) {
        let error = parsed(text).unwrap_err().to_string();
        assert!(error.starts_with("a.yaml holds ") && error.contains(api_message), "{error}");
    }

    #[test]
    fn a_long_value_is_cut() {
        let error = parsed(&json!({"metadata": "x".repeat(1000)}).to_string()).unwrap_err().to_string();
        assert!(error.len() < 200, "{error}");
    }
}
