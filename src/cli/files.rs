//! Objects from files and folders.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

use crate::api::object::ObjectKey;
use crate::template::yaml;

/// What can be read.
const READABLE: &str = "give a file of YAML or JSON, or - for standard input";

/// The one object of a file.
pub(super) fn read_one(path: &Path) -> anyhow::Result<Value> {
    let objects = parse(path, &text_of(path)?)?;
    match <[Value; 1]>::try_from(objects) {
        Ok([object]) => Ok(object),
        Err(objects) => bail!("{} holds {} objects: give a file with one", path.display(), objects.len()),
    }
}

/// The objects of a file, or of all YAML and JSON files of a folder and its folders.
pub(super) fn read_all(path: &Path) -> anyhow::Result<Vec<Value>> {
    if !path.is_dir() {
        return parse(path, &text_of(path)?);
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(|error| {
        anyhow!("{} cannot be read: {error}; give a folder that you may read", path.display())
    })?;
    entries.sort_by_key(fs::DirEntry::path);
    let mut objects = Vec::new();
    for entry in entries.iter().map(fs::DirEntry::path) {
        let known = entry.extension().is_some_and(|e| ["yaml", "yml", "json"].iter().any(|k| e == *k));
        if known || entry.is_dir() {
            objects.extend(read_all(&entry)?);
        }
    }
    Ok(objects)
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

/// Documents that are objects; a List stands for its items.
fn parse(path: &Path, text: &str) -> anyhow::Result<Vec<Value>> {
    let documents = match serde_json::from_str(text) {
        Ok(value) => vec![value],
        Err(_) => {
            yaml::documents(text).with_context(|| format!("{} is neither YAML nor JSON", path.display()))?
        }
    };
    let mut objects = Vec::new();
    for document in documents {
        if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
            && let Some(items) = document["items"].as_array()
        {
            objects.extend(items.iter().cloned());
        } else if document.get("metadata").is_some() || ObjectKey::of(&document).is_some() {
            objects.push(document);
        } else {
            bail!(
                "{} holds a document that is no Kubernetes object: give it apiVersion, kind and metadata, or leave it out",
                path.display()
            );
        }
    }
    Ok(objects)
}
