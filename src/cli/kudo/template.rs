//! `interlock template`: renders one template with given values, as a plan would.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use go_template::{Generator, Interrupt as _, ParseError, RenderError, Root, Value, yaml};
use interlock_kudo::package::functions;
use serde_json::{Map, Value as Json};

use super::rendering::GeneratorFlags;
use crate::cli::common::error::CliError;
use crate::cli::common::{exit, output};

/// Name of a template that is read from standard input, in errors.
const STDIN: &str = "stdin";

/// Flags of `interlock template`.
#[derive(Args, Debug)]
#[command(after_help = "\
A template of a package finds its values below .Params, beside .Name, .Namespace, .OperatorName, .AppVersion,
.OperatorVersion, .PlanName, .PhaseName, .StepName and .Pipes:
  interlock template service.yaml --set Name=demo --set Params.PORT=80")]
pub struct TemplateArguments {
    /// The template, or - for standard input.
    file: PathBuf,
    /// YAML or JSON file of values by name; can be repeated, maps are merged, and later values win.
    #[arg(long, value_name = "FILE")]
    values: Vec<PathBuf>,
    /// PATH=TEXT of one value, such as Params.PORT=80; can be repeated, and takes precedence over files.
    #[arg(long, value_name = "PATH=TEXT")]
    set: Vec<String>,
    #[command(flatten)]
    generator: GeneratorFlags,
}

/// Runs the command: 0 rendered, 1 where the template is wrong, 2 where an input cannot be read.
pub fn main(arguments: TemplateArguments) -> ExitCode {
    match rendered(&arguments).and_then(|text| output::print(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::print(&error),
    }
}

fn rendered(arguments: &TemplateArguments) -> Result<String, CliError> {
    let text = read(&arguments.file)?;
    let mut values = Json::Object(Map::new());
    for file in &arguments.values {
        merge(&mut values, values_of(file)?);
    }
    for pair in &arguments.set {
        set(&mut values, pair)?;
    }
    let name = match arguments.file.file_name() {
        Some(name) if arguments.file != Path::new("-") => name.to_string_lossy().into_owned(),
        _ => STDIN.to_owned(),
    };
    let template = functions::parse(&name, &text).map_err(|error| of_parse(&error))?;
    let key = arguments.generator.key()?;
    let generator = Generator::new(arguments.generator.now(), key.0);
    let deadline = arguments.generator.deadline();
    deadline.begin();
    let values = Value::from(values);
    template.render_with(&Root::from(&values), &generator, &deadline).map_err(|error| of_render(&error))
}

fn of_parse(error: &ParseError) -> CliError {
    CliError::refused(format!("{} is no template", error.name))
        .place(format!("{}:{}", error.name, error.place))
        .why(error.kind.to_string())
}

fn of_render(error: &RenderError) -> CliError {
    let failed = |name: &str| CliError::refused(format!("{name} cannot be rendered"));
    match error {
        RenderError::Execution { name, place, node, message, .. } => {
            failed(name).place(format!("{name}:{place}, at <{node}>")).why(message)
        }
        RenderError::Interrupted { name, place, why } => failed(name)
            .place(format!("{name}:{place}"))
            .why(format!("rendering {why}"))
            .next("look for a loop in that line, or give it longer: `--render-limit 10s`"),
        RenderError::NoGenerator { name, message, .. } => failed(name).why(*message),
        RenderError::NotText { name, .. } => failed(name).place(name).why(error.to_string()),
    }
}

fn read(file: &Path) -> Result<String, CliError> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| {
        CliError::usage(format!("{} cannot be read", file.display()))
            .why(error.to_string())
            .next("give a file of UTF-8 text, or - for standard input")
    })
}

fn values_of(file: &Path) -> Result<Json, CliError> {
    let wrong = |what: &str| CliError::usage(what).place(file.display().to_string());
    let values =
        yaml::read(&read(file)?).map_err(|error| wrong("the values are not YAML").why(error.to_string()))?;
    match values {
        Json::Object(_) => Ok(values),
        Json::Null => Ok(Json::Object(Map::new())),
        _ => Err(wrong("the values are no mapping")
            .next("write a mapping of names to values, such as `Name: demo`")),
    }
}

/// Adds values; maps are merged, others replaced.
fn merge(values: &mut Json, more: Json) {
    match (values, more) {
        (Json::Object(values), Json::Object(more)) => {
            for (name, value) in more {
                merge(values.entry(name).or_insert(Json::Null), value);
            }
        }
        (value, more) => *value = more,
    }
}

