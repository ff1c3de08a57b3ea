//! Every function is charged for the values that it creates and reads: each of these texts would take
//! minutes or gigabytes, and exceeds a budget.

use std::sync::atomic::{AtomicUsize, Ordering};

use rstest::rstest;

use super::parse;
use crate::limits::{Interrupt, Interrupted, LimitReached, MAX_KEYS, MAX_NODES};
use crate::{Generator, Keys, Never, ParseErrorKind, RenderError, Root, Value};

fn failure(text: &str, interrupt: &dyn Interrupt) -> RenderError {
    let root = Value::from(serde_json::json!({"Name": "n"}));
    let template = parse("loop.yaml", text).expect("a template");
    // A few keys are left: to make as many as the budget allows takes seconds.
    let keys = Keys::default();
    keys.charge(MAX_KEYS - 24).expect("a budget");
    let generator = Generator::new(jiff::Timestamp::UNIX_EPOCH, [7; 32]).with_keys(&keys);
    template.render_with(&Root::from(&root), &generator, interrupt).expect_err("a bound is reached")
}

/// A loop around one action, which begins in line 3; `$a` is 100,000 bytes, `$b` half of it and another byte.
fn looped(action: &str) -> String {
    format!(
        "{{{{ $a := repeat 100000 \"a\" }}}}{{{{ $b := print (repeat 50000 \"a\") \"b\" }}}}\n\
         {{{{ $d := dict \"k\" $a }}}}{{{{ $l := list $a $a $b }}}}\n\
         {{{{ range $i := until 100000 }}}}{{{{ $x := {action} }}}}{{{{ end }}}}"
    )
}

#[rstest]
#[case::contains("contains $b $a")]
#[case::prefix("hasPrefix $a $a")]
#[case::suffix("hasSuffix $a $a")]
#[case::equal("eq $a $a")]
#[case::less("lt $a $a")]
#[case::deep_equal("deepEqual $l $l")]
#[case::has("has $b $l")]
#[case::uniq("uniq $l")]
#[case::sort("sortAlpha $l")]
#[case::joined("join \",\" $l")]
#[case::truncated("trunc 99999 $a")]
#[case::cut("substr 1 99999 $a")]
#[case::trimmed("trim $a")]
#[case::trimmed_all("trimAll \"b\" $a")]
#[case::trimmed_end("trimSuffix \"b\" $a")]
#[case::upper("upper $a")]
#[case::camel("camelcase $a")]
#[case::snake("snakecase $a")]
#[case::nospace("nospace $a")]
#[case::initials("initials $a")]
#[case::abbreviated("abbrev 99999 $a")]
#[case::wrapped("wrapWith 1 \"x\" $a")]
#[case::quoted("quote $a")]
#[case::printed("printf \"%q\" $a")]
#[case::hex("printf \"%x\" $a")]
#[case::wide("printf \"%01000000d\" 1")]
#[case::precise("printf \"%.1000000f\" 1.5")]
#[case::split("splitList \"\" $a")]
#[case::split_by_number("split \"\" $a")]
#[case::replaced("replace \"b\" \"c\" $a")]
#[case::indented("nindent 10 $a")]
#[case::encoded("b64enc $a")]
#[case::decoded("b64dec $a")]
#[case::sum("sha256sum $a")]
#[case::checksum("adler32sum $a")]
#[case::json("toJson $l")]
#[case::yaml("toYaml $l")]
#[case::escaped("html $a")]
#[case::url("urlParse $a")]
#[case::date("date $a 0")]
#[case::semver("semver (print \"1.0.0-\" $a)")]
#[case::matched("regexMatch \"c\" $a")]
#[case::found("regexFindAll \"a\" $a -1")]
#[case::replaced_by_pattern("regexReplaceAll \"(a)\" $a \"$1\"")]
#[case::split_by_pattern("regexSplit \"a\" $a -1")]
#[case::quadratic("regexFindAll \"a(?:.*b)?\" $a -1")]
#[case::merged("merge (dict) (dict \"k\" (until 1000))")]
#[case::copied("deepCopy (until 1000)")]
#[case::numbers("untilStep 0 10000 1")]
#[case::zone("dateInZone \"2006\" 0 \"Europe/Berlin\"")]
#[case::now("date $a now")]
#[case::parsed("toDate $a $a")]
#[case::method("(toDate \"2006\" \"2026\").Format $a")]
#[case::duration("date_modify $a (toDate \"2006\" \"2026\")")]
#[case::drawn("randAlphaNum 1000")]
#[case::drawn_letters("randAlpha 1000")]
#[case::drawn_digits("randNumeric 1000")]
#[case::drawn_characters("randAscii 1000")]
#[case::shuffled("shuffle $a")]
#[case::uuid("uuidv4")]
#[case::encrypted("encryptAES $a $a")]
#[case::decrypted("decryptAES \"a\" (b64enc $a)")]
#[case::password("derivePassword 1 \"pin\" $a $a $a")]
#[case::key("genPrivateKey \"ecdsa\"")]
#[case::large_key("genPrivateKey \"rsa\"")]
#[case::other_key("genPrivateKey \"dsa\"")]
#[case::authority("genCA $a 1")]
#[case::self_signed("genSelfSignedCert $a nil nil 1")]
#[case::signed("genSignedCert \"a\" nil nil 1 (genCA \"a\" 1)")]
fn every_function_pays(#[case] action: &str) {
    let error = failure(&looped(action), &Never).to_string();
    let is_budget = |limit: LimitReached| error.ends_with(&limit.to_string());
    assert!(error.starts_with("template: loop.yaml:3:"), "{error}");
    let is_key = error.contains("of this task is over its budget");
    assert!(is_budget(LimitReached::Made) || is_budget(LimitReached::Work) || is_key, "{error}");
}

