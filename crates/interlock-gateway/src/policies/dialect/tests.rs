//! Verdicts on expressions. That they are Envoy's own is tested in `tests/envoy`.

use std::fmt::Write as _;

use crd_schema::syntax::{parse, tree::Expr, tree::LiteralValue};
use rstest::rstest;

use super::*;

#[rstest]
#[case("request.method == 'GET'")]
#[case("request.url_path.startsWith('/api/') && request.headers['x-tier'] != \"gold\"")]
#[case("has(request.headers.authorization) ? request.size > 10 : request.size >= 1.5")]
#[case("request.path.matches('^/v[0-9]+/[^/]+$')")]
#[case("source.address in ['10.0.0.1', '10.0.0.2']")]
#[case("'x-user' in request.headers")]
#[case("request.time.getHours('Europe/Berlin') < 8 || request.time - timestamp(0) > duration('1h')")]
#[case("metadata.filter_metadata['envoy.filters.http.ext_authz']['tier'] == 'gold'")]
#[case("xds.route_name == 'a' && !connection.mtls")]
#[case("has(request.methd) || has(source.nothing) || has(request.headers.none)")]
#[case("size(request.headers) > 10 || request.query.size() == 0")]
#[case("request['method'] == 'GET' && .request.host == 'a'")]
#[case("type(request.host) == string && dyn(1) == 1u")]
#[case("re.capture(request.path, '/([a-z]+)/.*') == 'api'")]
fn what_the_proxy_can_evaluate(#[case] expression: &str) {
    assert_eq!(check(expression, Use::Predicate), Verdict::Right);
}

