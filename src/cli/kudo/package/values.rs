//! Values of parameters from flags and files (KUDO `pkg/kudoctl/util/params`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use go_template::yaml;
use interlock_core::api::suggest;
use interlock_kudo::api::Parameter;
use interlock_kudo::package::bundle::PackageBundle;
use interlock_kudo::package::parameter_file;
use interlock_kudo::package::parameter_file::ParameterFileError;
use interlock_kudo::package::params;
use serde::Deserialize as _;

use crate::cli::common::error::CliError;

/// Flags for values of parameters.
#[derive(Args, Debug)]
pub(super) struct ParameterFlags {
    /// NAME=VALUE of a parameter; can be repeated, and takes precedence over files.
    #[arg(long = "parameter", short = 'p', visible_alias = "set", value_name = "NAME=VALUE")]
    pub(super) given: Vec<String>,
    /// YAML file of parameters by name; can be repeated, later files take precedence.
    #[arg(long = "parameter-file", short = 'P', value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

/// Values by name: flags take precedence over files, and later files over earlier ones.
pub(super) fn read(given: &[String], files: &[PathBuf]) -> Result<BTreeMap<String, String>, CliError> {
    let mut values = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|error| {
            CliError::usage("the parameter file cannot be read")
                .place(file.display().to_string())
                .why(error.to_string())
        })?;
        values.extend(from_file(file, &text)?);
    }
    for pair in given {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(
                CliError::usage(format!("--parameter {pair} is no parameter")).next("write it as NAME=VALUE")
            );
        };
        if value.is_empty() {
            return Err(CliError::usage(format!("--parameter {pair}: the value is empty"))
                .next(format!("to set an empty value, write `{name}: \"\"` into a --parameter-file")));
        }
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(values)
}

fn from_file(file: &Path, text: &str) -> Result<BTreeMap<String, String>, CliError> {
    let wrong = |what: &str| CliError::usage(what).place(file.display().to_string());
    let read =
        yaml::read(text).map_err(|error| wrong("the parameter file is not YAML").why(error.to_string()))?;
    parameter_file::values(read).map_err(|error| match error {
        ParameterFileError::NotAMapping => wrong("the parameter file is no mapping")
            .next("write a mapping of names to values, such as `REPLICAS: 3`"),
        ParameterFileError::Null(name) => {
            wrong(&format!("parameter {name} is null")).next("write \"\" for an empty value, or leave it out")
        }
    })
}

/// Refuses values that the webhook would refuse, before anything is written: those of parameters that the
/// package does not define, and those of another type.
pub(super) fn check(package: &PackageBundle, values: &BTreeMap<String, String>) -> Result<(), CliError> {
    let parameters = &package.operator_version["spec"]["parameters"];
    let parameters =
        Option::<Vec<Parameter>>::deserialize(parameters).unwrap_or_default().unwrap_or_default();
    let names: Vec<&str> = parameters.iter().filter_map(|parameter| parameter.name.as_deref()).collect();
    let reader = params::reader();
    for (name, value) in values {
        let Some(parameter) = parameters.iter().find(|known| known.name.as_ref() == Some(name)) else {
            let error = CliError::usage(format!("package {} has no parameter {name}", package.operator_name));
            let error = error.next("leave it out: the package has no parameters");
            return Err(error.next_where(suggest::remedy(name, "parameters", &names)));
        };
        if let Some(problem) = params::check(&reader, parameter, Some(value)) {
            let shown = params::display(Some(parameter), value);
            return Err(CliError::usage(format!("parameter {name} {}, not {shown:?}", wanted(parameter)))
                .next(problem.remedy));
        }
    }
    Ok(())
}

/// What a value has to be.
fn wanted(parameter: &Parameter) -> String {
    if let Some(values) = parameter.enum_.as_ref().filter(|values| !values.is_empty()) {
        return format!("must be one of {}", values.join(", "));
    }
    let article = match parameter.value_type.as_deref() {
        Some("integer") => "an integer",
        Some("array") => "an array",
        Some("number") => "a number",
        Some("boolean") => "a boolean",
        Some("map") => "a map",
        _ => "a value that the package allows",
    };
    format!("must be {article}")
}