/// A call is charged for its result and its input before it runs.
#[rstest]
#[case::pattern("regexMatch `(\\pL{60}){60}` \"x\"", LimitReached::Pattern)]
#[case::long_pattern("regexMatch (repeat 3000 \"x\") \"x\"", LimitReached::Pattern)]
#[case::groups("regexReplaceAll (print (repeat 600 \"()\") `\\pL{40}`) \"x\" \"$1\"", LimitReached::Pattern)]
#[case::states_times_text("regexMatch `\\pL{10}b` (repeat 200000 \"a\")", LimitReached::Work)]
#[case::quadratic_uniq("uniq (until 100000)", LimitReached::Work)]
#[case::yaml_indentation("toYaml (splitList \"\" (repeat 1000000 \"a\"))", LimitReached::Made)]
#[case::constraints("semverCompare (repeat 200000 \"1,\") \"1\"", LimitReached::Made)]
#[case::parts("splitList \"\" (repeat 2000000 \"a\")", LimitReached::Made)]
#[case::entries("split \"\" (repeat 1000000 \"a\")", LimitReached::Made)]
fn one_call_is_charged_before_it_is_done(#[case] action: &str, #[case] limit: LimitReached) {
    let error = failure(&format!("\n\n{{{{ $x := {action} }}}}"), &Never).to_string();
    assert!(error.starts_with("template: loop.yaml:3:") && error.ends_with(&limit.to_string()), "{error}");
}

/// A loop compiles its pattern once, even if it is rejected.
#[test]
fn a_pattern_is_compiled_once() {
    let root = Value::Nil;
    let text =
        "{{ range until 5000 }}{{ if regexMatch `^\\pL{20}$` \"x\" }}{{ fail \"no\" }}{{ end }}{{ end }}";
    let template = parse("f", text).expect("a template");
    assert_eq!(template.render(&Root::from(&root), &Never), Ok(String::new()));
}

#[test]
fn values_are_charged_when_they_are_handed_over() {
    let root = Value::from(serde_json::json!({"Params": {"A": "x".repeat(40 << 20)}}));
    let template = parse("f", "x").expect("a template");
    let error = template.render(&Root::from(&root), &Never).expect_err("too large").to_string();
    assert!(error.ends_with(&LimitReached::Made.to_string()), "{error}");
}

