//! `$(NAME)` in the value of a variable, as the kubelet expands it
//! (`third_party/forked/golang/expansion`): `$$` is a dollar sign, and text that is no valid reference
//! stays as it is.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePiece<'a> {
    Text(&'a str),
    /// A reference; the name between the brackets.
    Reference(&'a str),
}

pub fn pieces(value: &str) -> Vec<ValuePiece<'_>> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        if !before.is_empty() {
            found.push(ValuePiece::Text(before));
        }
        let (piece, left) = match after.as_bytes().first() {
            Some(b'$') => (ValuePiece::Text("$"), &after[1..]),
            Some(b'(') => match after.find(')') {
                Some(end) => (ValuePiece::Reference(&after[1..end]), &after[end + 1..]),
                None => (ValuePiece::Text("$("), &after[1..]),
            },
            _ => (ValuePiece::Text("$"), after),
        };
        found.push(piece);
        rest = left;
    }
    if !rest.is_empty() {
        found.push(ValuePiece::Text(rest));
    }
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn expand(value: &str) -> String {
        let text = |piece| match piece {
            ValuePiece::Text(text) => text.to_owned(),
            ValuePiece::Reference("A") => "a".to_owned(),
            ValuePiece::Reference(other) => format!("$({other})"),
        };
        pieces(value).into_iter().map(text).collect()
    }

    /// Rows of the kubelet's own table (`expand_test.go`).
    #[rstest]
    #[case("$(A)", "a")]
    #[case("___$(A)___", "___a___")]
    #[case("$(B)", "$(B)")]
    #[case("$$(A)", "$(A)")]
    #[case("$$$(A)", "$a")]
    #[case("$$$$(A)", "$$(A)")]
    #[case("$(A", "$(A")]
    #[case("$", "$")]
    #[case("$$", "$")]
    #[case("$A", "$A")]
    #[case("foo$", "foo$")]
    #[case("$($(A)", "$($(A)")]
    #[case("$()", "$()")]
    #[case("\u{e9}$\u{e9}$(A)", "\u{e9}$\u{e9}a")]
    fn as_the_kubelet(#[case] value: &str, #[case] expanded: &str) {
        assert_eq!(expand(value), expanded);
    }
}
