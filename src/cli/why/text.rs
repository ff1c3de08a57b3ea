//! The answer as text.

use std::fmt::Write as _;

use interlock_core::api::display::one_line;

use super::answer::{Dependency, WhyAnswer};

/// For people.
pub(super) fn text(story: &WhyAnswer) -> String {
    let mut out = format!("{}\n", one_line(&story.object.to_string()));
    story.is.iter().for_each(|line| {
        let _ = writeln!(out, "  {}", one_line(line));
    });
    section(&mut out, "Depends on", story.depends_on.iter().map(dependency));
    let actors = story.acted_on_by.iter().map(|actor| format!("{}: {}", actor.who, actor.does));
    section(&mut out, "Who acts on it", actors);
    let happened = story.happened.iter().map(|happening| format!("{:.0}  {}", happening.at, happening.what));
    section(&mut out, "What happened last", happened);
    section(&mut out, "What could not be seen", story.unknown.iter().cloned());
    out
}

fn dependency(dependency: &Dependency) -> String {
    let why = dependency.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    format!("{}: {}{why}", dependency.on, dependency.state.as_str())
}

fn section(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        let _ = writeln!(out, "\n{title}");
    }
    lines.for_each(|line| {
        let _ = writeln!(out, "  {}", one_line(&line));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_steers_the_terminal() {
        let mut out = String::new();
        section(&mut out, "What happened last", ["step \u{1b}[2J\n\u{202e}x".to_owned()].into_iter());
        assert_eq!(out, "\nWhat happened last\n  step \\u001b[2J \\u202ex\n");
    }
}
