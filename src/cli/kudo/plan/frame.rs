//! Draws lines over those that were drawn before, on a terminal.

use interlock_core::api::display::one_line;

/// Size of a terminal whose size is not known.
const USUAL: (usize, usize) = (80, 24);

/// Columns and rows of standard output.
pub(super) fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL,
    }
}

/// What is on the terminal.
#[derive(Debug, Default)]
pub(super) struct Frame {
    drawn: usize,
}

impl Frame {
    /// What to write so that these lines stand where the last ones stood. What would wrap or scroll could not
    /// be drawn over: long lines are cut, and so are too many.
    pub(super) fn redraw(&mut self, lines: &[String], (columns, rows): (usize, usize)) -> String {
        let mut out = if self.drawn > 0 { format!("\u{1b}[{}A", self.drawn) } else { String::new() };
        let fit = rows.saturating_sub(1).max(1);
        let more = lines.len().saturating_sub(fit);
        let kept = if more > 0 { fit - 1 } else { lines.len() };
        let rest = (more > 0).then(|| format!("... {} more lines", lines.len() - kept));
        for line in lines.iter().take(kept).chain(rest.as_ref()) {
            let line = one_line(line);
            out.push_str("\r\u{1b}[2K");
            out.extend(line.chars().take(columns.saturating_sub(1)));
            out.push('\n');
        }
        out.push_str("\u{1b}[J");
        self.drawn = kept + usize::from(rest.is_some());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn lines_are_drawn_over_those_before() {
        let mut frame = Frame::default();
        let first = frame.redraw(&lines(&["one", "two"]), (80, 24));
        assert_eq!(first, "\r\u{1b}[2Kone\n\r\u{1b}[2Ktwo\n\u{1b}[J");
        let second = frame.redraw(&lines(&["three"]), (80, 24));
        assert_eq!(second, "\u{1b}[2A\r\u{1b}[2Kthree\n\u{1b}[J");
        assert!(frame.redraw(&[], (80, 24)).starts_with("\u{1b}[1A"));
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut frame = Frame::default();
        let text = frame.redraw(&lines(&["0123456789", "b", "c", "d"]), (6, 4));
        assert_eq!(text, "\r\u{1b}[2K01234\n\r\u{1b}[2Kb\n\r\u{1b}[2K... 2\n\u{1b}[J");
        assert_eq!(frame.drawn, 3);
    }

    #[test]
    fn messages_do_not_steer_the_terminal() {
        let text = Frame::default().redraw(&lines(&["  a\u{1b}[5A\nb"]), (80, 24));
        assert_eq!(text, "\r\u{1b}[2K  a\\u001b[5A b\n\u{1b}[J");
    }
}