#[rstest]
#[case::identity("auth.identity.userid == 'a'", "cannot evaluate auth; use a member")]
#[case::peer(
    "source.remote_address == 'a'",
    "cannot evaluate source.remote_address; use request.headers['x-envoy-external-address']"
)]
#[case::server_name("connection.tls_session.sni == 'a'", "use connection.requested_server_name")]
#[case::later("response.code == 200", "cannot evaluate response.code before it forwards the request")]
#[case::conversion("string(request.size) == '1'", "cannot evaluate string(); compare")]
#[case::case(
    "request.host.lowerAscii() == 'a'",
    "lowerAscii(); use matches() with a pattern that begins with (?i)"
)]
#[case::split("request.path.split('/')[1] == 'a'", "split(); use matches() or re.capture()")]
#[case::query("queryMap(request.query)['a'] == 'b'", "queryMap(); use request.query.matches()")]
#[case::form(
    "request.size.int() == 1",
    "cannot evaluate int() in this form; write int(a) in place of a.int()"
)]
#[case::as_function(
    "getHours(request.time) == 1",
    "getHours() in this form; write a.getHours() in place of getHours(a)"
)]
#[case::joined(
    "request.host + request.path == 'a'",
    "cannot evaluate + of string and string; give each value"
)]
#[case::optional_index("request.headers[?'a'].orValue('') == 'b'", "optional members; use has() and ? :")]
#[case::optional_member("request.?headers.hasValue()", "optional members")]
#[case::optional("optional.of('a').value() == 'a'", "optional.of(); use has()")]
#[case::exists("['a'].exists(x, x == request.host)", "the loops all, exists, exists_one, filter and map")]
#[case::filtered("size([1, 2].filter(n, n > 1)) == 1", "the loops")]
#[case::null("request.referer == null", "a comparison with null")]
#[case::message(
    "google.protobuf.Duration{seconds: 1} == duration('1s')",
    "the message google.protobuf.Duration"
)]
#[case::type_of_time(
    "type(request.time) == google.protobuf.Timestamp",
    "the type google.protobuf.Timestamp; compare with timestamp()"
)]
#[case::long_pattern("request.path.matches('^/[a-z]{98}$')", "a pattern that large")]
#[case::other_engine("request.path.matches('(?x) a')", "its pattern: RE2 has no (?x")]
#[case::unicode_class("request.path.matches('\\\\pL')", "a pattern that large")]
fn what_kuadrant_alone_can_evaluate(#[case] expression: &str, #[case] text: &str) {
    match check(expression, Use::Predicate) {
        Verdict::Unsupported(reason) => assert!(reason.contains(text), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::open("request.method == ", "does not parse: line 1, column 19: mismatched input '<EOF>'; write")]
#[case::second_line("true &&\n)", "does not parse: line 2, column 1: ")]
#[case::empty("", "does not parse")]
#[case::reserved("for == 1", "neither Envoy nor Kuadrant has for")]
#[case::root("reqest.method == 'GET'", "neither Envoy nor Kuadrant has reqest; did you mean request?")]
#[case::member(
    "request.methd == 'GET'",
    "neither Envoy nor Kuadrant has request.methd; did you mean request.method?"
)]
#[case::by_index("request['methd'] == 'GET'", "has request.methd; did you mean request.method?")]
#[case::asked_of_no_root(
    "has(reqest.method)",
    "neither Envoy nor Kuadrant has reqest; did you mean request?"
)]
#[case::no_root("method == 'GET'", "neither Envoy nor Kuadrant has method; did you mean request.method")]
#[case::nothing_like_it("zzz", "has zzz; see the table of attributes")]
#[case::in_a_loop("['a'].exists(x, x == reqest.host)", "has reqest;")]
#[case::function("request.path.startWith('/')", "has the function startWith(); did you mean startsWith?")]
#[case::no_function("foo(1)", "has the function foo(); see the table of functions")]
#[case::count("request.path.contains()", "contains() is called with 1 arguments")]
#[case::plus("1 + 'a' == 'x'", "+ has no form for int and string")]
#[case::hyphen(
    "request.headers.x-user == 'a'",
    "request.headers.x-user is a subtraction; write request.headers['x-user']"
)]
#[case::hyphen_before_a_call("request.headers.x-user.startsWith('a')", "write request.headers['x-user']")]
#[case::hyphens("request.headers.x-user-id == 'a'", "write request.headers['x-user-id']")]
#[case::unsigned("1 + 1u == 2", "+ has no form for int and uint")]
#[case::and("true && 1", "&& has no form for bool and int")]
#[case::size("size(1) == 1", "size() has no form for int")]
#[case::never_equal("request.size == '1'", "an int never equals a string")]
#[case::inside("'a' in 'abc'", "in has no form for a string; use contains()")]
#[case::condition("request.size ? true : false", "the condition of ? : is an int")]
#[case::value("request.host", "is a string, and a predicate has to be a bool")]
#[case::uncalled("request.host.startsWith", "a string has no member startsWith; leave it out, or call it")]
#[case::number_as_index(
    "request.headers[1] == 'a'",
    "a map of strings has no member by an int; use a string"
)]
#[case::look_ahead("request.path.matches('(?=a)')", "has a pattern that RE2 refuses: RE2 has no (?=")]
#[case::group("request.path.matches('(')", "has a pattern that RE2 refuses: unclosed group")]
#[case::reference("request.path.matches('(a)\\\\1')", "RE2 has no references to groups")]
fn what_can_never_act(#[case] expression: &str, #[case] text: &str) {
    match check(expression, Use::Predicate) {
        Verdict::Refused(reason) => assert!(reason.contains(text), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::text("request.headers['x-user']", Use::Counter, "")]
#[case::boolean("request.method == 'GET'", Use::Counter, "")]
#[case::map("request.headers", Use::Counter, "cannot evaluate a map of strings; count by one of its members")]
#[case::misspelt("request.heders", Use::Counter, "neither Envoy nor Kuadrant has request.heders")]
#[case::map_for_auth("request.headers", Use::AuthValue, "")]
#[case::untyped_for_auth("request.size == '1'", Use::AuthPredicate, "")]
#[case::misspelt_for_auth("request.methd == 'GET'", Use::AuthPredicate, "has request.methd")]
#[case::text_for_auth("'a'", Use::AuthPredicate, "has to be a bool")]
#[case::identity("auth.identity.admin == true", Use::AuthPredicate, "")]
#[case::strings("request.host.lowerAscii().split('.')[0] + string(1) == 'a'", Use::AuthPredicate, "")]
#[case::loops("auth.identity.groups.exists(group, group == 'a')", Use::AuthPredicate, "")]
#[case::null("auth.identity.name == null", Use::AuthPredicate, "")]
#[case::of_the_proxy(
    "connection.mtls",
    Use::AuthPredicate,
    "the auth server cannot evaluate connection.mtls; use"
)]
#[case::other_name(
    "request.useragent",
    Use::AuthValue,
    "request.useragent; did you mean request.user_agent?"
)]
#[case::query_map(
    "queryMap(request.query)['a']",
    Use::AuthValue,
    "the auth server cannot evaluate queryMap()"
)]
#[case::optional("auth.?identity.orValue('a')", Use::AuthValue, "")]
#[case::optional_macro("request.headers[?'x'].optMap(v, v == 'a').orValue(false)", Use::AuthPredicate, "")]
#[case::folded_range("request.path.matches('(?i)[k-\\\\x{10ff00}]')", Use::Predicate, "a pattern that large")]
#[case::folded_ascii("request.path.matches('(?i)^/api/[a-z]+$')", Use::Predicate, "")]
#[case::of_kuadrants_examples("source.id == source.address", Use::Predicate, "cannot evaluate source.id")]
#[case::unicode_class("request.path.matches('\\\\pL{200}')", Use::AuthPredicate, "")]
#[case::other_engine("request.path.matches('(?x)a')", Use::AuthPredicate, "RE2 refuses: RE2 has no (?x")]
#[case::of_selectors_alone("context.request.http.path == '/'", Use::AuthPredicate, "context")]
fn by_use(#[case] expression: &str, #[case] of: Use, #[case] text: &str) {
    match check(expression, of) {
        Verdict::Right => assert_eq!(text, ""),
        Verdict::Unsupported(reason) | Verdict::Refused(reason) => {
            assert!(!text.is_empty() && reason.contains(text), "{reason}");
        }
    }
}

