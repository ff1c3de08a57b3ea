//! `$(NAME)` in the value of a variable, as the kubelet expands it
//! (`third_party/forked/golang/expansion`): `$$` is a dollar sign, and what cannot be read as a
//! reference stays as it is.

/// A piece of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text.
    Text(&'a str),
    /// A reference; the name between the brackets.
    Reference(&'a str),
}

/// The pieces of a value.
pub fn pieces(value: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        if !before.is_empty() {
            found.push(Piece::Text(before));
        }
        let (piece, left) = match after.as_bytes().first() {
            Some(b'$') => (Piece::Text("$"), &after[1..]),
            Some(b'(') => match after.find(')') {
                Some(end) => (Piece::Reference(&after[1..end]), &after[end + 1..]),
                None => (Piece::Text("$("), &after[1..]),
            },
            _ => (Piece::Text("$"), after),
        };
        found.push(piece);
        rest = left;
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest));
    }
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn expand(value: &str) -> String {
        let text = |piece| match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Reference("A") => "a".to_owned(),
            Piece::Reference(other) => format!("$({other})"),
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
