//! Where things are in a YAML text: duplicate keys, and the lines of values.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{Event, Parser, StrInput, options};

use super::error::MAX_DEPTH;

/// A step from a value to one in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStep<'k> {
    /// The value of a key.
    Key(&'k str),
    /// The item of a list.
    Index(usize),
}

/// A key that a mapping has twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The key.
    pub key: String,
    /// Line of the second one, from 1.
    pub line: usize,
    /// Line of the first one.
    pub first: usize,
    /// Whether the mapping is the whole document.
    pub is_top_level: bool,
}

/// The first key of the first document that its mapping has twice; `None` also where the text is no YAML.
pub fn duplicate_key(text: &str) -> Option<DuplicateKey> {
    let mut walk = Walk::new(text);
    let first = walk.first()?;
    walk.duplicate(first.0, 0)
}

/// The line, from 1, of the value at the end of these steps in the first document, or of the last value on the way
/// that the text has. The line of a value in a mapping is the one of its key.
pub fn line_of(text: &str, steps: &[PathStep<'_>]) -> Option<usize> {
    let mut walk = Walk::new(text);
    let (mut event, mut line) = walk.first()?;
    for step in steps {
        let found = match (&event, step) {
            (Event::MappingStart(..), PathStep::Key(key)) => walk.seek_key(key),
            (Event::SequenceStart(..), PathStep::Index(index)) => walk.seek_item(*index),
            _ => None,
        };
        match found {
            Some(found) => (event, line) = found,
            None => return Some(line),
        }
    }
    Some(line)
}

/// The lines of the items of a list of the first document, which is the value of this key.
pub fn lines_of_items(text: &str, key: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut walk = Walk::new(text);
    if !matches!(walk.first(), Some((Event::MappingStart(..), _)))
        || !matches!(walk.seek_key(key), Some((Event::SequenceStart(..), _)))
    {
        return lines;
    }
    while let Some((item, line)) = walk.next().filter(|(item, _)| !matches!(item, Event::SequenceEnd)) {
        lines.push(line);
        if walk.skip(&item).is_none() {
            break;
        }
    }
    lines
}

type Located<'t> = (Event<'t>, usize);

struct Walk<'t> {
    parser: Parser<'t, StrInput<'t>>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t str) -> Self {
        Self { parser: Parser::new_from_str_with_options(text, options! { emit_comments: false }) }
    }

    fn next(&mut self) -> Option<Located<'t>> {
        let (event, span) = self.parser.next_event()?.ok()?;
        Some((event, span.start.line()))
    }

    /// The event that begins the first document's value.
    fn first(&mut self) -> Option<Located<'t>> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                found => return Some(found),
            }
        }
    }

    /// Leaves out the rest of the value that an event begins.
    fn skip(&mut self, event: &Event<'t>) -> Option<()> {
        let mut open = usize::from(begins(event));
        while open > 0 {
            match self.next()?.0 {
                Event::MappingEnd | Event::SequenceEnd => open -= 1,
                event => open += usize::from(begins(&event)),
            }
        }
        Some(())
    }

    fn seek_key(&mut self, wanted: &str) -> Option<Located<'t>> {
        loop {
            let (key, line) = self.next()?;
            if matches!(key, Event::MappingEnd) {
                return None;
            }
            let is_wanted = matches!(&key, Event::Scalar(text, ..) if text.as_ref() == wanted);
            self.skip(&key)?;
            let (value, _) = self.next()?;
            if is_wanted {
                return Some((value, line));
            }
            self.skip(&value)?;
        }
    }

    fn seek_item(&mut self, index: usize) -> Option<Located<'t>> {
        for _ in 0..index {
            let (item, _) = self.next()?;
            if matches!(item, Event::SequenceEnd) {
                return None;
            }
            self.skip(&item)?;
        }
        self.next().filter(|(item, _)| !matches!(item, Event::SequenceEnd))
    }

    /// The first duplicate in the value that an event begins.
    fn duplicate(&mut self, event: Event<'t>, depth: usize) -> Option<DuplicateKey> {
        if depth > MAX_DEPTH {
            return None;
        }
        match event {
            Event::SequenceStart(..) => loop {
                match self.next()?.0 {
                    Event::SequenceEnd => return None,
                    item => {
                        if let Some(found) = self.duplicate(item, depth + 1) {
                            return Some(found);
                        }
                    }
                }
            },
            Event::MappingStart(..) => self.duplicate_of_mapping(depth),
            _ => None,
        }
    }

    fn duplicate_of_mapping(&mut self, depth: usize) -> Option<DuplicateKey> {
        let mut lines: HashMap<String, usize> = HashMap::new();
        loop {
            let (key, line) = self.next()?;
            match &key {
                Event::MappingEnd => return None,
                // Several mappings can be merged.
                Event::Scalar(text, ..) if text.as_ref() != "<<" => {
                    if let Some(first) = lines.insert(text.to_string(), line) {
                        let is_top_level = depth == 0;
                        return Some(DuplicateKey { key: text.to_string(), line, first, is_top_level });
                    }
                }
                _ => {}
            }
            self.skip(&key)?;
            let value = self.next()?.0;
            if let Some(found) = self.duplicate(value, depth + 1) {
                return Some(found);
            }
        }
    }
}

