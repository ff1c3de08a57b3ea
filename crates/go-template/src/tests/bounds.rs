//! Possible attacks of a package: no panic, no endless work, no stack overflow.

use proptest::prelude::*;
use rstest::rstest;

use super::{FUNCTIONS, parse};
use crate::limits::{LimitReached, MAX_NESTING};
use crate::{Never, Root, Value, yaml};

fn render(text: &str) -> Result<String, String> {
    let root =
        Value::from(serde_json::json!({"Name": "n", "Params": {"A": "1", "L": ["x"], "M": {"k": "v"}}}));
    let template = parse("f", text).map_err(|error| error.to_string())?;
    template.render(&Root::from(&root), &Never).map_err(|error| error.to_string())
}

#[rstest]
#[case("{{ range until 1000000000 }}x{{ end }}", LimitReached::Made)]
#[case("{{ range 1000000000000 }}x{{ end }}", LimitReached::Work)]
#[case("{{ repeat 1000000000 \"xxxxxxxx\" }}", LimitReached::Made)]
#[case("{{ indent 1000000000 \"a\" }}", LimitReached::Made)]
#[case("{{ $x := \"x\" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}", LimitReached::Made)]
#[case("{{ $x := list 1 }}{{ range 60 }}{{ $x = concat $x $x }}{{ end }}", LimitReached::Made)]
#[case("{{ $x := \"xxxx\" }}{{ range 30 }}{{ $x = replace \"x\" $x $x }}{{ end }}", LimitReached::Made)]
#[case(
    "{{ $x := \"xxxx\" }}{{ range 30 }}{{ $x = regexReplaceAll \"x\" $x $x }}{{ end }}",
    LimitReached::Made
)]
#[case("{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ $x }}", LimitReached::ValueDepth)]
#[case(
    "{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ toJson $x }}",
    LimitReached::ValueDepth
)]
#[case(
    "{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ toYaml $x }}",
    LimitReached::ValueDepth
)]
#[case(
    "{{ $x := list }}{{ range 5000 }}{{ $x = list $x }}{{ end }}{{ deepEqual $x $x }}",
    LimitReached::ValueDepth
)]
#[case("{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}", LimitReached::Depth)]
#[case(
    "{{ define \"x\" }}{{ if true }}{{ template \"x\" (print (print .)) }}{{ end }}{{ end }}{{ template \"x\" 1 }}",
    LimitReached::Depth
)]
#[case("{{ range 1000 }}{{ repeat 10000 \"x\" }}{{ end }}", LimitReached::Output)]
fn is_bounded(#[case] text: &str, #[case] limit: LimitReached) {
    let error = render(text).expect_err("a bound is reached");
    assert!(error.ends_with(&limit.to_string()), "{error}");
}

#[test]
fn a_map_cannot_contain_itself() {
    let error = render("{{ $d := dict }}{{ $_ := set $d \"k\" (list $d) }}").expect_err("it is refused");
    assert!(error.ends_with("error calling set: the map would contain itself"), "{error}");
}

#[rstest]
#[case("{{ if true }}", "{{ end }}")]
#[case("{{ range 1 }}", "{{ end }}")]
#[case("{{ if false }}{{ else }}", "{{ end }}")]
fn nesting_of_actions(#[case] open: &str, #[case] close: &str) {
    let nested = |depth: usize| format!("{}x{}", open.repeat(depth), close.repeat(depth));
    assert_eq!(render(&nested(MAX_NESTING / 2)).as_deref(), Ok("x"));
    let error = render(&nested(MAX_NESTING * 100)).expect_err("nested too deep");
    assert_eq!(error, format!("template: f:1: nested deeper than {MAX_NESTING} levels"));
}

#[test]
fn nesting_of_parentheses() {
    let nested = |depth: usize| format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(render(&nested(MAX_NESTING - 1)).as_deref(), Ok("1"));
    assert!(render(&nested(100_000)).is_err());
}

