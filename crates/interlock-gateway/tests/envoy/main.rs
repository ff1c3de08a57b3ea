//! The tables of the dialect, entry by entry, beside what a real Envoy does with each expression: whether it takes a
//! configuration that has it, and which value it finds while it handles a request.
//!
//! What has a value only where the connection has TLS, or after the answer, is known to be taken, and no more.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod proxy;
mod samples;

use interlock_gateway::policies::dialect::{
    ENVOY_ATTRIBUTES, ENVOY_FUNCTIONS, Form, KUADRANT_ATTRIBUTES, KUADRANT_FUNCTIONS, LATER_ATTRIBUTES, Use,
    Verdict, check, literal,
};

use proxy::{refusals, values};
use samples::{kind, written};

fn is_unsupported(expression: &str) -> bool {
    matches!(check(expression, Use::Predicate), Verdict::Unsupported(_))
}

fn is_refused(expression: &str) -> bool {
    matches!(check(expression, Use::Predicate), Verdict::Refused(_))
}

/// Expressions that are right beside the entries of the tables: forms, literals, patterns of up to the largest size.
fn right() -> Vec<String> {
    let written = [
        "request['host'] == 'a' && .request.host == \"b\" || !(request.host in ['c'])",
        "has(request.headers.a) ? request.headers['b'] == '' : 'x-a' in request.headers",
        r"'\u00e9\U0001F600\x41\101\a\b\f\n\r\t\v\\\?\`\'' == r'\d' && b'\xff' != B'a'",
        "'''ab''' == \"\"\"cd\"\"\" && 0x1F == -1 && 1e3 == .5 && 18446744073709551615u > 1U",
        "{'a': 1, 'b': [true, null],}.a == 1 && [1, 2,][0] == 1 // a comment",
        "type(1) == int && type(1u) == uint && type(1.5) == double && type(b'') == bytes && type({}) == map",
        "type(true) == bool && type('') == string && type([]) == list && type(type(1)) == type",
        "type(null) == null_type && 1 in {1: 2} && request.time > timestamp('2024-01-01T00:00:00Z')",
        "metadata.filter_metadata['envoy.filters.http.ext_authz']['identity']['userid'] == 'a'",
        "request.path.matches('^/api/v[0-9]+/(users|orders)/[^/]+/?$') && matches(request.host, r'(?i)^www\\.')",
        r#"request.path.matches("\\bfoo\\b|[[:alpha:]_-]{2,5}|\\x{e9}|\\Qa(b\\E|(?P<n>a)|(?s:.)|(?<m>b)")"#,
    ];
    let mut right: Vec<String> = written.into_iter().map(str::to_owned).collect();
    let largest = |pattern: &str| {
        let of = |letters: usize| format!("request.path.matches('{pattern}{}')", "a".repeat(letters));
        (0..120).rev().map(of).find(|text| check(text, Use::Predicate) == Verdict::Right).unwrap()
    };
    right.extend(PATTERNS.map(largest));
    right.push(format!("{}true", "!".repeat(22)));
    right.push(format!("1{} == 1", "+1".repeat(22)));
    right.push(format!("{}true{}", "(".repeat(24), ")".repeat(24)));
    right.push(format!("metadata.filter_metadata{} == 1", ".a".repeat(20)));
    right.push(format!("{}true", "true ? true : ".repeat(23)));
    right.push(vec!["request.host == 'a'"; 60].join(" || "));
    right
}

/// What a pattern can begin with, of each kind of instruction.
const PATTERNS: [&str; 16] = [
    "",
    ".*",
    "[^/]+",
    "(?i)bearer [a-z]",
    "a|b|cd|e",
    "(a|b)*?",
    "x{3,9}",
    ".{5}",
    "[é-ü]?",
    "[^é]",
    "^/v[0-9]+/(users|orders)(/.*)?$",
    "[à-öø-ž]+",
    "((a?){3}b*){2}",
    "[一-龥]",
    "(?i)k[^s]",
    "(abc|abd|xyz)+",
];

#[test]
fn what_is_right_is_taken() {
    let mut expressions = right();
    expressions.extend(ENVOY_ATTRIBUTES.iter().chain(LATER_ATTRIBUTES).map(|(name, _)| (*name).to_owned()));
    expressions.extend(ENVOY_FUNCTIONS.iter().map(written));
    for expression in right() {
        assert_eq!(check(&expression, Use::Predicate), Verdict::Right, "{expression}");
    }
    for (name, _) in ENVOY_ATTRIBUTES {
        assert_eq!(check(&format!("type({name}) == int"), Use::Predicate), Verdict::Right, "{name}");
    }
    for (name, _) in LATER_ATTRIBUTES {
        assert!(is_unsupported(&format!("type({name}) == int")), "{name}");
    }
    for function in ENVOY_FUNCTIONS {
        let text = format!("type({}) == int", written(function));
        assert_eq!(check(&text, Use::Predicate), Verdict::Right, "{text}");
    }
    // All in one configuration, and each by itself where that is refused.
    if !refusals(&[expressions.clone()]).is_empty() {
        let each: Vec<Vec<String>> = expressions.into_iter().map(|expression| vec![expression]).collect();
        panic!("Envoy refuses {:#?}", refusals(&each));
    }
}

/// Attributes that a request on a plain connection does not have.
fn is_of_tls(name: &str) -> bool {
    name.contains("certificate") || name == "connection.tls_version"
}