/// Whether every required parameter has a value.
pub(super) fn complete(package: &PackageBundle, values: &BTreeMap<String, String>) -> Result<(), CliError> {
    let missing: Vec<_> =
        package.must_be_given.iter().filter(|name| !values.contains_key(*name)).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(CliError::usage(format!("missing required parameters during installation: {}", missing.join(",")))
        .next("give each as --parameter NAME=VALUE"))
}

#[cfg(test)]
mod tests {
    use interlock_kudo::package::bundle::PackageFiles;
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
    #[case("a", "error: --parameter a is no parameter\n  next:  write it as NAME=VALUE\n")]
    #[case("=a", "error: --parameter =a is no parameter\n  next:  write it as NAME=VALUE\n")]
    #[case("a=", "error: --parameter a=: the value is empty\n  next:  to set an empty value, write `a: ")]
    fn what_is_wrong_is_named(#[case] pair: &str, #[case] text: &str) {
        let error = read(&[pair.to_owned()], &[]).unwrap_err().text();
        assert!(error.starts_with(text), "{error}");
    }

    #[rstest]
    #[case("- a", "error: the parameter file is no mapping\n  where: p.yaml\n")]
    #[case("a: null", "error: parameter a is null\n  where: p.yaml\n")]
    #[case("a: [", "error: the parameter file is not YAML\n  where: p.yaml\n")]
    fn files_that_are_wrong_are_named(#[case] text: &str, #[case] wanted: &str) {
        let error = from_file(Path::new("p.yaml"), text).unwrap_err().text();
        assert!(error.starts_with(wanted), "{error}");
    }

    fn package() -> PackageBundle {
        let parameters = "parameters:
- {name: REPLICAS, type: integer}
- {name: RATIO, type: number}
- {name: TLS, type: boolean}
- {name: DISK, enum: [fast, slow]}
- {name: HOSTS, type: array}
- {name: PASSWORD}
";
        let files = PackageFiles {
            operator: "name: shop\noperatorVersion: 1.0.0\n".to_owned(),
            params: parameters.to_owned(),
            ..PackageFiles::default()
        };
        PackageBundle::read(&files, |_, _| Vec::new()).unwrap()
    }

    #[rstest]
    #[case::fits("REPLICAS", "3", "")]
    #[case::any_text("PASSWORD", "three", "")]
    #[case::integer(
        "REPLICAS",
        "three",
        "parameter REPLICAS must be an integer, not \"three\"\n  next:  set spec.parameters.REPLICAS to a whole number, \
         such as 3"
    )]
    #[case::number("RATIO", "half", "parameter RATIO must be a number, not \"half\"")]
    #[case::boolean("TLS", "on", "parameter TLS must be a boolean, not \"on\"")]
    #[case::listed("DISK", "medium", "parameter DISK must be one of fast, slow, not \"medium\"")]
    #[case::hidden("HOSTS", "s3cret", "parameter HOSTS must be an array, not \"***\"")]
    #[case::unknown("REPLICS", "3", "package shop has no parameter REPLICS\n  next:  did you mean REPLICAS?")]
    #[case::lower_case(
        "password",
        "x",
        "package shop has no parameter password\n  next:  did you mean PASSWORD?"
    )]
    fn values_that_the_webhook_would_refuse(#[case] name: &str, #[case] value: &str, #[case] expected: &str) {
        let values = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let found = check(&package(), &values).err().map(|error| error.text()).unwrap_or_default();
        match expected {
            "" => assert_eq!(found, ""),
            expected => assert!(found.starts_with(&format!("error: {expected}")), "{found}"),
        }
        assert!(!found.contains("strconv"), "{found}");
    }
}