/// Pieces that often form a template.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "{{",
        "}}",
        "{{-",
        "-}}",
        " ",
        "\n",
        "\t",
        "if ",
        "else ",
        "end",
        "range ",
        "with ",
        "define ",
        "template ",
        "block ",
        "break",
        "continue",
        "nil",
        "true",
        ".",
        "$",
        "$x",
        ":=",
        "=",
        "|",
        "(",
        ")",
        ",",
        "\"",
        "\"a\"",
        "`",
        "'",
        "'a'",
        "0x",
        "1",
        "1.5",
        "1e9",
        "-",
        "+",
        "/*",
        "*/",
        ".Params",
        ".Params.A",
        ".Params.L",
        ".Params.M",
        "index ",
        "printf ",
        "\"%*[2]d%v\"",
        "\"%#+ 0q%x%U%e\"",
        "list ",
        "dict ",
        "set ",
        "slice ",
        "until ",
        "trunc ",
        "substr ",
        "wrap ",
        "abbrev ",
        "b64dec ",
        "regexSplit ",
        "semverCompare ",
        "toYaml ",
        "urlParse ",
        "splitn ",
        "merge ",
        "é",
        "\u{0}",
        "\\",
    ];
    prop_oneof![
        proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        any::<char>().prop_map(String::from)
    ]
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(pieces in proptest::collection::vec(piece(), 0..40)) {
        let _ = render(&pieces.concat());
    }

    #[test]
    fn no_action_makes_it_panic(pieces in proptest::collection::vec(piece(), 0..12)) {
        let _ = render(&format!("{{{{ {} }}}}", pieces.concat()));
    }

    #[test]
    fn no_format_makes_it_panic(format in "[%#+ 0-9.*\\[\\]vTtbcdoOqxXUeEfFgGsp\\PC]{0,12}", int in any::<i64>(), float in any::<f64>(), text in any::<String>()) {
        let format = serde_json::to_string(&format).expect("a string is JSON");
        let text = serde_json::to_string(&text).expect("a string is JSON");
        let _ = render(&format!("{{{{ printf {format} {int} {float:e} {text} nil .Params.L }}}}"));
    }

    #[test]
    fn no_arguments_make_a_function_panic(
        name in proptest::sample::select(FUNCTIONS.names().collect::<Vec<_>>()),
        args in proptest::collection::vec(
            proptest::sample::select(vec![
                "1", "-1", "0", "9223372036854775807", "-9223372036854775808", "1.5", "\"\"", "\"a b\"", "\"é\\xff\"", "nil",
                "true", "(list 1 nil \"x\")", "(dict \"k\" 1)", ".Params.L", "(until 3)", "(semver \"1.2.3\")", "(split \",\" \"a,b\")",
            ]),
            0..5,
        ),
    ) {
        let _ = render(&format!("{{{{ {name} {} }}}}", args.join(" ")));
    }

    #[test]
    fn no_yaml_makes_it_panic(text in "[-:?,\\[\\]{}&*!|>'\"%@`#a-z0-9 \n\t~<=.]{0,60}") {
        let _ = yaml::read(&text);
        let _ = yaml::documents(&text);
    }

    #[test]
    fn what_was_written_is_read_again(value in json()) {
        let text = yaml::write(&value);
        prop_assert_eq!(yaml::read(&text), Ok(value), "{}", text);
    }
}

#[rstest::rstest]
#[case::line_separator("a\u{2028}b\nc")]
#[case::paragraph_separator("a\u{2029}b\n")]
#[case::first("\u{2029}b\n")]
#[case::next_line("a\u{85}b\n")]
#[case::without_line_feed("a\u{2028}b")]
fn separators_of_older_yaml_are_read_again(#[case] text: &str) {
    let value = serde_json::json!({ "key": text, text: 1 });
    assert_eq!(yaml::read(&yaml::write(&value)), Ok(value));
}

/// JSON values, with texts that resemble other YAML types.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        (-1e9f64..1e9)
            .prop_filter("an integral float is read as an integer", |f| f.fract() != 0.0)
            .prop_map(serde_json::Value::from),
        "[-:?,\\[\\]{}&*!|>'\"%@`#a-z0-9 \n\t~<=.]{0,12}".prop_map(serde_json::Value::from),
        "(yes|no|on|off|y|n|null|~|true|1|0x1|1e3|[0-9]{1,4}|[0-9]{1,2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2})"
            .prop_map(serde_json::Value::from),
        "\\PC{0,12}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            proptest::collection::btree_map("[-a-z0-9:# ]{0,8}|yes|1|null", inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}
