//! `interlock package install --dry-run`: the objects that an installation would make, for a repository from which
//! others apply them, or as the API server would store them.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use go_template::yaml;
use interlock_core::api::object::meta_str;
use serde_json::{Value, json};

use super::dependencies::PackageTree;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// As kubectl's flags of these names.
#[derive(Args, Debug)]
pub(super) struct DryRunFlags {
    /// Write nothing. `client` prints the objects without asking a cluster, in an order in which they can be
    /// applied; `server` asks the API server and its admission about each.
    #[arg(long, value_enum, value_name = "client|server", conflicts_with = "wait")]
    pub(super) dry_run: Option<DryRun>,
    /// Format of the objects of a dry-run; without it, a line for each.
    #[arg(long, short, value_enum, requires = "dry_run")]
    output: Option<Form>,
    /// Escape the braces of the package's templates, so that the output can be a file in the folder
    /// `templates` of a Helm chart.
    #[arg(long, requires = "output")]
    helm: bool,
}

/// Where the objects of a dry-run come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DryRun {
    /// The package alone.
    Client,
    /// The API server.
    Server,
}

/// The form of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Yaml,
    Json,
}

/// The objects of an installation, each before those that refer to it; with a namespace only where one is given, as
/// kubectl does it. `instance`: its name and parameters.
pub(super) fn objects(
    tree: &PackageTree,
    instance: Option<(&str, &BTreeMap<String, String>)>,
    namespace: Option<&str>,
) -> Vec<Value> {
    let packages = tree.installed.iter().chain([&tree.package]);
    let packages = packages.flat_map(|package| [&package.operator, &package.operator_version]).cloned();
    let instance = instance.map(|(name, parameters)| tree.package.instance(name, parameters));
    let mut all: Vec<Value> = Vec::new();
    for mut object in packages.chain(instance) {
        strip(&mut object);
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        // Two versions of a package have one Operator.
        let key = |object: &Value| (object["kind"].clone(), object["metadata"]["name"].clone());
        if !all.iter().any(|known| key(known) == key(&object)) {
            all.push(object);
        }
    }
    all
}

/// Takes out what says nothing: KUDO's client writes empty fields, which appliers that compare would find again and again.
fn strip(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(strip);
        members.retain(|name, member| !(member.is_null() || name == "status" && *member == json!({})));
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(strip);
    }
}

impl DryRunFlags {
    /// Prints what would be made.
    pub(super) fn print(&self, objects: &[Value]) -> Result<(), CliError> {
        match self.output {
            None => objects.iter().try_for_each(|object| output::line(&self.said(object))),
            Some(form) => output::print(&self.text(form, objects)),
        }
    }

    fn said(&self, object: &Value) -> String {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        let by = if self.dry_run == Some(DryRun::Server) { "server dry run" } else { "dry run" };
        format!("{kind} {} created ({by})", meta_str(object, "name").unwrap_or_default())
    }

    fn text(&self, form: Form, objects: &[Value]) -> String {
        let text = match form {
            Form::Yaml => objects.iter().map(|object| format!("---\n{}", yaml::write(object))).collect(),
            Form::Json => {
                let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects});
                format!("{list:#}\n")
            }
        };
        // Only opening braces begin an action.
        if self.helm { text.replace("{{", r#"{{ "{{" }}"#) } else { text }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::kudo::package::dependencies;
    use crate::cli::kudo::package::source::{Place, Sources};

    fn first() -> PackageTree {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/first/operator");
        dependencies::read(&mut Sources::default(), &Place::Folder(folder)).unwrap()
    }

    #[test]
    fn each_object_comes_before_those_that_refer_to_it_and_says_nothing_empty() {
        let parameters = [("GREETING".to_owned(), "Hi".to_owned())].into();
        let all = objects(&first(), Some(("demo", &parameters)), None);
        let kinds: Vec<&str> = all.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["Operator", "OperatorVersion", "Instance"]);
        assert!(all.iter().all(|object| object["metadata"].get("namespace").is_none()));
        assert!(!all.iter().any(|object| object.to_string().contains("null")), "{all:#?}");
        assert_eq!(all[2]["spec"]["parameters"]["GREETING"], "Hi");
        let placed = objects(&first(), None, Some("team"));
        assert_eq!(placed.len(), 2);
        assert!(placed.iter().all(|object| object["metadata"]["namespace"] == "team"));
    }

    #[test]
    fn helm_is_given_braces_that_it_leaves() {
        let flags = |helm| DryRunFlags { dry_run: Some(DryRun::Client), output: Some(Form::Yaml), helm };
        let objects = [json!({"templates": {"a": "x: {{ .Name }}\n"}})];
        assert!(flags(false).text(Form::Yaml, &objects).contains("x: {{ .Name }}"));
        assert!(flags(true).text(Form::Yaml, &objects).contains(r#"x: {{ "{{" }} .Name }}"#));
    }
}
