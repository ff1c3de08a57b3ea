//! Decoding YAML is charged before it creates values.

use rstest::rstest;

use crate::Never;
use crate::limits::{Interrupt, Interrupted};
use crate::yaml::{self, Aliases, MAX_DEPTH, MAX_MADE, Reader, YamlProblem};

/// Ten levels of nine aliases each.
fn bomb() -> String {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..9 {
        let aliases = vec![format!("*a{}", i - 1); 9].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{aliases}]\n"));
    }
    text
}

#[rstest]
#[case::levels(bomb())]
#[case::long_text(format!("[&a \"{}\"{}]", "x".repeat(300_000), ", *a".repeat(6_000)))]
#[case::block_text(format!("- &a |\n  {}\n{}", "x".repeat(300_000), "- *a\n".repeat(6_000)))]
#[case::keys(format!("a: &a {}\n{}", "x".repeat(300_000), (0..6_000).map(|i| format!("{i}: {{*a : 1}}\n")).collect::<String>()))]
#[case::merges(format!("a: &a {{b: {}}}\n{}", "x".repeat(300_000), (0..6_000).map(|i| format!("{i}: {{<<: *a}}\n")).collect::<String>()))]
#[case::merged_lists(format!("a: &a {{b: {}}}\nc: {{<<: [{}]}}", "x".repeat(300_000), vec!["*a"; 6_000].join(", ")))]
#[case::anchors((0..120).map(|i| format!("{}- &a{i}\n", " ".repeat(i))).collect::<String>() + &format!("{}{}", " ".repeat(120), "x".repeat(100_000)))]
#[case::empty_lists(format!("[{}]", "[],".repeat(300_000)))]
#[case::short_lists(format!("[{}]", "[x],".repeat(100_000)))]
#[case::short_maps(format!("[{}]", "{a},".repeat(80_000)))]
#[case::nulls(format!("[{}]", "~,".repeat(300_000)))]
#[case::pairs(format!("[{}]", "a: ,".repeat(80_000)))]
fn what_is_made_is_bounded(#[case] text: String) {
    let error = yaml::read(&text).expect_err("the document is too large");
    assert_eq!(error.problem, YamlProblem::TooLarge, "{}", error.to_string().get(..200).unwrap_or_default());
}

#[rstest]
#[case("[")]
#[case("- ")]
#[case("{a: ")]
#[case("? ")]
fn nesting_is_bounded(#[case] piece: &str) {
    let error = yaml::read(&piece.repeat(100_000)).expect_err("nested too deep");
    // The parser has its own limit for lists and maps in brackets.
    let bounded =
        matches!(error.problem, YamlProblem::TooDeep | YamlProblem::Key(_) | YamlProblem::Syntax(_));
    assert!(bounded, "{error}");
    assert!(yaml::read(&"[".repeat(MAX_DEPTH + 1)).is_err());
}

/// Any number of documents: the objects of one task share one budget.
#[test]
fn documents_share_a_budget() {
    let document = format!("a: &a {}\nb: [*a, *a, *a]", "x".repeat(100_000));
    let text = vec![document; 100].join("\n---\n");
    let error = yaml::documents(&text).expect_err("together they are too large");
    assert_eq!(error.problem, YamlProblem::TooLarge);
    let reader = Reader::new(Aliases::Counted, &Never);
    for _ in 0..15 {
        assert!(reader.documents(&"- x\n".repeat(10_000)).is_ok());
    }
    assert!(reader.made() <= MAX_MADE);
    assert!((0..15).any(|_| reader.documents(&"- x\n".repeat(10_000)).is_err()));
}

/// A definition with 25,000 lines is larger than any in a package.
#[test]
fn a_large_definition_is_read() {
    let property = |i: usize| format!("  p{i}:\n    type: string\n    description: {}\n", "words ".repeat(8));
    let text = format!("properties:\n{}", (0..8_333).map(property).collect::<String>());
    let value = yaml::read(&text).expect("it is read");
    assert_eq!(value["properties"].as_object().map(serde_json::Map::len), Some(8_333));
}

#[rstest]
#[case::alias("[&a x, *a]")]
#[case::key("{&a x: 1, *a : 2}")]
#[case::merge("a: &a {b: 1}\nc: {<<: *a}")]
#[case::itself("&a [*a]")]
fn aliases_can_be_refused(#[case] text: &str) {
    let reader = Reader::new(Aliases::Refused, &Never);
    assert_eq!(reader.read(text).map_err(|error| error.problem), Err(YamlProblem::Alias));
}

#[test]
fn an_anchor_alone_copies_nothing() {
    let reader = Reader::new(Aliases::Refused, &Never);
    assert!(reader.read(&format!("&a [{}]", "&b x,".repeat(20_000))).is_ok());
}

#[test]
fn an_error_shows_a_bounded_text() {
    let error = yaml::read(&format!("!!int {}", "x".repeat(100_000))).expect_err("no integer");
    assert!(error.to_string().len() < 200, "{}", error.to_string().len());
}

#[derive(Debug)]
struct Now;

impl Interrupt for Now {
    fn interrupted(&self) -> Option<Interrupted> {
        Some(Interrupted("took too long"))
    }
}

#[test]
fn decoding_can_be_interrupted() {
    let error = Reader::new(Aliases::Counted, &Now).documents("a: 1").expect_err("interrupted");
    assert!(error.is_transient(), "{error}");
    assert!(!yaml::read("{").expect_err("no YAML").is_transient());
}
