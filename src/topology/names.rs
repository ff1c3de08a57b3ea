//! Interned names: a text is kept once, counted, and gone with its last use.

use std::collections::HashMap;
use std::sync::Arc;

/// An interned text; 0 is the empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sym(pub u32);

impl Sym {
    /// As it is kept among facts.
    pub(super) fn of(fact: u64) -> Self {
        u32::try_from(fact).map(Self).unwrap_or_default()
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// All texts of a graph.
#[derive(Debug)]
pub(super) struct Names {
    texts: Vec<(Arc<str>, u32)>,
    index: HashMap<Arc<str>, Sym>,
    free: Vec<u32>,
}

impl Default for Names {
    fn default() -> Self {
        let empty: Arc<str> = "".into();
        Self { texts: vec![(empty, 1)], index: HashMap::new(), free: Vec::new() }
    }
}

impl Names {
    /// One more use of a text.
    pub(super) fn take(&mut self, text: &str) -> Sym {
        if text.is_empty() {
            return Sym::default();
        }
        if let Some(sym) = self.index.get(text).copied() {
            self.texts[sym.0 as usize].1 += 1;
            return sym;
        }
        let text: Arc<str> = text.into();
        let sym = match self.free.pop() {
            Some(free) => {
                self.texts[free as usize] = (text.clone(), 1);
                Sym(free)
            }
            None => {
                self.texts.push((text.clone(), 1));
                Sym(u32::try_from(self.texts.len() - 1).unwrap_or(u32::MAX))
            }
        };
        self.index.insert(text, sym);
        sym
    }

    /// One use less.
    pub(super) fn give(&mut self, sym: Sym) {
        if sym.is_empty() {
            return;
        }
        let empty = self.texts[0].0.clone();
        let (text, uses) = &mut self.texts[sym.0 as usize];
        *uses -= 1;
        if *uses == 0 {
            self.index.remove(text);
            *text = empty;
            self.free.push(sym.0);
        }
    }

    /// The symbol of a text that is in use.
    pub(super) fn find(&self, text: &str) -> Option<Sym> {
        if text.is_empty() { Some(Sym::default()) } else { self.index.get(text).copied() }
    }

    /// A text.
    pub(super) fn text(&self, sym: Sym) -> &Arc<str> {
        &self.texts[sym.0 as usize].0
    }

    /// Number of texts in use, the empty one not counted.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_goes_with_its_last_use() {
        let mut names = Names::default();
        let (a, again, b) = (names.take("a"), names.take("a"), names.take("b"));
        assert_eq!((a, names.len()), (again, 2));
        names.give(a);
        assert_eq!(names.find("a"), Some(a));
        names.give(again);
        assert_eq!((names.find("a"), names.len()), (None, 1));
        assert_eq!(&**names.text(b), "b");
        assert_eq!(names.take("c"), a, "a free place is used again");
        assert_eq!(names.take(""), Sym::default());
    }
}