/// Each bound has an outcome, and none of what is within them overflows the stack of a small thread.
#[rstest]
#[case::bytes(format!("'{}' == 'a'", "a".repeat(MAX_BYTES)), "more than 4096 bytes")]
#[case::members(format!("request{}", ".a".repeat(1000)), "more than 512 operators")]
#[case::brackets("[".repeat(500), "nests deeper")]
#[case::sum(format!("1{} == 1", "+1".repeat(500)), "more than 24 levels")]
#[case::calls(format!("'a'{} == 1", ".size()".repeat(250)), "no form for int")]
#[case::headers(format!("metadata.filter_metadata{} == 1", ".a".repeat(500)), "more than 24 levels")]
#[case::negation(format!("{}true", "!".repeat(511)), "")]
#[case::conditions(format!("{}true", "true ? true : ".repeat(60)), "more than 24 question marks")]
#[case::open_brackets(format!("{}true{}", "(')'<".repeat(40), ")".repeat(40)), "nests deeper than 24 levels")]
#[case::many_open_brackets("(')'<".repeat(120), "nests deeper than 24 levels")]
#[case::branches(format!("{}true", "true ? true : ".repeat(24)), "more than 24 levels")]
#[case::both(format!("{}1{}{} == 1", "(".repeat(20), "+1".repeat(200), ")".repeat(20)), "more than 24 levels")]
#[case::alternatives(vec!["request.host == 'a'"; 40].join(" || "), "")]
fn budgets(#[case] expression: String, #[case] text: &'static str) {
    let checked = std::thread::Builder::new().stack_size(2 << 20);
    let checked = checked.spawn(move || check(&expression, Use::Predicate)).unwrap();
    match checked.join().unwrap() {
        Verdict::Right => assert_eq!(text, ""),
        Verdict::Unsupported(reason) | Verdict::Refused(reason) => {
            assert!(!text.is_empty() && reason.contains(text), "{reason}");
        }
    }
}

/// The instructions are those that RE2 itself counts, plus what the estimate may be above them.
#[test]
fn the_size_of_a_pattern_is_not_underestimated() {
    // 100 instructions with the frame of 4: those of the pattern, and as many letters as have room.
    for (pattern, instructions) in MEASURED {
        let own = instructions - 4;
        let over = "a".repeat(97 - own);
        assert_eq!(
            pattern::check(&format!("{pattern}{over}")),
            Err(pattern::Refused::TooLarge),
            "{pattern} is taken with 101 instructions"
        );
        let room = 96_usize.saturating_sub(own + own / 2 + 2);
        assert_eq!(
            pattern::check(&format!("{pattern}{}", "a".repeat(room))),
            Ok(()),
            "{pattern} is overestimated"
        );
    }
}

