//! The event table: which event of which kind affects which objects.

use std::fmt::Write as _;

use super::schema::{DeclaredKind, EventScope, EventTriggers, LinkPath};

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Kind of the object.
    pub kind: String,
    /// The event.
    pub event: String,
    /// The affected objects, or why there are none.
    pub concerns: String,
}

/// The lines of some kinds.
pub fn lines<'k>(kinds: impl IntoIterator<Item = &'k DeclaredKind>) -> Vec<Line> {
    let mut lines = Vec::new();
    for kind in kinds {
        let name = kind.name.to_string();
        let mut line = |event: &str, concerns: String| {
            lines.push(Line { kind: name.clone(), event: event.to_owned(), concerns });
        };
        line("create", whom(kind.events.create));
        match kind.events.update {
            EventScope::Nobody(why) => line("update", nobody(why)),
            EventScope::When(rows) => {
                for row in rows {
                    let facts: Vec<&str> = row.differs.iter().map(|fact| fact.name).collect();
                    line(&format!("update of {}", facts.join(", ")), roots(row.concerns));
                }
            }
        }
        line("delete", whom(kind.events.delete));
        for link in kind.links.iter().filter(|link| link.follows) {
            if let Some(followed) = link.kind {
                line(&format!("create, delete of its {followed}"), roots(&[LinkPath::Itself]));
            }
        }
    }
    lines
}

/// The table as text.
pub fn text<'k>(kinds: impl IntoIterator<Item = &'k DeclaredKind>) -> String {
    let head = Line { kind: "KIND".into(), event: "EVENT".into(), concerns: "CONCERNS".into() };
    let lines: Vec<Line> = std::iter::once(head).chain(lines(kinds)).collect();
    let width = |of: fn(&Line) -> &String| lines.iter().map(|line| of(line).len()).max().unwrap_or(0);
    let (kinds, events) = (width(|line| &line.kind), width(|line| &line.event));
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{:kinds$}   {:events$}   {}", line.kind, line.event, line.concerns);
        text
    })
}

fn whom(concerns: EventTriggers) -> String {
    match concerns {
        EventTriggers::Roots(reaches) => roots(reaches),
        EventTriggers::Nobody(why) => nobody(why),
    }
}

fn nobody(why: &str) -> String {
    format!("nobody: {why}")
}

fn roots(reaches: &[LinkPath]) -> String {
    let reach = |reach: &LinkPath| match reach {
        LinkPath::Itself => "itself".to_owned(),
        LinkPath::Up(family, kind) => format!("each {kind} that {}", family.of_parent()),
        LinkPath::Down(family, kind) => format!("each {kind} that {}", family.of_child()),
    };
    reaches.iter().map(reach).collect::<Vec<_>>().join("; ")
}
