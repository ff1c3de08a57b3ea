//! JSON as serde_json reads and writes it.

use proptest::prelude::*;
use rstest::rstest;
use serde::de::IgnoredAny;

use super::*;

fn accepts(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.value().is_ok() && scanner.end().is_ok()
}

#[rstest]
fn accepts_what_serde_json_accepts(
    #[values(
        "",
        " ",
        "null",
        "nul",
        "truex",
        "true",
        " false ",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "1.",
        "1.5",
        ".5",
        "1e5",
        "1e",
        "1E+5",
        "1e-",
        "-1.5e-10",
        "\"\"",
        "\"a\\n\\u00e9\\/\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12\"",
        "\"\\",
        "\"",
        "\"\u{1}\"",
        "\"\u{7f}\"",
        "\"\\ud800\"",
        "[]",
        "[,]",
        "[1,]",
        "[1 2]",
        "[1,2]",
        "[[[]]]",
        "{}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{\"a\":[{\"b\":{}}, 1 ]}",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "[1]]",
        "\u{feff}1",
        "nan",
        "Infinity",
        "+1",
        "{\"a\" : 1 , \"b\":[ ]}",
        "{,}",
        "{\"\":{}}"
    )]
    text: &str,
) {
    assert_eq!(accepts(text), serde_json::from_str::<IgnoredAny>(text).is_ok(), "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn accepts_of_anything_what_serde_json_accepts(text in "[\\[\\]{}:,\"\\\\ \\n0-9.eE+tfnulr\\-é]{0,24}") {
        prop_assert_eq!(accepts(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
    }

    #[test]
    fn accepts_of_a_string_what_serde_json_accepts(
        inside in r#"(\\"|[a-z]){0,40}(\\\\|\\n|\\u00e9|\\x|\\|\x01)?(\\"|[a-z]){0,20}"#, after in r#"("(,"b\\nc)?)?"#,
    ) {
        let text = format!("\"{inside}{after}");
        let mut scanner = Scanner::new(&text);
        let found = scanner.value().map(|raw| raw.get().len()).ok();
        let mut values = serde_json::Deserializer::from_str(&text).into_iter::<String>();
        let first = values.next().and_then(Result::ok);
        prop_assert_eq!(found, first.map(|_| values.byte_offset()));
    }

    /// As serde_json writes it, which is the canonical form.
    #[test]
    fn strings_are_escaped_as_serde_json_does(text in "[\\x00-\\x7f]{0,40}|\\PC{0,40}|[a\"\\\\]{0,40}") {
        let mut out = String::new();
        json_string(&mut out, &text);
        let mut bytes = b"before".to_vec();
        json_bytes(&mut bytes, &text);
        prop_assert_eq!(bytes, format!("before{out}").into_bytes());
        prop_assert_eq!(out, serde_json::to_string(&text).unwrap());
    }

    #[test]
    fn strings_are_read_as_serde_json_reads_them(text in "\\PC{0,20}|[\\x00-\\x7f]{0,70}|[a\"\\\\]{0,70}") {
        let json = serde_json::to_string(&text).unwrap();
        let read = Scanner::new(&json).text().unwrap();
        prop_assert_eq!(read.as_str(), text);
    }
}

#[rstest]
#[case(r#"{"a":1}"#, r#"{"a":1}"#, Ok(7))]
#[case(r#"{"a":1}"#, r#"{"a":1},"#, Ok(7))]
#[case(r#"{"a":1}"#, r#"{"a":12}"#, Ok(8))]
#[case(r#""a""#, r#""ab""#, Ok(4))]
#[case("1", "12", Ok(2))]
#[case("nul", "null", Ok(4))]
#[case("[1]", "[1", Err(()))]
fn what_is_likely_is_taken_only_where_it_is_so(
    #[case] known: &str,
    #[case] text: &str,
    #[case] taken: Result<usize, ()>,
) {
    let mut scanner = Scanner::new(text);
    let read = scanner.likely_value(Some(Raw(known)));
    assert_eq!(read.map(|_| scanner.position()).map_err(drop), taken);
}

#[test]
fn depth_costs_no_stack() {
    let deep = |n: usize| format!("{}1{}", "[{\"a\":".repeat(n), "}]".repeat(n));
    assert!(accepts(&deep(200_000)));
    assert!(!accepts(&deep(200_000)[1..]));
}
