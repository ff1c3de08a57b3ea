//! Cases with Go's own results, recorded in `tests/data/oracle`.

use serde::Deserialize;

use super::parse;
use crate::{Never, Root, Value, yaml};

#[derive(Deserialize)]
struct Cases {
    root: serde_json::Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    data: Option<serde_json::Value>,
    output: Option<String>,
    error: Option<String>,
    /// Our result, if it differs on purpose.
    ours: Option<String>,
}

#[test]
fn templates_give_what_go_gives() {
    let cases: Cases =
        serde_json::from_str(include_str!("../../tests/data/cases.json")).expect("cases are JSON");
    let mut wrong = Vec::new();
    for case in &cases.cases {
        let root = Value::from(case.data.as_ref().unwrap_or(&cases.root).clone());
        let got =
            parse("file.yaml", &case.template).map_err(|error| error.to_string()).and_then(|template| {
                template.render(&Root::from(&root), &Never).map_err(|error| error.to_string())
            });
        let got = got.unwrap_or_else(|error| format!("error: {error}"));
        let want = match (&case.ours, &case.output, &case.error) {
            (Some(ours), _, _) => ours.clone(),
            (None, Some(output), _) => output.clone(),
            (None, None, error) => format!("error: {}", error.as_deref().unwrap_or_default()),
        };
        if got != want {
            wrong.push(format!("{:?}\n  want {want:?}\n  got  {got:?}", case.template));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.cases.len(), wrong.join("\n"));
}

#[derive(Deserialize)]
struct YamlCase {
    read: Option<String>,
    write: Option<serde_json::Value>,
    json: Option<serde_json::Value>,
    text: Option<String>,
    error: Option<String>,
    /// Our result, if it differs on purpose.
    ours: Option<String>,
}

#[test]
fn yaml_is_read_and_written_as_go_does() {
    let cases: Vec<YamlCase> =
        serde_json::from_str(include_str!("../../tests/data/yaml.json")).expect("cases are JSON");
    let mut wrong = Vec::new();
    for case in &cases {
        let (input, got, want) = match (&case.read, &case.write) {
            (Some(text), _) => {
                let got = yaml::read(text)
                    .map_or_else(|error| format!("error: {error}"), |value| value.to_string());
                let want = match &case.error {
                    Some(_) => "error".to_owned(),
                    None => case.json.clone().unwrap_or_default().to_string(),
                };
                // Errors of another YAML parser have other texts.
                let same_failure = want == "error" && got.starts_with("error");
                (
                    text.clone(),
                    if same_failure && case.ours.is_none() { "error".to_owned() } else { got },
                    want,
                )
            }
            (None, value) => {
                let value = value.clone().unwrap_or_default();
                (value.to_string(), yaml::write(&value), case.text.clone().unwrap_or_default())
            }
        };
        let want = case.ours.clone().unwrap_or(want);
        if got != want {
            wrong.push(format!("{input:?}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