/// Patterns, and what RE2 says is their size.
const MEASURED: [(&str, usize); 24] = [
    ("abc", 7),
    (".", 12),
    (".*", 12),
    ("[^a]", 12),
    ("[^/]+", 13),
    (r"\d+", 6),
    (r"\w", 7),
    (r"\w+", 8),
    (r"\S", 14),
    (r"\W", 15),
    ("[a-zA-Z0-9_-]", 8),
    ("(?i)abc", 7),
    ("(?i)k", 8),
    ("(?:a|bc|d)", 8),
    ("x{3}", 7),
    ("x{2,5}", 12),
    (".{5}", 44),
    ("é", 6),
    ("[é-ü]", 6),
    ("(a)", 7),
    ("a?", 6),
    (r"\bfoo\b", 9),
    ("(?s).", 11),
    (r"[^\x00-\x7f]", 10),
];

/// Every character of Unicode, in a literal: the parser reads the text that was written.
#[test]
fn a_literal_means_its_text() {
    let characters: Vec<char> = ('\0'..=char::MAX).collect();
    for part in characters.chunks(1_000) {
        let text: String = part.iter().collect();
        let written = literal(&text);
        assert!(written.is_ascii() && !written.contains(|c: char| c.is_control()));
        match parse(&written, 1).unwrap().expr {
            Expr::Literal(LiteralValue::String(read)) => assert_eq!(read.inner(), text),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(literal("a'b\"c\\d\n\u{e9}\u{1f600}"), r#""a'b\"c\\d\u000a\u00e9\U0001f600""#);
}

/// `docs/policies.md` has the tables as they are.
#[test]
fn the_page_has_the_tables() {
    let page = include_str!("../../../../../docs/policies.md");
    for table in [attribute_table(), function_table()] {
        assert!(page.contains(&table), "the page lacks:\n{table}");
    }
}

/// Attributes by their type, in the order of the tables.
fn attribute_table() -> String {
    let mut out = "| attributes of the request | type |\n|---|---|\n".to_owned();
    let mut kinds: Vec<Type> = Vec::new();
    for (_, kind) in ENVOY_ATTRIBUTES {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    for kind in kinds {
        let names =
            ENVOY_ATTRIBUTES.iter().filter(|(_, own)| *own == kind).map(|(name, _)| format!("`{name}`"));
        writeln!(out, "| {} | {kind} |", names.collect::<Vec<_>>().join(", ")).unwrap();
    }
    out
}

/// Functions by name, with the types that they take.
fn function_table() -> String {
    let mut out = "| function | takes | gives |\n|---|---|---|\n".to_owned();
    let of_name = |function: &&Function| function.form != Form::Operator;
    let mut names: Vec<&str> = ENVOY_FUNCTIONS.iter().filter(of_name).map(|function| function.name).collect();
    names.dedup();
    for name in names {
        let own: Vec<&Function> = ENVOY_FUNCTIONS.iter().filter(|function| function.name == name).collect();
        let takes = own.iter().map(|function| {
            let kinds = function.arguments.iter().map(ToString::to_string).collect::<Vec<_>>();
            match (function.form, kinds.split_first()) {
                (Form::Method, Some((of, []))) => format!("{of}`.{name}()`"),
                (Form::Method, Some((of, rest))) => format!("{of}`.{name}(`{}`)`", rest.join(", ")),
                _ => kinds.join(", "),
            }
        });
        let takes = takes.collect::<Vec<_>>().join("; ");
        let takes = takes
            .replace(&format!("`.{name}()`"), "")
            .replace(&format!("`.{name}(`"), ", ")
            .replace("`)`", "");
        let form = if own[0].form == Form::Method { "." } else { "" };
        writeln!(out, "| `{form}{name}()` | {takes} | {} |", own[0].result).unwrap();
    }
    out
}
