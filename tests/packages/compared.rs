//! Templates beside Go's own engine with sprig 2.22.0 (`tests/peers/gotemplate`): the same bytes, or an error on both
//! sides. What is random or depends on the time is compared by its shape.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use go_template::{Generator, Never, Root, Value};
use interlock_kudo::package::functions;
use rstest::rstest;
use serde::Deserialize;
use serde_json::json;

use crate::{grid, process, templates};

static PEER: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/gotemplate/build"));

/// A template and its values.
#[derive(Clone, Debug)]
pub struct Pair {
    pub name: String,
    pub template: String,
    pub data: serde_json::Value,
}

impl Pair {
    /// What Interlock renders.
    pub fn render(&self) -> Result<String, String> {
        let template = functions::parse(&self.name, &self.template).map_err(|error| error.to_string())?;
        let generator = Generator::new("2026-11-25T21:00:00Z".parse().unwrap(), [7; 32]);
        let data = Value::from(self.data.clone());
        template.render_with(&Root::from(&data), &generator, &Never).map_err(|error| error.to_string())
    }
}

/// What Go says to these requests, in their order.
fn go(requests: Vec<serde_json::Value>) -> Vec<Result<String, String>> {
    #[derive(Deserialize)]
    struct Answer {
        output: String,
        error: Option<String>,
    }
    let mut child = Command::new(PEER.join("gotemplate"))
        // The local zone of a pod.
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gotemplate starts");
    let mut stdin = BufWriter::new(child.stdin.take().expect("it has a stdin"));
    let writer = std::thread::spawn(move || {
        requests.iter().for_each(|request| writeln!(stdin, "{request}").expect("it reads"));
    });
    let stdout = BufReader::new(child.stdout.take().expect("it has a stdout"));
    let answers = stdout.lines().map(|line| {
        let answer: Answer = serde_json::from_str(&line.expect("UTF-8")).expect("an answer");
        answer.error.map_or(Ok(answer.output), Err)
    });
    let answers = answers.collect();
    writer.join().expect("all requests are written");
    assert!(child.wait().expect("it ends").success());
    answers
}

fn both(pairs: &[Pair]) -> Vec<[Result<String, String>; 2]> {
    let request = |pair: &Pair| json!({"name": pair.name, "template": pair.template, "data": pair.data});
    let go = go(pairs.iter().map(request).collect());
    assert_eq!(go.len(), pairs.len());
    pairs.iter().map(Pair::render).zip(go).map(|(ours, go)| [ours, go]).collect()
}

/// A text that is not UTF-8 cannot be YAML, and fails.
fn is_named_difference(ours: &Result<String, String>, go: &Result<String, String>) -> bool {
    let not_text = ours.as_ref().is_err_and(|error| error.contains("the rendered text is not UTF-8"));
    not_text && go.as_ref().is_ok_and(|text| text.contains('\u{fffd}'))
}

/// Counts how pairs compare; prints those that differ.
#[track_caller]
fn compare(what: &str, pairs: &[Pair]) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut differ = Vec::new();
    for (pair, [ours, go]) in pairs.iter().zip(both(pairs)) {
        let kind = match (&ours, &go) {
            (Ok(a), Ok(b)) if a == b => "same text",
            (Err(a), Err(b)) if a == b => "same error",
            (Err(_), Err(_)) => "an error on both sides",
            _ if is_named_difference(&ours, &go) => "not UTF-8, which only Go renders",
            _ => {
                differ.push(format!("{}\n  Go   {go:?}\n  ours {ours:?}", pair.template));
                "different"
            }
        };
        *counts.entry(kind).or_default() += 1;
    }
    println!("{what}: {} pairs: {counts:?}", pairs.len());
    let shown: Vec<String> = differ.iter().take(1000).cloned().collect();
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), pairs.len(), shown.join("\n"));
}

/// Cases that were written by hand; their values are shared unless they have others.
fn written() -> Vec<Pair> {
    #[derive(Deserialize)]
    struct Cases {
        root: serde_json::Value,
        cases: Vec<Case>,
    }
    #[derive(Deserialize)]
    struct Case {
        template: String,
        data: Option<serde_json::Value>,
    }
    let text = include_str!("../../crates/go-template/tests/data/cases.json");
    let Cases { root, cases } = serde_json::from_str(text).expect("cases are JSON");
    let pair = |case: Case| Pair {
        name: "file.yaml".to_owned(),
        template: case.template,
        data: case.data.unwrap_or_else(|| root.clone()),
    };
    cases.into_iter().map(pair).collect()
}

#[test]
fn cases_written_by_hand_render_as_in_go() {
    let pairs = written();
    assert!(pairs.len() > 1000);
    compare("by hand", &pairs);
}

#[test]
fn every_function_answers_as_in_go() {
    let pairs = grid::all();
    assert!(pairs.len() > 10_000, "{}", pairs.len());
    compare("grid", &pairs);
}

#[test]
fn real_packages_render_as_in_go() {
    let Some(pairs) = templates::all() else { return };
    compare("real packages", &pairs);
}

