//! What commands print: tables for people, JSON and YAML for programs.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};
use interlock_core::api::display::{one_line, printable};
use serde::Serialize;

use super::error::{CliError, plain};
use super::invoked::as_called;

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Output {
    /// For people.
    #[default]
    #[value(alias = "text")]
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// The flag for it.
#[derive(Args, Clone, Copy, Debug)]
pub(in crate::cli) struct OutputFlag {
    /// Form of the output.
    #[arg(long, short, value_enum, default_value_t)]
    pub(in crate::cli) output: Output,
}

impl Output {
    /// Prints a value, or the text for people.
    pub(in crate::cli) fn print<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        self::text(&self.written(value, text)?)
    }

    fn written<T: Serialize>(self, value: &T, text: impl FnOnce() -> String) -> Result<String, CliError> {
        let failed = |error: &dyn std::fmt::Display| {
            CliError::refused("the output cannot be written").why(error.to_string())
        };
        let json = || serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|e| failed(&e));
        match self {
            Self::Table => Ok(text()),
            Self::Json => json(),
            Self::Yaml => {
                let yaml = serde_saphyr::to_string(value).map_err(|e| failed(&e))?;
                // JSON is YAML, and can escape every character.
                if printable(&yaml) == yaml { Ok(yaml) } else { json() }
            }
        }
    }
}

/// Writes a text with parts of others to standard output: none of them steers the terminal.
pub(in crate::cli) fn text(text: &str) -> Result<(), CliError> {
    print(&printable(text))
}

/// The same to standard error, with a line break. Nothing is left to do where it cannot be written.
pub(in crate::cli) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Writes to standard output as it is. A reader that has closed it, as `head` does, has read enough.
pub(in crate::cli) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::refused("standard output cannot be written").why(error.to_string()))
        }
        _ => Ok(()),
    }
}

/// The same with a line break.
pub(in crate::cli) fn line(text: &str) -> Result<(), CliError> {
    self::text(&format!("{}\n", as_called(text)))
}

/// Lines about one object, where one like the line before is not printed again.
#[derive(Debug, Default)]
pub(in crate::cli) struct News {
    pub(in crate::cli) last: String,
}

impl News {
    pub(in crate::cli) fn line(&mut self, text: String) -> Result<(), CliError> {
        if text != self.last {
            line(&plain(&text))?;
            self.last = text;
        }
        Ok(())
    }
}

/// Whether a person types yes; an error where the terminal fails.
pub(in crate::cli) fn is_confirmed(question: &str) -> io::Result<bool> {
    io::stdout().write_all(question.as_bytes())?;
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// The widest column; a longer cell moves what follows in its row.
const COLUMN: usize = 200;

/// Rows in columns below their headings, as kubectl prints them.
pub(in crate::cli) fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let heading = heading.iter().map(|&name| name.to_owned()).collect();
    let rows = std::iter::once(heading).chain(rows);
    let rows: Vec<Vec<String>> =
        rows.map(|row| row.iter().map(|cell| one_line(cell).into_owned()).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or_default().min(COLUMN)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["d\u{e9}mo", "deploy"], ["a-long-one", "-"]];
        assert_eq!(
            table(&["NAME", "PLAN"], rows.map(|row| row.map(str::to_owned).to_vec())),
            "NAME        PLAN\n\
             d\u{e9}mo        deploy\n\
             a-long-one  -\n"
        );
        assert_eq!(table(&["NAME", "PLAN"], []), "NAME  PLAN\n");
    }

    #[test]
    fn no_cell_steers_the_terminal() {
        let row = ["a\u{1b}[2J\nb", "\u{202e}x"].map(str::to_owned).to_vec();
        assert_eq!(table(&["NAME", "PLAN"], [row]), "NAME          PLAN\na\\u001b[2J b  \\u202ex\n");
    }

    /// Programs read the same values.
    #[test]
    fn neither_form_for_programs_steers_the_terminal() {
        for value in ["a\u{202e}b", "a\u{202e}b\u{9b}c\u{1b}d"] {
            let written = |form: Output| form.written(&value, String::new).unwrap();
            let (json, yaml) = (written(Output::Json), written(Output::Yaml));
            let (json, yaml) = (printable(&json), printable(&yaml));
            assert!(json.is_ascii() && yaml.is_ascii(), "{json:?} {yaml:?}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), value);
            assert_eq!(serde_saphyr::from_str::<String>(&yaml).unwrap(), value);
        }
    }
}
