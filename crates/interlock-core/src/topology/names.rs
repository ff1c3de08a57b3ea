//! Interned names: a text is stored once, reference-counted, and freed with its last use.
//!
//! The texts lie end to end in one string; the index holds their numbers instead of copies. Beside its
//! letters a name takes two dozen bytes.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

/// An interned text; 0 is the empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sym(pub u32);

impl Sym {
    /// The symbol that a fact stores.
    pub(super) fn of(fact: u64) -> Self {
        u32::try_from(fact).map(Self).unwrap_or_default()
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// All texts of a graph.
#[derive(Debug)]
pub(super) struct NameTable {
    letters: String,
    /// Bytes of unused texts.
    waste: usize,
    texts: Vec<Text>,
    free: Vec<u32>,
    index: HashTable<Sym>,
    hasher: RandomState,
}

/// Position of a text, and the number of its uses.
#[derive(Clone, Copy, Debug, Default)]
struct Text {
    start: usize,
    length: u32,
    uses: u32,
}

/// Waste up to this many bytes is not compacted.
const LITTLE: usize = 4096;

impl Default for NameTable {
    fn default() -> Self {
        Self {
            letters: String::new(),
            waste: 0,
            texts: vec![Text::default()],
            free: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::new(),
        }
    }
}

impl NameTable {
    /// Interns a text, or adds a use of it.
    pub(super) fn take(&mut self, text: &str) -> Sym {
        if let Some(sym) = self.find(text) {
            if !sym.is_empty() {
                self.texts[sym.0 as usize].uses += 1;
            }
            return sym;
        }
        let added = Text { start: self.letters.len(), length: number(text.len()), uses: 1 };
        self.letters.push_str(text);
        let sym = match self.free.pop() {
            Some(free) => {
                self.texts[free as usize] = added;
                Sym(free)
            }
            None => {
                self.texts.push(added);
                Sym(number(self.texts.len() - 1))
            }
        };
        let Self { letters, texts, index, hasher, .. } = self;
        index.insert_unique(hasher.hash_one(text), sym, |sym| hasher.hash_one(text_of(letters, texts, *sym)));
        sym
    }

    /// Releases one use of a text.
    pub(super) fn release(&mut self, sym: Sym) {
        if sym.is_empty() {
            return;
        }
        let text = &mut self.texts[sym.0 as usize];
        text.uses -= 1;
        if text.uses > 0 {
            return;
        }
        let hash = self.hasher.hash_one(self.text(sym));
        if let Ok(entry) = self.index.find_entry(hash, |known| *known == sym) {
            entry.remove();
        }
        self.waste += std::mem::take(&mut self.texts[sym.0 as usize]).length as usize;
        self.free.push(sym.0);
        if self.waste > LITTLE.max(self.letters.len() / 2) {
            self.clear_waste();
        }
    }

    /// Compacts the texts. Half of the letters are waste by then, so each moved letter is paid for by a
    /// released one.
    fn clear_waste(&mut self) {
        let mut letters = String::with_capacity(self.letters.len() - self.waste);
        for text in self.texts.iter_mut() {
            let start = letters.len();
            letters.push_str(&self.letters[text.start..text.start + text.length as usize]);
            text.start = start;
        }
        self.letters = letters;
        self.waste = 0;
    }

    /// The symbol of an interned text.
    pub(super) fn find(&self, text: &str) -> Option<Sym> {
        if text.is_empty() {
            return Some(Sym::default());
        }
        self.index.find(self.hasher.hash_one(text), |sym| self.text(*sym) == text).copied()
    }

    /// A text.
    pub(super) fn text(&self, sym: Sym) -> &str {
        text_of(&self.letters, &self.texts, sym)
    }

    /// Number of texts in use, the empty one not counted.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }
}

fn text_of<'n>(letters: &'n str, texts: &[Text], sym: Sym) -> &'n str {
    let Text { start, length, .. } = texts[sym.0 as usize];
    &letters[start..start + length as usize]
}

/// Neither a text nor the number of texts reaches four thousand million.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_goes_with_its_last_use() {
        let mut names = NameTable::default();
        let (a, again, b) = (names.take("a"), names.take("a"), names.take("b"));
        assert_eq!((a, names.len()), (again, 2));
        names.release(a);
        assert_eq!(names.find("a"), Some(a));
        names.release(again);
        assert_eq!((names.find("a"), names.len()), (None, 1));
        assert_eq!(names.text(b), "b");
        assert_eq!(names.take("c"), a, "a free place is used again");
        assert_eq!(names.take(""), Sym::default());
    }

    #[test]
    fn letters_that_nobody_uses_are_cleared_away() {
        let mut names = NameTable::default();
        let text = |n: usize| format!("a name with a number {n}");
        let kept: Vec<Sym> = (0..1000).map(|n| names.take(&text(n))).collect();
        for n in 1000..10_000 {
            let sym = names.take(&text(n));
            names.release(sym);
        }
        let used: usize = (0..1000).map(|n| text(n).len()).sum();
        assert!(names.letters.len() <= 2 * used + LITTLE, "{} letters, {used} in use", names.letters.len());
        for (n, sym) in kept.into_iter().enumerate() {
            assert_eq!((names.text(sym), names.find(&text(n))), (text(n).as_str(), Some(sym)));
        }
    }
}