/// Sets the text at a path of names.
fn set(values: &mut Json, pair: &str) -> Result<(), CliError> {
    let wrong = || CliError::usage(format!("--set {pair} is no value")).next("write it as Params.NAME=TEXT");
    let (path, text) = pair.split_once('=').ok_or_else(wrong)?;
    if path.split('.').any(str::is_empty) {
        return Err(wrong());
    }
    let value = path
        .rsplit('.')
        .fold(Json::from(text), |value, name| Json::Object(Map::from_iter([(name.to_owned(), value)])));
    merge(values, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: TemplateArguments,
    }

    fn run(template: &str, values: &[&str], flags: &[&str]) -> Result<String, (u8, String)> {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: String, text: &str| {
            let file = dir.path().join(name);
            std::fs::write(&file, text).unwrap();
            file.display().to_string()
        };
        let mut words = vec!["template".to_owned(), write("t.yaml".to_owned(), template)];
        for (i, text) in values.iter().enumerate() {
            words.push(format!("--values={}", write(format!("v{i}.yaml"), text)));
        }
        words.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let arguments = Command::try_parse_from(words).unwrap().arguments;
        rendered(&arguments).map_err(|error| {
            let text = error.text().replace(&format!("{}/", dir.path().display()), "");
            (error.exit().code(), text)
        })
    }

    #[rstest]
    #[case::set("{{ .Params.A }} {{ .Name }}", &[], &["--set=Params.A=1=2", "--set=Name=x"], "1=2 x")]
    #[case::files(
        "{{ .Params.A }} {{ .Params.B }} {{ .Params.C }}",
        &["Params: {A: a, B: b, C: c}", "{\"Params\": {\"B\": 1000000}}", "", "Params: {C: [1]}"],
        &["--set=Params.A=x"],
        "x 1e+06 [1]"
    )]
    #[case::time("{{ now | date \"15:04\" }}", &[], &["--now=2026-11-25T21:00:00Z"], "21:00")]
    #[case::no_values("{{ 1 }}", &[], &[], "1")]
    fn renders(
        #[case] template: &str,
        #[case] values: &[&str],
        #[case] flags: &[&str],
        #[case] expected: &str,
    ) {
        assert_eq!(run(template, values, flags).as_deref(), Ok(expected));
    }

    #[test]
    fn a_seed_renders_the_same_again() {
        let with = |flags: &[&str]| run("{{ uuidv4 }}", &[], flags).unwrap();
        assert_eq!(with(&["--seed=a"]), with(&["--seed=a"]));
        assert_ne!(with(&["--seed=a"]), with(&["--seed=b"]));
        assert_ne!(with(&[]), with(&[]));
    }

    #[rstest]
    #[case::missing(
        "a\n{{ .Params.A }}", &["Params: {}"], &[], 1,
        "error: t.yaml cannot be rendered\n  where: t.yaml:2:10, at <.Params.A>\n  why:   map has no entry for key \"A\"\n"
    )]
    #[case::no_template("{{ if }}", &[], &[], 1, "error: t.yaml is no template\n  where: t.yaml:1:")]
    #[case::refused(
        "{{ env \"A\" }}", &[], &[], 1,
        "error: t.yaml is no template\n  where: t.yaml:1:3\n  why:   function \"env\" not defined\n"
    )]
    #[case::too_long(
        "{{ $x := uniq (until 100000) }}", &[], &["--render-limit=0s"], 1,
        "error: t.yaml cannot be rendered\n  where: t.yaml:1:"
    )]
    #[case::not_yaml("x", &["a: ["], &[], 2, "error: the values are not YAML\n  where: v0.yaml\n")]
    #[case::no_mapping("x", &["- a"], &[], 2, "error: the values are no mapping\n  where: v0.yaml\n")]
    #[case::set("x", &[], &["--set=a"], 2, "error: --set a is no value\n  next:  write it as Params.NAME=TEXT\n")]
    #[case::set_nothing("x", &[], &["--set=a..b=c"], 2, "error: --set a..b=c is no value\n")]
    #[case::no_file("x", &[], &["--values=no/such"], 2, "error: no/such cannot be read\n")]
    fn refuses(
        #[case] template: &str,
        #[case] values: &[&str],
        #[case] flags: &[&str],
        #[case] code: u8,
        #[case] expected: &str,
    ) {
        let (exit, text) = run(template, values, flags).unwrap_err();
        assert_eq!(exit, code, "{text}");
        assert!(text.starts_with(expected), "{text}");
    }
}
