//! What a command that takes longer is at, on a terminal: one line of stderr, erased when it is done.

use std::io::{IsTerminal as _, Write as _};

/// A line of progress; erased when it is dropped.
pub(in crate::cli) struct ProgressLine {
    shown: bool,
}

impl ProgressLine {
    /// Shows what is being done, such as "reading 62 kinds"; nothing where stderr is no terminal.
    pub(in crate::cli) fn start(text: &str) -> Self {
        let shown = std::io::stderr().is_terminal();
        if shown {
            eprint!("{text} ...");
            let _ = std::io::stderr().flush();
        }
        Self { shown }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\u{1b}[2K");
            let _ = std::io::stderr().flush();
        }
    }
}