#[test]
fn each_entry_has_a_value_of_its_type() {
    let attributes = ENVOY_ATTRIBUTES.iter().filter(|(name, _)| !is_of_tls(name));
    let mut asked: Vec<String> =
        attributes.map(|(name, of)| format!("type({name}) == {}", kind(*of, name))).collect();
    asked.extend(ENVOY_FUNCTIONS.iter().map(|function| {
        let text = written(function);
        format!("type({text}) == {}", kind(function.result, &text))
    }));
    asked.extend([
        "request.headers['X-User'] == 'alice' && 'x-user' in request.headers".to_owned(),
        "request.url_path == '/a/b' && request.query == 'q=1&r=2' && request.path == '/a/b?q=1&r=2'"
            .to_owned(),
        "1 == 1.0 && 1u == 1 && 1u < 2 && 1 <= 1.5 && !has(request.headers.none)".to_owned(),
        "!has(request.methd) && !has(source.nothing)".to_owned(),
        "re.capture(request.path, '/([a-z]+)/.*') == 'a' && xds.route_name == 'route'".to_owned(),
    ]);
    let found = values(&asked);
    let wrong: Vec<_> =
        asked.iter().zip(&found).filter(|(_, value)| value.as_deref() != Some("true")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_not_right_is_refused_or_has_no_value() {
    let calls = KUADRANT_FUNCTIONS.iter().filter(|(function, _)| function.form != Form::Operator);
    let mut unsupported: Vec<String> = calls.map(|(function, _)| written(function)).collect();
    unsupported.extend(
        [
            "['a'].exists(x, true)",
            "['a'].all(x, true)",
            "size(['a'].filter(x, true)) == 1",
            "size(['a'].map(x, x)) == 1",
            "['a'].exists_one(x, true)",
            "request.size.int() == 1",
            "getHours(request.time) == 1",
            "request.headers[?'a'] == 'b'",
            "request.?headers == 'b'",
            "[?request.headers['a']] == []",
            "{?'a': request.headers['a']} == {}",
            "request.path.matches('(?x)a')",
            r"request.path.matches('\\pL')",
            "request.path.matches('[a-z]{98}')",
            "request.path.matches('(.{9}){9}')",
        ]
        .map(str::to_owned),
    );
    unsupported.push(format!("1{} == 1", "+1".repeat(40)));
    for text in &unsupported {
        assert!(is_unsupported(&format!("type({text}) == int")), "{text}: {:?}", check(text, Use::Predicate));
    }
    let refused = [
        "foo(1) == 1",
        "request.foo() == 1",
        "startsWith(request.path) == 1",
        "'a'.contains('b', 'c')",
        "request.path.matches('(')",
        "request.path.matches('(?=a)')",
        r"request.path.matches('(a)\\1')",
        r"'\q' == ''",
        "request.in == 1",
        "1. == 1.0",
        "a ? b",
    ];
    for text in refused {
        assert!(is_refused(text), "{text}: {:?}", check(text, Use::Predicate));
    }
    let mut each: Vec<Vec<String>> = unsupported.into_iter().map(|text| vec![text]).collect();
    each.extend(refused.map(|text| vec![text.to_owned()]));
    let refused = refusals(&each);
    let taken: Vec<_> = each.iter().filter(|one| !refused.iter().any(|(own, _)| own == *one)).collect();
    assert!(taken.is_empty(), "Envoy takes {taken:#?}");
}

#[test]
fn what_is_taken_without_a_value() {
    let mut unsupported: Vec<String> =
        KUADRANT_ATTRIBUTES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let operators = KUADRANT_FUNCTIONS.iter().filter(|(function, _)| function.form == Form::Operator);
    unsupported.extend(operators.map(|(function, _)| written(function)));
    unsupported.push("request.headers['none'] == null".to_owned());
    for text in &unsupported {
        assert!(is_unsupported(&format!("type({text}) == int")), "{text}");
    }
    let refused = [
        "request.methd",
        "reqest.method",
        "request['methd']",
        "1 + 'a' == 'x'",
        "1 + 1u",
        "1 + 1.0",
        "true && 1",
        "!1",
        "-'a'",
        "-1u",
        "5.0 % 2.0",
        "1 ? 1 : 2",
        "size(1)",
        "'abc' in 'abcd'",
        "[1] < [2]",
        "1 < 'a'",
        "2 * duration('1s')",
        "bool(1)",
        "duration(1)",
        "request.host.startsWith",
        "request.headers.contains('a')",
        "startsWith(request.size, 'a')",
    ];
    for text in refused {
        assert!(is_refused(&format!("type({text}) == int")), "{text}");
    }
    unsupported.extend(refused.map(str::to_owned));
    let found = values(&unsupported);
    let wrong: Vec<_> = unsupported.iter().zip(&found).filter(|(_, value)| value.is_some()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is never equal is no error in Envoy: it is false, or true with `!=`.
#[test]
fn what_is_never_equal_is_so_in_envoy() {
    let never = ["request.size == '1'", "request.host == 1", "connection.mtls == 'false'", "[1] == 'a'"];
    for text in never {
        assert!(is_refused(text), "{text}");
    }
    assert_eq!(values(&never.map(str::to_owned)), vec![Some("false".to_owned()); never.len()]);
}

#[test]
fn a_literal_means_its_text() {
    let texts = [
        "a'b\"c\\d",
        "line\nline\r\t\0\u{7f}",
        "\u{e9}\u{2028}\u{202e}\u{ffff}\u{1f600}\u{10ffff}",
        "100% ${a} {{b}}",
        "",
    ];
    let bytes = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let asked = texts.map(|text| format!("bytes({}) == b'{}'", literal(text), bytes(text)));
    assert_eq!(values(&asked), vec![Some("true".to_owned()); texts.len()]);
}
