//! The shape of an error.

use std::fmt::Write as _;

use super::plain::plain;

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

#[cfg(test)]
mod tests {
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
}
