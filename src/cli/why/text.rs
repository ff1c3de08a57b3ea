//! The answer as text.

use std::fmt::Write as _;

use super::answer::{Dependency, WhyAnswer};

/// For people.
pub(super) fn text(story: &WhyAnswer) -> String {
    let mut out = format!("{}\n", story.object);
    story.is.iter().for_each(|line| {
        let _ = writeln!(out, "  {line}");
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
        let _ = writeln!(out, "  {line}");
    });
}
