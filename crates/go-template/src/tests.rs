//! The language as a whole; the families of functions are compared with Go in
//! `tests/data`.

mod bounds;
mod budgets;
mod decoding;
mod go_cases;

use rstest::rstest;

use super::{Never, Root, Template, Value};

fn root() -> Value {
    Value::from(serde_json::json!({
        "Name": "instance", "Namespace": "ns",
        "Params": {"TEXT": "abc", "EMPTY": "", "COUNT": "3", "LIST": ["a", "b"], "MAP": {"y": 1, "x": 1e6}, "NIL": null},
    }))
}

fn render(text: &str) -> Result<String, String> {
    let template = Template::parse("file.yaml", text).map_err(|error| error.to_string())?;
    template.render(&Root::from(&root()), &Never).map_err(|error| error.to_string())
}

#[rstest]
#[case("{{ .Name }}", "instance")]
#[case("{{ range $i, $x := .Params.LIST }}{{ $i }}={{ $x }} {{ end }}", "0=a 1=b ")]
#[case("{{ range $k, $v := .Params.MAP }}{{ $k }}={{ $v }} {{ end }}", "x=1e+06 y=1 ")]
#[case("{{ range until (int .Params.COUNT) }}{{ . }}{{ if eq . 1 }}{{ break }}{{ end }}{{ end }}", "01")]
#[case("{{ with .Params.EMPTY }}a{{ else with .Params.TEXT }}{{ . }}{{ end }}", "abc")]
#[case("{{ define \"x\" }}<{{ . }}>{{ end }}{{ template \"x\" .Name }}", "<instance>")]
#[case("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2")]
#[case("{{ .Params.COUNT | mul 2 }} {{ div .Params.COUNT 2 }}", "6 1")]
#[case("{{ (index .Params.LIST 1) | printf \"%q %5d\" 7 }}", "'\\a' %!d(string=    b)")]
#[case("{{ .Params.NIL }}", "<no value>")]
#[case("{{ toYaml .Params.MAP }}", "x: 1e+06\n\"y\": 1\n")]
#[case("a {{- /* c */ -}} b", "ab")]
fn renders(#[case] text: &str, #[case] want: &str) {
    assert_eq!(render(text).as_deref(), Ok(want));
}

#[rstest]
#[case(
    "a\n  {{ .Params.MISSING }}",
    "template: file.yaml:2:12: executing \"file.yaml\" at <.Params.MISSING>: map has no entry for key \"MISSING\""
)]
#[case(
    "{{ .Params.TEXT.x }}",
    "template: file.yaml:1:10: executing \"file.yaml\" at <.Params.TEXT.x>: can't evaluate field x in type interface {}"
)]
#[case("a\n{{ nope }}", "template: file.yaml:2: function \"nope\" not defined")]
#[case("{{ now }}", "template: file.yaml:1: function \"now\" of sprig is not supported yet")]
#[case("{{ env \"x\" }}", "template: file.yaml:1: function \"env\" not defined")]
#[case("{{ $x }}", "template: file.yaml:1: undefined variable \"$x\"")]
#[case("{{ if true }}", "template: file.yaml:1: unexpected EOF")]
#[case("{{ end }}", "template: file.yaml:1: unexpected {{end}}")]
#[case(
    "{{ div 1 0 }}",
    "template: file.yaml:1:3: executing \"file.yaml\" at <div 1 0>: error calling div: runtime error: integer divide by zero"
)]
fn refuses(#[case] text: &str, #[case] want: &str) {
    assert_eq!(render(text), Err(want.to_owned()));
}

#[test]
fn what_a_template_reads_is_known_from_its_text() {
    let text = "{{ .Name }}{{ if .Params.A }}\n{{ range .Params.L }}{{ .Params.NOT }}{{ $.Params.B | quote }}{{ end }}{{ end }}{{ (index .Pipes.pod 0) }}{{ .Params.A }}";
    let reads = Template::parse("f", text).expect("it parses").reads();
    let names = |map: &std::collections::BTreeMap<String, super::Place>| {
        map.iter().map(|(name, place)| format!("{name}@{place}")).collect::<Vec<_>>()
    };
    assert_eq!(names(&reads.params), ["A@1:24", "B@2:42", "L@2:16"]);
    assert_eq!(names(&reads.pipes), ["pod@2:96"]);
    assert_eq!(names(&reads.roots), ["Name@1:3"]);
}

#[rstest]
#[case("a: 1\n---\nb: 2\n", r#"[{"a":1},{"b":2}]"#)]
#[case("---\na: 1\n---\n# nothing\n---\n\n---\nb: 2", r#"[{"a":1},{"b":2}]"#)]
#[case("a: |\n  x\n---\nb: |\n  y\n", r#"[{"a":"x"},{"b":"y\n"}]"#)]
#[case("", "[]")]
#[case("\n  \n", "[]")]
fn documents(#[case] text: &str, #[case] want: &str) {
    let values = super::yaml::documents(text).expect("it is YAML");
    assert_eq!(serde_json::Value::from(values).to_string(), want);
}

#[test]
fn an_error_in_a_document_has_its_line_in_the_whole_text() {
    let error = super::yaml::documents("a: 1\n---\nb: 2\nc: [\n").expect_err("it is not YAML");
    assert!(error.line >= 4, "{error}");
}
