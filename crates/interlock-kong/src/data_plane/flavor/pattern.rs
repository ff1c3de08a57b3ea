//! Whether a regular expression of a path compiles as Kong's Rust router would compile it: same
//! crate, same translation (`kong/router/compat.lua`).

use std::sync::{Arc, OnceLock};

use regex::RegexBuilder;

/// Compiled patterns beyond this many bytes are not checked. Kong accepts up to ten times as much,
/// which would delay the response too long.
const COMPILED_LIMIT: usize = 1 << 20;
/// A longer pattern is not checked: its parsed form is a thousand times as long.
const LONGEST: usize = 2 * 1024;
/// Bytes of the patterns of one namespace: a namespace takes nothing from the others.
const BUDGET: usize = 64 * 1024;
/// A pattern counts as at least this many bytes.
const SHORTEST: usize = 64;
/// Upper bound of the compiled bytes of most patterns; a larger one counts as [`LARGE`] bytes of text.
const SMALL: usize = 16 * 1024;
const LARGE: usize = 2 * 1024;
/// No namespace has more patterns compiled.
pub(super) const MOST: usize = BUDGET / SHORTEST;

/// Result of compiling a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiled {
    Fine,
    /// It does not compile; the reason, in a few words.
    Rejected(String),
    /// Too large, or one of too many, to compile.
    NotTried,
}

/// A pattern of a route. It is compiled once, when first asked for.
#[derive(Debug, Default)]
pub struct Pattern {
    text: String,
    /// `None` beyond [`SMALL`].
    small: OnceLock<Option<Compiled>>,
    large: OnceLock<Compiled>,
}

impl Pattern {
    /// A pattern; a leading `~`, which marks a pattern in Kong, does not count.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// As the route has it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it was compiled before.
    pub fn is_compiled(&self) -> bool {
        self.small.get().is_some()
    }

    /// Compiles it within a budget.
    pub fn compiled(&self, budget: &mut NamespaceBudget) -> Compiled {
        if self.text.len() > LONGEST || !budget.pay(self.text.len().max(SHORTEST)) {
            return Compiled::NotTried;
        }
        match self.small.get_or_init(|| self.compile(SMALL)) {
            Some(compiled) => compiled.clone(),
            None if budget.pay(LARGE) => {
                let compile = || self.compile(COMPILED_LIMIT).unwrap_or(Compiled::NotTried);
                self.large.get_or_init(compile).clone()
            }
            None => Compiled::NotTried,
        }
    }

    /// `None` beyond the limit.
    fn compile(&self, limit: usize) -> Option<Compiled> {
        let bare = self.text.strip_prefix('~').unwrap_or(&self.text);
        let translated = format!("^{}", bare.replace("?<", "?P<"));
        match RegexBuilder::new(&translated).size_limit(limit).build() {
            Ok(_) => Some(Compiled::Fine),
            Err(regex::Error::CompiledTooBig(_)) => None,
            Err(_) if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|part| bare.contains(part)) => {
                Some(Compiled::Rejected("look-around".to_owned()))
            }
            Err(error) => Some(Compiled::Rejected(last_words(&error.to_string()))),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// Compiles the patterns of one namespace ahead of any question.
pub fn compile(patterns: &[Arc<Pattern>]) {
    let mut budget = NamespaceBudget::default();
    for pattern in patterns {
        pattern.compiled(&mut budget);
    }
}

/// Limits what the patterns of one namespace cost.
#[derive(Debug)]
pub struct NamespaceBudget {
    left: usize,
}

impl Default for NamespaceBudget {
    fn default() -> Self {
        Self { left: BUDGET }
    }
}

impl NamespaceBudget {
    /// Takes bytes from the budget, if enough are left.
    fn pay(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// The crate draws a diagram, whose last line has the error.
fn last_words(text: &str) -> String {
    let last = text.lines().next_back().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain(r"/api/v\d+/users", Compiled::Fine)]
    #[case::marked(r"~/api/(?<version>v\d+)$", Compiled::Fine)]
    #[case::class("/[a-z0-9_-]{1,40}", Compiled::Fine)]
    #[case::ahead("/api(?!/internal)", Compiled::Rejected("look-around".into()))]
    #[case::behind("/api(?<=x)", Compiled::Rejected("look-around".into()))]
    #[case::backreference(r"/(a)/\1", Compiled::Rejected("backreferences are not supported".into()))]
    #[case::escaped_slash(r"/a\/b", Compiled::Fine)]
    #[case::unclosed("/(a", Compiled::Rejected("unclosed group".into()))]
    #[case::possessive("/a++", Compiled::Fine)]
    #[case::atomic("/(?>a)", Compiled::Rejected("unrecognized flag".into()))]
    #[case::huge(r"/(\w{200}){200}", Compiled::NotTried)]
    fn patterns(#[case] pattern: &str, #[case] compiled: Compiled) {
        assert_eq!(Pattern::new(pattern).compiled(&mut NamespaceBudget::default()), compiled);
    }

    #[test]
    fn the_budget_ends() {
        let mut budget = NamespaceBudget::default();
        let tried =
            (0..10_000).filter(|_| Pattern::new("/a").compiled(&mut budget) == Compiled::Fine).count();
        assert_eq!(tried, MOST);
    }

    #[test]
    fn large_patterns_are_few() {
        let mut budget = NamespaceBudget::default();
        let large = |i: usize| Pattern::new(format!("/[a-z]{{{i}}}\\pL{{20}}"));
        let tried = (1..1000).take_while(|i| large(*i).compiled(&mut budget) == Compiled::Fine).count();
        assert!((8..64).contains(&tried), "{tried}");
        let long = Pattern::new(format!("/{}", "\\pL".repeat(10_000)));
        assert_eq!(long.compiled(&mut NamespaceBudget::default()), Compiled::NotTried);
    }

    /// What it costs does not depend on whether it was compiled before.
    #[test]
    fn a_pattern_is_compiled_once() {
        let pattern = Pattern::new(r"/[a-z]{40}\pL{20}");
        let pay = || {
            let mut budget = NamespaceBudget::default();
            (pattern.compiled(&mut budget), budget.left)
        };
        let first = pay();
        let kept: *const Compiled = pattern.large.get().unwrap();
        assert_eq!(pay(), first);
        assert!(std::ptr::eq(pattern.large.get().unwrap(), kept));
    }
}