#[derive(Debug)]
struct After {
    left: AtomicUsize,
    why: Interrupted,
}

impl Interrupt for After {
    fn interrupted(&self) -> Option<Interrupted> {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        (left == 0).then_some(self.why)
    }
}

#[rstest]
#[case::before_anything("x{{ .Name }}", 0)]
#[case::loops("{{ range 1000000000 }}{{ end }}", 20)]
#[case::lists("{{ $x := uniq (until 100000) }}", 60)]
#[case::matches("{{ $x := regexFindAll \"a\" (repeat 300000 \"a\") -1 }}", 20)]
fn an_interrupt_ends_the_work_for_now(#[case] text: &str, #[case] asked: usize) {
    for why in [Interrupted("took too long"), Interrupted("ends with the process")] {
        let error = failure(text, &After { left: AtomicUsize::new(asked), why });
        assert!(error.is_transient(), "{error}");
        let shown = error.to_string();
        assert!(shown.starts_with("template: loop.yaml:1:") && shown.ends_with(&why.to_string()), "{shown}");
    }
    assert!(!failure("{{ fail \"no\" }}", &Never).is_transient());
}

#[rstest]
#[case::message("{{ fail (repeat 1000000 \"x\") }}")]
#[case::value("{{ range (print (repeat 1000000 \"x\") \"y\") }}{{ end }}")]
fn an_error_shows_a_bounded_text(#[case] text: &str) {
    let error = failure(text, &Never).to_string();
    assert!(error.len() < 4096, "{}", error.len());
}

#[rstest]
#[case("%.100000f", 100_002)]
#[case("%.100000e", 100_006)]
#[case("%.100000g", 3)]
#[case("%100000.70000x", 100_000)]
fn a_format_may_ask_for_more_digits_than_there_are(#[case] format: &str, #[case] length: usize) {
    let template = parse("f", &format!("{{{{ printf \"{format}\" 1.5 }}}}")).expect("a template");
    let text = template.render(&Root::default(), &Never).expect("rendered");
    assert_eq!(text.len(), length);
}

#[test]
fn a_code_point_may_be_wide() {
    let template = parse("f", "{{ printf \"%.100000U\" 1 }}").expect("a template");
    assert_eq!(template.render(&Root::default(), &Never).expect("rendered").len(), 100_002);
}

#[rstest]
#[case::actions("{{.}}")]
#[case::texts("x{{.}}")]
#[case::variables("{{$x := 1}}")]
#[case::assignments("{{$ = 1}}")]
fn a_text_has_a_bounded_number_of_nodes(#[case] piece: &str) {
    assert!(parse("f", &piece.repeat(10_000)).is_ok());
    let error = parse("f", &piece.repeat(MAX_NODES)).expect_err("too many");
    assert_eq!(error.kind, ParseErrorKind::TooLarge(MAX_NODES));
    assert!(parse("f", &format!("{{{{ {} }}}}", "1 ".repeat(MAX_NODES))).is_err());
}

#[test]
fn what_cannot_be_parsed_shows_a_bounded_text() {
    for text in [format!("{{{{ {} }}}}", "x".repeat(100_000)), format!("{{{{ ${} }}}}", "x".repeat(100_000))]
    {
        let error = parse("f", &text).expect_err("no template");
        assert!(error.to_string().len() < 2048, "{}", error.to_string().len());
    }
}

/// One that fails ends the loop, so it takes a certificate that is one.
#[test]
fn a_given_certificate_is_paid_for() {
    let text = "{{ $c := genCA \"a\" 1 }}{{ $cert := b64enc $c.Cert }}{{ $key := b64enc $c.Key }}\n\n\
                {{ range until 100000 }}{{ $x := buildCustomCert $cert $key }}{{ end }}";
    let error = failure(text, &Never).to_string();
    assert!(error.starts_with("template: loop.yaml:3:") && error.contains("the budget of"), "{error}");
}
