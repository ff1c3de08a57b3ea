//! `interlock package verify`: what is wrong with a package, and what changes when it is carried out. Without a
//! cluster.

use std::process::ExitCode;

use interlock_core::api::object::NamespacedName;
use interlock_kudo::engine::removed_apis::RemovedApi;
use interlock_kudo::engine::trial::TrialFindings as Findings;
use interlock_kudo::engine::validate::Problems;
use interlock_kudo::engine::{rendered_kinds, tasks, validate};
use interlock_kudo::package::Package;
use interlock_kudo::package::bundle::PackageBundle;

use super::dependencies;
use super::dependencies::PackageTree;
use super::source::{Place, SourceFlags, Sources};
use crate::cli::common::error::CliError;
use crate::cli::common::{exit, output};
use crate::cli::kudo::rendering;

/// A package as it was verified.
struct Verified {
    /// Its name and version, or where it is if they cannot be read.
    package: String,
    /// Why it cannot be carried out, and what fails where it is used or is carried out otherwise than it is written.
    findings: Findings,
}

/// Runs the command: 0 for a package without errors, 1 for one with some, 2 where it cannot be read.
pub(super) fn main(flags: &SourceFlags) -> ExitCode {
    let verified = Sources::of(flags).and_then(|(mut sources, place)| verify(&mut sources, &place));
    exit::decided(verified.map_err(anyhow::Error::from).and_then(|verified| {
        output::text(&verified.text())?;
        Ok(verified.findings.errors.is_empty())
    }))
}

fn verify(sources: &mut Sources, place: &Place) -> Result<Verified, CliError> {
    let files = place.files()?;
    Ok(match PackageBundle::read(&files, tasks::client_problems) {
        Ok(bundle) => {
            let findings = dependencies::read(sources, place).and_then(|tree| whole(&tree));
            Verified { package: title(&bundle), findings: findings.unwrap_or_else(|error| unread(&error)) }
        }
        Err(error) => Verified { package: place.to_string(), findings: unread(&error) },
    })
}

/// What is said of a package that cannot be read, or whose children cannot be.
fn unread(error: &dyn std::error::Error) -> Findings {
    Findings { errors: error.to_string().lines().map(str::to_owned).collect(), warnings: Vec::new() }
}

fn title(bundle: &PackageBundle) -> String {
    format!("{} {}", bundle.operator_name, bundle.version)
}

/// What a package is like with those that it installs.
fn whole(tree: &PackageTree) -> Result<Findings, CliError> {
    let package = |bundle: &PackageBundle| {
        let name = NamespacedName::new("", &bundle.operator_version_name);
        Ok::<_, CliError>(Package::new(name, dependencies::spec(&tree.place, bundle)?))
    };
    let mut whole = findings(&package(&tree.package)?);
    for bundle in &tree.installed {
        let below = |found: String| format!("package {}: {found}", title(bundle));
        let Findings { errors, warnings } = findings(&package(bundle)?);
        whole.errors.extend(errors.into_iter().map(below));
        whole.warnings.extend(warnings.into_iter().map(below));
    }
    whole.warnings.extend(tree.elsewhere.iter().map(|name| {
        format!("OperatorVersion {name} has to be in the namespace before: a task installs it, and names no folder of it")
    }));
    Ok(whole)
}

