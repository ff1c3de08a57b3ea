//! The language as a whole; the families of functions are compared with Go in
//! `tests/data`.

mod bounds;
mod budgets;
mod decoding;
mod generated;
mod go_cases;
mod making;

use std::sync::LazyLock;

use rstest::rstest;

use super::{Function, Functions, Never, ParseError, Root, TO_YAML, Template, Type, Value, limits};

/// The functions of the recorded cases.
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let elsewhere = ["env", "expandenv", "base", "dir", "clean", "ext", "isAbs"];
    Functions::sprig().with(TO_YAML).without(&elsewhere)
});

fn parse(name: &str, text: &str) -> Result<Template, ParseError> {
    Template::parse(name, text, &FUNCTIONS)
}

fn root() -> Value {
    Value::from(serde_json::json!({
        "Name": "instance", "Namespace": "ns",
        "Params": {"TEXT": "abc", "EMPTY": "", "COUNT": "3", "LIST": ["a", "b"], "MAP": {"y": 1, "x": 1e6}, "NIL": null},
    }))
}

fn render(text: &str) -> Result<String, String> {
    let template = parse("file.yaml", text).map_err(|error| error.to_string())?;
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

/// What a template changes, no other sees, whatever either has read before.
#[rstest]
#[case("{{ $_ := set .Params \"TEXT\" \"x\" }}{{ .Params.TEXT }} {{ len .Params }}", "x 6")]
#[case(
    "{{ .Params.TEXT }}{{ $_ := set .Params \"NEW\" .Params.MAP }}{{ .Params.NEW.y }} {{ len .Params }}",
    "abc1 7"
)]
#[case("{{ $_ := unset .Params \"TEXT\" }}{{ hasKey .Params \"TEXT\" }} {{ keys .Params | len }}", "false 5")]
#[case(
    "{{ $_ := set .Params.MAP \"x\" 2 }}{{ .Params.MAP.x }} {{ toYaml .Params.MAP }}",
    "2 x: 2\n\"y\": 1\n"
)]
#[case("{{ $m := merge .Params.MAP (dict \"z\" 3) }}{{ .Params.MAP.z }} {{ len $m }}", "3 3")]
#[case(
    "{{ $_ := set .Params.MAP \"x\" 2 }}{{ range $k, $v := .Params }}{{ if eq $k \"MAP\" }}{{ $v.x }}{{ end }}{{ end }}",
    "2"
)]
fn renderings_share_values_and_no_changes(#[case] text: &str, #[case] want: &str) {
    let values = root();
    let root = Root::from(&values);
    let all = parse("all.yaml", "{{ toYaml .Params }}").expect("a template");
    let before = all.render(&root, &Never).expect("it is rendered");
    let template = parse("file.yaml", text).expect("a template");
    for _ in 0..2 {
        assert_eq!(template.render(&root, &Never).as_deref(), Ok(want));
        assert_eq!(all.render(&root, &Never).as_deref(), Ok(before.as_str()));
    }
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
#[case(
    "{{ getHostByName \"x\" }}",
    "template: file.yaml:1: function \"getHostByName\" of sprig is refused: rendering reaches no network, process or path; pass its result as a value"
)]
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

#[rstest]
#[case("{{ twice 21 }}", Ok("42"))]
#[case(
    "{{ twice .Params.TEXT }}",
    Err(
        "template: f:1:16: executing \"f\" at <.Params.TEXT>: wrong type for value; expected int; got string"
    )
)]
#[case(
    "{{ twice 7 8 }}",
    Err("template: f:1:3: executing \"f\" at <twice>: wrong number of args for twice: want 1 got 2")
)]
#[case(
    "{{ twice -1 }}",
    Err("template: f:1:3: executing \"f\" at <twice -1>: error calling twice: -1 is negative")
)]
#[case("{{ count 1 \"x\" nil (dict \"a\" (list 1)) }}", Ok("4"))]
#[case("{{ upper \"abc\" }}", Err("template: f:1: function \"upper\" not defined"))]
fn a_program_adds_functions_and_takes_others_away(#[case] text: &str, #[case] want: Result<&str, &str>) {
    const ADDED: &[Function] = &[
        Function::new("twice", &[Type::Int], |args| match args {
            [Value::Int(number @ 0..)] => Ok(Value::Int(number * 2)),
            [Value::Int(number)] => Err(format!("{number} is negative")),
            _ => Err("the type was not checked".to_owned()),
        }),
        Function::new("count", &[], |args| Ok(Value::Int(args.len() as i64))).and_more(Type::Any),
    ];
    let functions = Functions::sprig().with(ADDED).without(&["upper"]);
    let rendered =
        Template::parse("f", text, &functions).map_err(|error| error.to_string()).and_then(|template| {
            template.render(&Root::from(&root()), &Never).map_err(|error| error.to_string())
        });
    assert_eq!(rendered.as_deref().map_err(String::as_str), want);
}

/// Arguments and results of a program's function are charged like those of the others.
#[test]
fn a_function_that_a_program_adds_has_the_budgets_of_a_rendering() {
    const ADDED: &[Function] =
        &[Function::new("flood", &[], |_| Ok(Value::String("x".repeat(limits::MAX_MADE + 1))))];
    let template = Template::parse("f", "{{ flood }}", &Functions::go().with(ADDED)).expect("a template");
    let error = template.render(&Root::default(), &Never).expect_err("too much").to_string();
    assert!(error.contains("makes more than the budget"), "{error}");
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
