//! Regular expressions, compiled within limits and cached for one rendering, so that a loop compiles its
//! expression once.

use std::cell::RefCell;
use std::rc::Rc;

use regex_automata::meta::{Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

/// Size of the cache; a new entry replaces the oldest.
const KEPT: usize = 16;

/// Bytes of all cached expressions together, without the memory of searches.
const KEPT_BYTES: usize = 4 << 20;

/// Bytes for states that a search creates lazily.
const SEARCH_BYTES: usize = 256 << 10;

/// Bytes for the positions of groups during a search: one for each group and state.
const GROUP_BYTES: usize = 4 << 20;

/// Each of these many bytes of the automaton adds one unit of work per byte of text.
const BYTES_A_UNIT: usize = 256;

/// Why a pattern was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternRefused {
    /// It is no regular expression.
    Syntax(String),
    /// It takes too many bytes.
    TooLarge,
}

/// A compiled regular expression.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    bytes: usize,
}

impl Pattern {
    /// Compiles what the `regex` crate calls `regex::bytes::Regex`.
    fn compile(text: &str, groups: bool, limit: usize) -> Result<Self, PatternRefused> {
        // The disabled engines would make the work of a search depend little on the size.
        let config = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(false)
            .nfa_size_limit(Some(limit))
            .onepass(false)
            .dfa(false)
            .hybrid_cache_capacity(SEARCH_BYTES)
            .which_captures(if groups { WhichCaptures::All } else { WhichCaptures::Implicit });
        let built = Regex::builder().syntax(syntax::Config::new().utf8(false)).configure(config).build(text);
        let regex = built.map_err(|error| match error.syntax_error() {
            Some(error) => PatternRefused::Syntax(error.to_string()),
            None => PatternRefused::TooLarge,
        })?;
        let bytes = regex.memory_usage();
        // A state takes 24 bytes at least.
        let places = (bytes / 24).saturating_mul(regex.captures_len() * 2 * size_of::<usize>());
        if groups && places > GROUP_BYTES { Err(PatternRefused::TooLarge) } else { Ok(Self { regex, bytes }) }
    }

    /// Its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Upper bound of the work per byte of text: about one unit for each possible state.
    pub(super) fn weight(&self) -> usize {
        1 + self.bytes / BYTES_A_UNIT
    }

    /// Bytes of the searched part of a text.
    pub(super) fn length(input: &Input<'_>) -> usize {
        input.end().saturating_sub(input.start()) + 1
    }
}

type Found = Rc<Result<Pattern, PatternRefused>>;

#[derive(Debug)]
struct Kept {
    text: String,
    groups: bool,
    found: Found,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.text.len() + self.found.as_ref().as_ref().map_or(0, Pattern::bytes)
    }
}

/// The expressions of one rendering.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<Vec<Kept>>);

impl Patterns {
    /// A cached expression.
    pub(super) fn get(&self, text: &str, groups: bool) -> Option<Found> {
        let kept = self.0.borrow();
        kept.iter().find(|kept| kept.groups == groups && kept.text == text).map(|kept| kept.found.clone())
    }

    /// Compiles an expression of at most `limit` bytes, and caches it.
    pub(super) fn compile(&self, text: &str, groups: bool, limit: usize) -> Found {
        let found: Found = Rc::new(Pattern::compile(text, groups, limit));
        let mut kept = self.0.borrow_mut();
        kept.push(Kept { text: text.to_owned(), groups, found: found.clone() });
        while kept.len() > KEPT || kept.len() > 1 && kept.iter().map(Kept::bytes).sum::<usize>() > KEPT_BYTES
        {
            kept.remove(0);
        }
        found
    }
}
