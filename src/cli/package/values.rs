//! Values of parameters from flags and files (KUDO `pkg/kudoctl/util/params`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use go_template::yaml;
use serde_json::Value;

use interlock_core::package::bundle::{PackageBundle, parameter_text};

/// Values by name: flags take precedence over files, and later files over earlier ones.
pub(super) fn read(given: &[String], files: &[PathBuf]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for file in files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        values.extend(from_file(file, &text)?);
    }
    for pair in given {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            bail!("--parameter {pair}: write it as NAME=VALUE");
        };
        if value.is_empty() {
            bail!(
                "--parameter {pair}: the value is empty; to set an empty value, write `{name}: \"\"` into a --parameter-file"
            );
        }
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(values)
}

fn from_file(file: &Path, text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let at = || file.display();
    let members = match yaml::read(text).with_context(|| at().to_string())? {
        Value::Object(members) => members,
        Value::Null => return Ok(BTreeMap::new()),
        _ => bail!("{}: a parameter file is a mapping of names to values", at()),
    };
    let mut values = BTreeMap::new();
    for (name, value) in members {
        let kind = match value {
            Value::Object(_) => "map",
            Value::Array(_) => "array",
            _ => "string",
        };
        let Some(text) = parameter_text(&value, kind) else {
            bail!("{}: {name} is null; write \"\" for an empty value, or leave it out", at());
        };
        values.insert(name, text);
    }
    Ok(values)
}

/// Whether every required parameter has a value.
pub(super) fn complete(package: &PackageBundle, values: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let missing: Vec<_> =
        package.must_be_given.iter().filter(|name| !values.contains_key(*name)).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "missing required parameters during installation: {}; give each as --parameter NAME=VALUE",
        missing.join(",")
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn files_are_read_as_kudo_reads_them() {
        let text = "x: 1000000\nm: {a: 1}\nb: true\nf: 1.50\ns: \"\"\nl: [1, a]\n";
        let values = from_file(Path::new("p.yaml"), text).unwrap();
        let pairs: Vec<_> = values.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            pairs,
            [("b", "true"), ("f", "1.5"), ("l", "- 1\n- a\n"), ("m", "a: 1\n"), ("s", ""), ("x", "1e+06")]
        );
    }

    #[test]
    fn flags_come_before_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("p.yaml");
        std::fs::write(&file, "a: 1\nb: 2\n").unwrap();
        let values = read(&["a=x=y".to_owned()], &[file]).unwrap();
        assert_eq!(values["a"], "x=y");
        assert_eq!(values["b"], "2");
    }

    #[rstest]
    #[case("a", "--parameter a: write it as NAME=VALUE")]
    #[case("=a", "--parameter =a: write it as NAME=VALUE")]
    #[case("a=", "--parameter a=: the value is empty")]
    fn what_is_wrong_is_named(#[case] pair: &str, #[case] text: &str) {
        let error = read(&[pair.to_owned()], &[]).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }

    #[rstest]
    #[case("- a", "p.yaml: a parameter file is a mapping of names to values")]
    #[case("a: null", "p.yaml: a is null;")]
    fn files_that_are_wrong_are_named(#[case] text: &str, #[case] wanted: &str) {
        let error = from_file(Path::new("p.yaml"), text).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}
