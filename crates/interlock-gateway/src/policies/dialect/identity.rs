//! What authentication found out about a request, in expressions of limits.
//!
//! Kuadrant names it `auth.NAME`, NAME being one of `response.success.filters` of an AuthPolicy. The proxy has it in the
//! metadata of its filter of authentication.

use std::collections::BTreeSet;

/// Where the proxy has it.
const METADATA: &str = "metadata.filter_metadata['envoy.filters.http.ext_authz']";
const AUTH: &str = "auth";

/// An expression as the proxy evaluates it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// The expression.
    pub text: String,
    /// The NAMEs that it has.
    pub names: BTreeSet<String>,
}

/// An expression with the place in the metadata in place of `auth.NAME`.
pub fn located(expression: &str) -> Located {
    let mut found = Located { text: String::with_capacity(expression.len()), names: BTreeSet::new() };
    let mut rest = expression;
    let mut is_member = false;
    while let Some(first) = rest.chars().next() {
        let token = token(rest, found.text.ends_with(['r', 'R']));
        let (own, after) = rest.split_at(token);
        match member(after).filter(|_| own == AUTH && !is_member) {
            Some(name) => {
                found.text.push_str(METADATA);
                found.names.insert(name.to_owned());
            }
            None => found.text.push_str(own),
        }
        if !first.is_whitespace() {
            is_member = own == ".";
        }
        rest = after;
    }
    found
}

/// The name after a point.
fn member(text: &str) -> Option<&str> {
    let name = text.trim_start().strip_prefix('.')?.trim_start();
    let length = word(name);
    (length > 0).then(|| &name[..length])
}

/// Bytes of a word at the beginning.
fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Bytes of the first token; a text or a comment is one.
fn token(text: &str, is_raw: bool) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        if let Some(inner) = text.strip_prefix(quote) {
            return quote.len() + literal(inner, quote, is_raw);
        }
    }
    match word(text) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        word => word,
    }
}

/// Bytes of a text up to the end of its quotation.
fn literal(inner: &str, quote: &str, is_raw: bool) -> usize {
    let mut at = 0;
    while let Some(c) = inner[at..].chars().next() {
        if inner[at..].starts_with(quote) {
            return at + quote.len();
        }
        at += c.len_utf8();
        if c == '\\' && !is_raw {
            at += inner[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("auth.identity.userid == 'a'", "M.identity.userid == 'a'", "identity")]
    #[case("has(auth . plan.tier)", "has(M . plan.tier)", "plan")]
    #[case("auth.a.b + auth.c.d", "M.a.b + M.c.d", "a c")]
    #[case("request.auth.identity", "request.auth.identity", "")]
    #[case("'auth.identity' == \"auth.b\"", "'auth.identity' == \"auth.b\"", "")]
    #[case(r#"'\' auth.a' == auth.b"#, r#"'\' auth.a' == M.b"#, "b")]
    #[case(r#"r'\' == auth.b"#, r#"r'\' == M.b"#, "b")]
    #[case("'''it's auth.a''' == auth.b", "'''it's auth.a''' == M.b", "b")]
    #[case("auth['identity']", "auth['identity']", "")]
    #[case("authority.a", "authority.a", "")]
    #[case("true // auth.a\n&& auth.b", "true // auth.a\n&& M.b", "b")]
    #[case("'é' == auth.a", "'é' == M.a", "a")]
    #[case("'open auth.a", "'open auth.a", "")]
    fn what_authentication_found_is_in_the_metadata(
        #[case] expression: &str,
        #[case] text: &str,
        #[case] names: &str,
    ) {
        let found = located(expression);
        assert_eq!(found.text, text.replace('M', METADATA));
        assert_eq!(found.names.into_iter().collect::<Vec<_>>().join(" "), names);
    }
}
