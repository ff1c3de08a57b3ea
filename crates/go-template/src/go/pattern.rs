//! Go's syntax of regular expressions, rewritten where that of the `regex` crate differs: `\d \w \s \b` are
//! ASCII in Go, a bracket within brackets is an ordinary character, and `\Q…\E` quotes.

type Chars<'p> = std::iter::Peekable<std::str::Chars<'p>>;

/// Context of a character in a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside a class.
    Outside,
    /// In a class, at the start of a character, a range or a named class.
    Start,
    /// In a class, after a character that may start a range.
    Behind,
    /// In a class, after the `-` of a range.
    End,
}

impl Place {
    /// The context after a character of a class.
    fn next(self) -> Self {
        if self == Self::End { Self::Start } else { Self::Behind }
    }
}

/// Translates a Go pattern for the `regex` crate.
pub fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut place = Place::Outside;
    while let Some(c) = chars.next() {
        place = match place {
            Place::Outside => outside(c, &mut chars, &mut out),
            place => inside(c, place, &mut chars, &mut out),
        };
    }
    out
}

fn outside(c: char, chars: &mut Chars<'_>, out: &mut String) -> Place {
    match c {
        '[' => return open(chars, out),
        '\\' => match chars.next() {
            Some('Q') => quote_until_end(chars, out),
            Some(escape) => out.push_str(&escaped(escape, false)),
            None => out.push('\\'),
        },
        c => out.push(c),
    }
    Place::Outside
}

/// After the bracket that opens a class, a closing one is an ordinary character.
fn open(chars: &mut Chars<'_>, out: &mut String) -> Place {
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    if chars.next_if_eq(&']').is_none() {
        return Place::Start;
    }
    out.push_str("\\]");
    Place::Behind
}

/// In Go, a `-` outside a range is an ordinary character anywhere; it is escaped, as the crate reads two of
/// them as a difference.
fn inside(c: char, place: Place, chars: &mut Chars<'_>, out: &mut String) -> Place {
    match c {
        ']' => {
            out.push(']');
            return Place::Outside;
        }
        '\\' => return escape_inside(place, chars, out),
        '-' if place == Place::Behind && chars.peek() != Some(&']') => {
            out.push('-');
            return Place::End;
        }
        '[' if place != Place::End && chars.peek() == Some(&':') => {
            out.push('[');
            through(']', chars, out);
            return Place::Start;
        }
        '[' | '&' | '~' | '-' => {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
    place.next()
}

/// A class cannot end a range: unescaped, the crate rejects it as Go does.
fn escape_inside(place: Place, chars: &mut Chars<'_>, out: &mut String) -> Place {
    let Some(escape) = chars.next() else {
        out.push('\\');
        return place;
    };
    out.push_str(&if place == Place::End { format!("\\{escape}") } else { escaped(escape, true) });
    let letters = match escape {
        'd' | 'D' | 'w' | 'W' | 's' | 'S' => return Place::Start,
        'p' | 'P' => 1,
        'x' => 2,
        _ => return place.next(),
    };
    if chars.peek() == Some(&'{') {
        through('}', chars, out);
    } else {
        out.extend(chars.by_ref().take(letters));
    }
    if escape == 'x' { place.next() } else { Place::Start }
}

/// Copies everything up to and including a character.
fn through(last: char, chars: &mut Chars<'_>, out: &mut String) {
    for c in chars.by_ref() {
        out.push(c);
        if c == last {
            break;
        }
    }
}

fn quote_until_end(chars: &mut Chars<'_>, out: &mut String) {
    let mut literal = String::new();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next_if_eq(&'E').is_some() {
            break;
        }
        literal.push(c);
    }
    out.push_str(&regex::escape(&literal));
}

fn escaped(escape: char, in_class: bool) -> String {
    let class = match escape {
        'd' => "[:digit:]",
        'D' => "[:^digit:]",
        'w' => "[:word:]",
        'W' => "[:^word:]",
        's' if in_class => return "\\t\\n\\f\\r ".to_owned(),
        's' => return "[\\t\\n\\f\\r ]".to_owned(),
        'S' => return "[^\\t\\n\\f\\r ]".to_owned(),
        'b' | 'B' if !in_class => return format!("(?-u:\\{escape})"),
        'z' => return "\\z".to_owned(),
        escape => return format!("\\{escape}"),
    };
    if in_class { class.to_owned() } else { format!("[{class}]") }
}

#[cfg(test)]
mod tests {
    use regex::bytes::Regex;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r"\d+[\w.]", "[[:digit:]]+[[:word:].]")]
    #[case(r"[]a]", r"[\]a]")]
    #[case(r"[a&&b[]", r"[a\&\&b\[]")]
    #[case(r"\Qa.b\Ec", r"a\.bc")]
    #[case(r"\bx", r"(?-u:\b)x")]
    #[case(r"[[:alpha:]x]", "[[:alpha:]x]")]
    fn translates(#[case] go: &str, #[case] rust: &str) {
        assert_eq!(translate(go), rust);
    }

    /// ASCII matches of Go's classes, which have no differences, intersections or nesting.
    #[rstest]
    #[case("[+--]", "+,-")]
    #[case("[+-\\-]", "+,-")]
    #[case("[\\x2b--]", "+,-")]
    #[case("[\\x{2b}--]", "+,-")]
    #[case("[+-\\x2d--/]", "+,-./")]
    #[case("[+--+--]", "+,-")]
    #[case("[+--c]", "+,-c")]
    #[case("[--0]", "-./0")]
    #[case("[\\--0]", "-./0")]
    #[case("[--0-9]", "-./09")]
    #[case("[---]", "-")]
    #[case("[---z]", "-z")]
    #[case("[0-9--]", "-0123456789")]
    #[case("[0-9--/]", "-./0123456789")]
    #[case("[\\d--]", "-0123456789")]
    #[case("[\\d-z]", "-0123456789z")]
    #[case("[[:digit:]--/]", "-./0123456789")]
    #[case("[\\p{Nd}--/]", "-./0123456789")]
    #[case("[]-_]", "]^_")]
    #[case("[Z-[]", "Z[")]
    #[case("[!--/]", "!\"#$%&'()*+,-/")]
    #[case("[a-c-]", "-abc")]
    #[case("[-a]", "-a")]
    #[case("[!-&&]", "!\"#$%&")]
    fn finds_in_a_class_what_go_finds(#[case] go: &str, #[case] found: &str) {
        let regex = Regex::new(&translate(go)).unwrap();
        let all = (0..128_u8).filter(|byte| regex.is_match(&[*byte])).map(char::from);
        assert_eq!(all.collect::<String>(), found, "{}", translate(go));
    }

    #[rstest]
    #[case("[a--]")]
    #[case("[a--z]")]
    #[case("[-a--]")]
    #[case("[]--a]")]
    #[case("[[--a]")]
    #[case("[\\]--]")]
    #[case("[a-\\--]")]
    #[case("[~--]")]
    #[case("[--&&]")]
    #[case("[Z-\\d]")]
    fn refuses_the_ranges_that_go_refuses(#[case] go: &str) {
        assert!(Regex::new(&translate(go)).is_err(), "{}", translate(go));
    }
}