impl Verified {
    fn text(&self) -> String {
        let Findings { errors, warnings } = &self.findings;
        let verdict = if errors.is_empty() { "is valid" } else { "is not valid" };
        let lines = |what: &str, all: &[String]| -> String {
            all.iter().map(|one| format!("{what}: {one}\n")).collect()
        };
        format!(
            "{}{}package {} {verdict}: {}, {}\n",
            lines("warning", warnings),
            lines("error", errors),
            self.package,
            count(errors.len(), "error"),
            count(warnings.len(), "warning")
        )
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn findings(package: &Package) -> Findings {
    let found = validate::findings(&package.spec);
    let rendered = rendering::findings(package);
    let mut warnings = lines(&found.warnings);
    warnings.extend(rendered_kinds::removed(package).into_iter().map(converted));
    warnings.extend(rendered.warnings);
    Findings { errors: lines(&found.errors).into_iter().chain(rendered.errors).collect(), warnings }
}

/// As admission says them.
fn lines(problems: &Problems) -> Vec<String> {
    let more = (problems.more > 0).then(|| format!("and {} more", problems.more));
    problems.first.iter().map(ToString::to_string).chain(more).collect()
}

fn converted((template, removed): (&str, &RemovedApi)) -> String {
    format!(
        "templates/{template}: Kubernetes {} removed {} {}, which is applied as {}: write it as that",
        removed.removed_in, removed.api_version, removed.kind, removed.successor
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rstest::rstest;

    use super::*;

    fn verify(dir: &Path) -> Result<Verified, CliError> {
        super::verify(&mut Sources::default(), &Place::Folder(dir.to_owned()))
    }

    const OPERATOR: &str = "apiVersion: kudo.dev/v1beta1\nname: web\noperatorVersion: 1.0.0\n\
                            tasks: [{name: make, kind: Apply, spec: {resources: [pdb.yaml]}}]\n\
                            plans: {deploy: {strategy: serial, phases: [{name: all, steps: [{name: make, tasks: [TASK]}]}]}}\n";
    const BUDGET: &str = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n";

    fn said(operator: &str, template: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("templates")).unwrap();
        fs::write(dir.path().join("operator.yaml"), operator).unwrap();
        fs::write(dir.path().join("params.yaml"), "apiVersion: kudo.dev/v1beta1\nparameters: []\n").unwrap();
        fs::write(dir.path().join("templates/pdb.yaml"), template).unwrap();
        verify(dir.path()).unwrap().text().replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn what_is_converted_is_a_warning() {
        assert_eq!(
            said(&OPERATOR.replace("TASK", "make"), BUDGET),
            "warning: templates/pdb.yaml: Kubernetes 1.25 removed policy/v1beta1 PodDisruptionBudget, which is applied \
             as policy/v1: write it as that\npackage web 1.0.0 is valid: 0 errors, 1 warning\n"
        );
    }

    #[test]
    fn what_no_instance_could_do_without_is_an_error() {
        let text = said(&OPERATOR.replace("TASK", "gone"), "{{ if }}");
        assert!(
            text.contains("error: spec.plans[deploy].phases[0].steps[0].tasks[0]: there is no task"),
            "{text}"
        );
        // No plan names its task.
        assert!(text.contains("warning: spec.templates[pdb.yaml]: "), "{text}");
        assert!(text.ends_with("package web 1.0.0 is not valid: 1 error, 1 warning\n"), "{text}");
        let unread = said("name: [", "");
        assert!(unread.starts_with("error: operator.yaml: "), "{unread}");
        assert!(unread.ends_with("package DIR is not valid: 1 error, 0 warnings\n"), "{unread}");
    }

    /// A parameter and a template of a package whose plan applies `pdb.yaml`.
    fn with_parameter(parameter: &str, template: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("templates")).unwrap();
        fs::write(dir.path().join("operator.yaml"), OPERATOR.replace("TASK", "make")).unwrap();
        fs::write(dir.path().join("params.yaml"), format!("parameters: [{parameter}]\n")).unwrap();
        fs::write(dir.path().join("templates/pdb.yaml"), template).unwrap();
        verify(dir.path()).unwrap().text()
    }

    const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {n: \"VALUE\"}\n";

    #[rstest]
    #[case::no_such_parameter(
        "{name: NUM, default: a}",
        "{{ .Params.NUM }}{{ .Params.NOT_THERE }}",
        "error: error expanding template pdb.yaml: error rendering template: template: pdb.yaml:4:38: executing \"pdb.yaml\" at <.Params.NOT_THERE>: map has no entry for key \"NOT_THERE\"\npackage web 1.0.0 is not valid: 1 error, 0 warnings\n"
    )]
    #[case::no_such_name(
        "{name: NUM, default: a}",
        "{{ .Nmae }}{{ .Params.NUM }}",
        "error: error expanding template pdb.yaml: error rendering template: template: pdb.yaml:4:14: executing \"pdb.yaml\" at <.Nmae>: map has no entry for key \"Nmae\"\npackage web 1.0.0 is not valid: 1 error, 0 warnings\n"
    )]
    #[case::no_such_type(
        "{name: NUM, default: a, type: strnig}",
        "{{ .Params.NUM }}",
        "warning: spec.parameters[0].value-type: there is no type \"strnig\"; write string, integer, number, boolean, array or map: did you mean string?\npackage web 1.0.0 is valid: 0 errors, 1 warning\n"
    )]
    #[case::of_another_type(
        "{name: NUM, default: \"1\", type: integer, enum: [\"1\", two]}",
        "{{ .Params.NUM }}",
        "warning: spec.parameters[0].enum[1]: \"two\" is not a whole number, such as 3; list values of the parameter's type\npackage web 1.0.0 is valid: 0 errors, 1 warning\n"
    )]
    #[case::other_side(
        "{name: NUM, default: \"false\", type: boolean}",
        "{{ if eq .Params.NUM \\\"true\\\" }}{{ .Params.M }}{{ end }}",
        "warning: error expanding template pdb.yaml"
    )]
    #[case::not_used(
        "{name: NUM, default: a}",
        "x",
        "warning: parameter NUM: no template and no task uses it\npackage web 1.0.0 is valid: 0 errors, 1 warning\n"
    )]
    fn what_a_render_would_say(#[case] parameter: &str, #[case] value: &str, #[case] said: &str) {
        let text = with_parameter(parameter, &CONFIG.replace("VALUE", &value.replace("\\\"", "\"")));
        assert!(text.starts_with(said), "{text}");
    }

    #[test]
    fn what_it_installs_is_verified_too() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = dir.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let task =
            |name: &str, package: &str| format!("{{name: {name}, kind: KudoOperator, spec: {{{package}}}}}");
        let tasks = [task("db", "package: ../db"), task("cache", "package: cache, operatorVersion: 2.0.0")]
            .join(", ");
        write("web/operator.yaml", &format!("name: web\noperatorVersion: 1.0.0\ntasks: [{tasks}]\n"));
        write("web/params.yaml", "parameters: []\n");
        write("db/params.yaml", "parameters: []\n");
        write("db/operator.yaml", &OPERATOR.replace("name: web", "name: db").replace("TASK", "gone"));
        let said = || verify(&dir.path().join("web")).unwrap().text();
        assert_eq!(
            said(),
            "error: package ../db: the package cannot be used: operator.yaml: task make missing template: pdb.yaml\n\
             package web 1.0.0 is not valid: 1 error, 0 warnings\n"
        );
        write("db/templates/pdb.yaml", "");
        assert_eq!(
            said(),
            "warning: OperatorVersion cache-2.0.0 has to be in the namespace before: a task installs it, and names no \
             folder of it\n\
             error: package db 1.0.0: spec.plans[deploy].phases[0].steps[0].tasks[0]: there is no task \"gone\"; add \
             the task to spec.tasks, or name another\n\
             package web 1.0.0 is not valid: 1 error, 1 warning\n"
        );
    }
}