fn begins(event: &Event<'_>) -> bool {
    matches!(event, Event::MappingStart(..) | Event::SequenceStart(..))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none("a: 1\nb: {a: 1}\nc: [{a: 1}, {a: 1}]", None)]
    #[case::top("a: 1\nb: 2\na: 3", Some(("a", 3, 1, true)))]
    #[case::below("a:\n  b: 1\n  c: 2\n  b: 3\n", Some(("b", 4, 2, false)))]
    #[case::in_a_list("- {a: 1}\n- a: 1\n  a: 2\n", Some(("a", 3, 2, false)))]
    #[case::flow("{a: 1,\n a: 2}", Some(("a", 2, 1, true)))]
    #[case::json("{\"a\": {\"b\": 1, \"b\": 2}}", Some(("b", 1, 1, false)))]
    #[case::merged("x: &x {a: 1}\ny: {<<: *x, <<: *x}", None)]
    #[case::quoted("a: 1\n\"a\": 2", Some(("a", 2, 1, true)))]
    #[case::behind_a_mark("---\n# text\na: 1\na: 2\n", Some(("a", 4, 3, true)))]
    #[case::no_yaml("a: [", None)]
    fn duplicates(#[case] text: &str, #[case] expected: Option<(&str, usize, usize, bool)>) {
        let found = duplicate_key(text);
        let found =
            found.as_ref().map(|found| (found.key.as_str(), found.line, found.first, found.is_top_level));
        assert_eq!(found, expected);
    }

    #[test]
    fn items() {
        let text = "kind: List\nitems:\n- a: [1, 2]\n  b: 1\n\n- {}\n- 3\nmetadata: {}\n";
        assert_eq!(lines_of_items(text, "items"), [3, 6, 7]);
        assert_eq!(lines_of_items(text, "kind"), [0; 0]);
        assert_eq!(lines_of_items("5", "items"), [0; 0]);
    }

    #[rstest]
    #[case(&[], 1)]
    #[case(&[PathStep::Key("spec")], 4)]
    #[case(&[PathStep::Key("spec"), PathStep::Key("rules"), PathStep::Index(1), PathStep::Key("name")], 8)]
    #[case::as_far_as_there_is(&[PathStep::Key("spec"), PathStep::Key("rules"), PathStep::Index(0), PathStep::Key("group")], 6)]
    #[case::no_such_item(&[PathStep::Key("spec"), PathStep::Key("rules"), PathStep::Index(7)], 5)]
    #[case::of_a_text(&[PathStep::Key("kind"), PathStep::Key("x")], 1)]
    fn lines(#[case] steps: &[PathStep<'_>], #[case] line: usize) {
        let text = "kind: A\nmetadata:\n  name: x\nspec:\n  rules:\n  - name: a\n  - group: b\n    name: c\n";
        assert_eq!(line_of(text, steps), Some(line));
    }
}
