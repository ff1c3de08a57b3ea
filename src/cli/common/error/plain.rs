//! Texts of others, such as the API server's, for a terminal.

use interlock_core::api::display::printable;

/// Longest text that is printed: the API server's refusals are shorter, a web page is not.
const MAX_CHARACTERS: usize = 4096;

/// Sentences of Go's number parser that KUDO's messages end in.
const GO_NUMBERS: &str = ": strconv.Parse";
const GO_ENDS: [&str; 2] = ["invalid syntax", "value out of range"];

/// The text without characters that steer a terminal, without the
/// sentences of Go's number parser, and not longer than a refusal.
pub fn plain(text: &str) -> String {
    let mut plain = match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => printable(&text[..end]).into_owned() + "...",
        None => printable(text).into_owned(),
    };
    plain = plain.replace('\t', " ");
    without_numbers(&without_go(&plain))
}

/// The system's errors without their numbers.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => out.push_str(rest),
            _ => {
                out.push_str(" (os error ");
                out.push_str(part);
            }
        }
    }
    out
}

fn without_go(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(GO_NUMBERS) {
        let (before, sentence) = rest.split_at(start);
        let ends = GO_ENDS.iter().filter_map(|end| sentence.find(end).map(|at| at + end.len()));
        let Some(end) = ends.min() else { break };
        out.push_str(before);
        rest = &sentence[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_it_is("a\nb", "a\nb")]
    #[case::escape("a\u{1b}[2Kb\r\u{7}", "a\\u001b[2Kb \\u0007")]
    #[case::tab(" a\tb", " a b")]
    #[case::go(
        "format of \"three\" is invalid: strconv.ParseInt: parsing \"three\": invalid syntax [parameter-invalid]",
        "format of \"three\" is invalid [parameter-invalid]"
    )]
    #[case::go_twice(
        "x: strconv.ParseInt: parsing \"a\": invalid syntax, y: strconv.ParseFloat: parsing \"1e999\": value out of range",
        "x, y"
    )]
    #[case::number(
        "No such file or directory (os error 2); give a file",
        "No such file or directory; give a file"
    )]
    #[case::no_number("a (os error x) b", "a (os error x) b")]
    #[case::no_end("x: strconv.Parse", "x: strconv.Parse")]
    fn what_is_printed(#[case] text: &str, #[case] printed: &str) {
        assert_eq!(plain(text), printed);
    }

    #[test]
    fn a_page_is_cut() {
        let text = plain(&"x".repeat(1_000_000));
        assert_eq!((text.len(), &text[4094..]), (4099, "xx..."));
    }
}
