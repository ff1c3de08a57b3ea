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

/// How many parts of a pattern may be wide ranges that ignore case: each character of such a range is looked at before
/// the size of the pattern is known, which takes milliseconds.
pub fn wide_folds(pattern: &str) -> usize {
    let flags = |at: &str| at.split([':', ')']).next().is_some_and(|flags| flags.contains('i'));
    if !pattern.match_indices("(?").any(|(at, _)| flags(&pattern[at + 2..])) {
        return 0;
    }
    let escapes = ["\\x", "\\u", "\\U", "\\W", "\\D", "\\S", "\\p", "\\P"];
    let escapes = escapes.iter().map(|part| pattern.matches(part).count()).sum::<usize>();
    escapes + pattern.chars().filter(|c| !c.is_ascii()).count()
}

/// Highest number of a repetition in Go.
const MAX_REPEAT: u32 = 1000;

/// Translates a Go pattern for the `regex` crate.
///
/// # Errors
/// Go's reason why it is no pattern, where the crate would take it.
pub fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut place = Place::Outside;
    // The repetition that ends here, which cannot be repeated.
    let mut repeated: Option<String> = None;
    while let Some(c) = chars.next() {
        if place != Place::Outside {
            place = inside(c, place, &mut chars, &mut out);
            continue;
        }
        let repetition = repetition(c, &mut chars)?;
        if let (Some(before), Some(text)) = (&repeated, &repetition) {
            return Err(format!("invalid nested repetition operator: `{before}{text}`"));
        }
        match &repetition {
            Some(text) => out.push_str(text),
            None => place = outside(c, &mut chars, &mut out),
        }
        repeated = repetition;
    }
    Ok(out)
}

/// The repetition that begins with a character, with the `?` that makes it lazy.
fn repetition(c: char, chars: &mut Chars<'_>) -> Result<Option<String>, String> {
    let mut text = match c {
        '*' | '+' | '?' => c.to_string(),
        '{' => match counted(chars.clone()) {
            None => return Ok(None),
            Some((text, min, max)) => {
                if min > MAX_REPEAT || max.is_some_and(|max| max > MAX_REPEAT || max < min) {
                    return Err(format!("invalid repeat count: `{text}`"));
                }
                chars.by_ref().take(text.len() - 1).for_each(drop);
                text
            }
        },
        _ => return Ok(None),
    };
    if chars.next_if_eq(&'?').is_some() {
        text.push('?');
    }
    Ok(Some(text))
}

/// What follows a brace if it is a repetition, `{2}`, `{2,}` or `{2,3}`: its text and its numbers, those that do
/// not fit as the largest that do.
fn counted(chars: Chars<'_>) -> Option<(String, u32, Option<u32>)> {
    let mut text = "{".to_owned();
    for c in chars {
        text.push(c);
        if !c.is_ascii_digit() && c != ',' {
            break;
        }
    }
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let number = |digits: &str| {
        let is_number = !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        is_number.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (min, max) = match inner.split_once(',') {
        None => (number(inner)?, Some(number(inner)?)),
        Some((min, "")) => (number(min)?, None),
        Some((min, max)) => (number(min)?, Some(number(max)?)),
    };
    Some((text, min, max))
}

fn outside(c: char, chars: &mut Chars<'_>, out: &mut String) -> Place {
    match c {
        '[' => return open(chars, out),
        // A brace that begins no repetition is an ordinary character.
        '{' => out.push_str("\\{"),
        // A question mark behind it begins a group's kind.
        '(' => {
            out.push('(');
            out.extend(chars.next_if_eq(&'?'));
        }
        '\\' => match chars.next() {
            Some('Q') => quote_until_end(chars, out),
            Some(escape) => {
                out.push_str(&escaped(escape, false));
                if matches!(escape, 'x' | 'p' | 'P') && chars.peek() == Some(&'{') {
                    through('}', chars, out);
                }
            }
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
    #[case(r"a{,2}{2}?(?i)\pN\p{Nd}{x", r"a\{,2}{2}?(?i)\pN\p{Nd}\{x")]
    #[case(r"a{2,1000}?", r"a{2,1000}?")]
    #[case(r"a{02}", r"a\{02}")]
    #[case(r"[[:alpha:]x]", "[[:alpha:]x]")]
    fn translates(#[case] go: &str, #[case] rust: &str) {
        assert_eq!(translate(go).as_deref(), Ok(rust));
    }

    #[rstest]
    #[case("a**", "invalid nested repetition operator: `**`")]
    #[case("a+?{2}", "invalid nested repetition operator: `+?{2}`")]
    #[case("a{1001}", "invalid repeat count: `{1001}`")]
    #[case("a{3,2}", "invalid repeat count: `{3,2}`")]
    fn refuses(#[case] go: &str, #[case] reason: &str) {
        assert_eq!(translate(go), Err(reason.to_owned()));
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
        let text = translate(go).unwrap();
        let regex = Regex::new(&text).unwrap();
        let all = (0..128_u8).filter(|byte| regex.is_match(&[*byte])).map(char::from);
        assert_eq!(all.collect::<String>(), found, "{text}");
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
        assert!(translate(go).is_err() || Regex::new(&translate(go).unwrap()).is_err());
    }
}
