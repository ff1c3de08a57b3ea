//! The shape of an error, and of texts of others in it.

use std::fmt::Write as _;

use interlock_core::api::display::printable;

/// The exit code of a command that did not end with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 1: the answer is no. Something was refused, has failed, or differs.
    Refused,
    /// 2: the arguments are wrong, or an input cannot be read.
    Usage,
    /// 3: the API server, or in time the state that was waited for, was not reached, or an object or a kind
    /// was not found.
    Unreached,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Unreached => 3,
        }
    }
}

/// Why a command did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", .why.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
pub struct CliError {
    exit: Exit,
    what: String,
    place: Option<String>,
    why: Option<String>,
    next: Option<String>,
}

impl CliError {
    fn new(exit: Exit, what: impl AsRef<str>) -> Self {
        Self { exit, what: line(what.as_ref()), place: None, why: None, next: None }
    }

    /// Something was refused, or has failed.
    pub fn refused(what: impl AsRef<str>) -> Self {
        Self::new(Exit::Refused, what)
    }

    /// Wrong arguments, or an input that cannot be read.
    pub fn usage(what: impl AsRef<str>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Not reached, or not found.
    pub fn unreached(what: impl AsRef<str>) -> Self {
        Self::new(Exit::Unreached, what)
    }

    /// The same with another exit code.
    pub fn with(exit: Exit, what: impl AsRef<str>) -> Self {
        Self::new(exit, what)
    }

    /// Where: a file with its line, an object, or an address.
    #[must_use]
    pub fn place(self, place: impl AsRef<str>) -> Self {
        Self { place: Some(line(place.as_ref())), ..self }
    }

    /// Why: the server's own sentence where there is one.
    #[must_use]
    pub fn why(self, why: impl AsRef<str>) -> Self {
        Self { why: Some(line(why.as_ref())).filter(|why| !why.is_empty()), ..self }
    }

    /// What to do: a command or a remedy, in the imperative.
    #[must_use]
    pub fn next(self, next: impl AsRef<str>) -> Self {
        Self { next: Some(line(next.as_ref())), ..self }
    }

    /// The same, where something better than before is known.
    #[must_use]
    pub fn next_where(self, next: Option<String>) -> Self {
        match next {
            Some(next) => self.next(next),
            None => self,
        }
    }

    /// The same, said of something larger.
    #[must_use]
    pub fn within(self, context: &str) -> Self {
        Self { what: format!("{}: {}", line(context), self.what), ..self }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// As it is printed: a line each, lines of a longer text below each other. A reason that is a refusal
    /// with a remedy of its own gets no other.
    pub fn text(&self) -> String {
        let mut out = format!("error: {}\n", indented(&self.what));
        let told = self.why.as_ref().is_some_and(|why| why.lines().any(|line| line.starts_with("Next: ")));
        let next = self.next.as_ref().filter(|_| !told);
        for (label, value) in [("where: ", &self.place), ("why:   ", &self.why), ("next:  ", &next.cloned())]
        {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "  {label}{}", indented(value));
            }
        }
        out
    }
}

fn line(text: &str) -> String {
    plain(text.trim())
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n         ")
}

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

    #[test]
    fn all_parts() {
        let error = CliError::unreached("Instance team/demo cannot be read")
            .place("https://127.0.0.1:6443")
            .why("the connection was refused")
            .next("start the API server");
        assert_eq!(
            error.text(),
            "error: Instance team/demo cannot be read\n\
             \x20 where: https://127.0.0.1:6443\n\
             \x20 why:   the connection was refused\n\
             \x20 next:  start the API server\n"
        );
        assert_eq!(error.to_string(), "Instance team/demo cannot be read: the connection was refused");
        assert_eq!(error.exit().code(), 3);
    }

    #[test]
    fn a_refusal_keeps_its_lines_and_its_remedy() {
        let error = CliError::refused("Instance team/demo is not changed")
            .why("denied the request: plan deploy runs\nNext: wait until it has ended")
            .next("something else");
        assert_eq!(
            error.text(),
            "error: Instance team/demo is not changed\n\
             \x20 why:   denied the request: plan deploy runs\n\
             \x20        Next: wait until it has ended\n"
        );
    }

    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        let error = CliError::usage("no such flag").why(" ").within("--output");
        assert_eq!((error.text().as_str(), error.exit().code()), ("error: --output: no such flag\n", 2));
    }

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