/// Functions whose results are random or depend on the time, but for their shape.
#[rstest]
#[case::alphanumeric("randAlphaNum 40", "alphanumeric 40")]
#[case::alphabetic("randAlpha 40", "alphabetic 40")]
#[case::numeric("randNumeric 40", "numeric 40")]
#[case::ascii("randAscii 40", "ascii 40")]
#[case::negative("randAlpha -1", "numeric 0")]
#[case::shuffle("shuffle \"bca\" | splitList \"\" | sortAlpha | join \"\"", "alphabetic 3")]
#[case::uuid("uuidv4", "uuid")]
#[case::now("now | date \"2006-01-02 15:04:05 -0700 MST\"", "date")]
#[case::now_with_an_offset("dateInZone \"2006-01-02 15:04:05 -0700 MST\" now \"Asia/Kolkata\"", "date")]
#[case::ago("ago now", "0s")]
#[case::encrypted("encryptAES \"a\" \"0123456789abcdef\" | b64dec | len", "numeric 2")]
#[case::decrypted("encryptAES \"a\" \"text\" | decryptAES \"a\"", "alphabetic 4")]
fn what_is_random_has_the_shape_of_go(#[case] action: &str, #[case] expected: &str) {
    let template = format!("{{{{ {action} }}}}");
    let pair = Pair { name: "f".to_owned(), template, data: json!({}) };
    for text in both(&[pair]).remove(0) {
        assert_eq!(shape(&text.expect("rendered")), expected);
    }
}

fn shape(text: &str) -> String {
    let all = |is: fn(char) -> bool| text.chars().all(is);
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let kind = match text {
        "0s" => return text.to_owned(),
        _ if groups == [8, 4, 4, 4, 12] && text[14..].starts_with('4') && "89ab".contains(&text[19..20]) => {
            return "uuid".to_owned();
        }
        _ if text.ends_with("UTC") || text.ends_with("IST") => {
            let digits = text.replace(|c: char| c.is_ascii_digit(), "0");
            assert_eq!(&digits[..26], "0000-00-00 00:00:00 +0000 ");
            return "date".to_owned();
        }
        _ if all(|c| c.is_ascii_digit()) => "numeric",
        _ if all(|c| c.is_ascii_alphabetic()) => "alphabetic",
        _ if all(|c| c.is_ascii_alphanumeric()) => "alphanumeric",
        _ if all(|c| matches!(c, ' '..='~')) => "ascii",
        _ => panic!("{text:?}"),
    };
    format!("{kind} {}", text.len())
}

/// Go reads what Interlock makes, and says the same of it as of what Go makes.
#[rstest]
#[case::authority("{{ $c := genCA \"ca\" 365 }}{{ $c.Cert }}{{ $c.Key }}")]
#[case::other_names("{{ $c := genCA \"c\u{e4} *\" 36500 }}{{ $c.Cert }}{{ $c.Key }}")]
#[case::no_name("{{ $c := genSelfSignedCert \"\" nil (list \"a.b\" \"*.c\") 1 }}{{ $c.Cert }}{{ $c.Key }}")]
#[case::self_signed(
    "{{ $c := genSelfSignedCert \"host\" (list \"10.0.0.1\" \"fd00::1\") (list) 30 }}{{ $c.Cert }}{{ $c.Key }}"
)]
#[case::signed(
    "{{ $ca := genCA \"ca\" 365 }}{{ $c := genSignedCert \"host\" (list \"::ffff:1.2.3.4\") (list \"a\") 30 $ca }}\
     {{ $ca.Cert }}{{ $ca.Key }}{{ $c.Cert }}{{ $c.Key }}"
)]
#[case::signed_by_one_given(
    "{{ $ca := genCA \"ca\" 365 }}{{ $ca = buildCustomCert ($ca.Cert | b64enc) ($ca.Key | b64enc) }}\
     {{ $c := genSignedCert \"ca\" nil nil 30 $ca }}{{ $ca.Cert }}{{ $ca.Key }}{{ $c.Cert }}{{ $c.Key }}"
)]
#[case::rsa("{{ genPrivateKey \"rsa\" }}")]
#[case::dsa("{{ genPrivateKey \"dsa\" }}")]
#[case::ecdsa("{{ genPrivateKey \"ecdsa\" }}")]
fn keys_are_as_go_makes_them(#[case] template: &str) {
    let pair = Pair { name: "f".to_owned(), template: template.to_owned(), data: json!({}) };
    let made = both(&[pair]).remove(0).map(|text| text.expect("rendered"));
    let inspected = go(made.map(|text| json!({"inspect": text})).into());
    assert_eq!(inspected[0], inspected[1]);
    let text = inspected[0].as_ref().expect("Go reads it");
    assert!(!text.contains("false, signed") && !text.contains("sound: false"), "{text}");
}

/// Each signs with what the other made.
#[test]
fn certificates_of_one_are_signed_with_those_of_the_other() {
    let made = Pair {
        name: "f".to_owned(),
        template: "{{ $c := genCA \"ca\" 9 }}{{ $c.Cert | b64enc }} {{ $c.Key | b64enc }}".to_owned(),
        data: json!({}),
    };
    let signed = both(&[made]).remove(0).map(|text| {
        let text = text.expect("rendered");
        let (cert, key) = text.split_once(' ').expect("two");
        Pair {
            name: "f".to_owned(),
            template: "{{ $ca := buildCustomCert .Cert .Key }}{{ $c := genSignedCert \"x\" nil nil 1 $ca }}\
                       {{ $ca.Cert }}{{ $c.Cert }}"
                .to_owned(),
            data: json!({"Cert": cert, "Key": key}),
        }
    });
    let texts: Vec<serde_json::Value> =
        both(&signed).into_iter().flatten().map(|text| json!({"inspect": text.expect("signed")})).collect();
    let said = go(texts);
    assert!(said[0].as_ref().is_ok_and(|text| text.matches("by the first").count() == 2), "{said:?}");
    assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
}
