//! Whether a regular expression of a path compiles as Kong's Rust router would compile it: same
//! crate, same translation (`kong/router/compat.lua`).

use regex::RegexBuilder;

/// Compiled patterns beyond this many bytes are not checked. Kong accepts up to ten times as much,
/// which would delay the response too long.
const COMPILED_LIMIT: usize = 1 << 20;
/// A longer pattern is not checked: its parsed form is a thousand times as long.
const LONGEST: usize = 2 * 1024;
/// Bytes of all patterns of one decision together.
const BUDGET: usize = 64 * 1024;
/// Upper bound of the compiled bytes of most patterns; a larger one counts as [`LARGE`] bytes of text.
const SMALL: usize = 16 * 1024;
const LARGE: usize = 2 * 1024;

/// Result of compiling a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiled {
    /// It compiles.
    Fine,
    /// It does not compile; the reason, in a few words.
    Rejected(String),
    /// Too large, or one of too many, to compile.
    NotTried,
}

/// Compiles the patterns of one decision, up to a limit.
#[derive(Debug)]
pub struct Compiler {
    left: usize,
}

impl Default for Compiler {
    fn default() -> Self {
        Self { left: BUDGET }
    }
}

impl Compiler {
    /// Compiles a pattern; a leading `~`, which marks a pattern in Kong, does not count.
    pub fn try_out(&mut self, pattern: &str) -> Compiled {
        if pattern.len() > LONGEST || !self.pay(pattern.len().max(64)) {
            return Compiled::NotTried;
        }
        let bare = pattern.strip_prefix('~').unwrap_or(pattern);
        let translated = format!("^{}", bare.replace("?<", "?P<"));
        let build = |limit| RegexBuilder::new(&translated).size_limit(limit).build();
        let mut built = build(SMALL);
        if matches!(built, Err(regex::Error::CompiledTooBig(_))) && self.pay(LARGE) {
            built = build(COMPILED_LIMIT);
        }
        match built {
            Ok(_) => Compiled::Fine,
            Err(regex::Error::CompiledTooBig(_)) => Compiled::NotTried,
            Err(_) if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|part| bare.contains(part)) => {
                Compiled::Rejected("look-around".to_owned())
            }
            Err(error) => Compiled::Rejected(last_words(&error.to_string())),
        }
    }

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
        assert_eq!(Compiler::default().try_out(pattern), compiled);
    }

    #[test]
    fn the_budget_ends() {
        let mut compiler = Compiler::default();
        let tried = (0..10_000).filter(|_| compiler.try_out("/a") == Compiled::Fine).count();
        assert_eq!(tried, BUDGET / 64);
    }

    #[test]
    fn large_patterns_are_few() {
        let mut compiler = Compiler::default();
        let large = |i: usize| format!("/[a-z]{{{i}}}\\pL{{20}}");
        let tried = (1..1000).take_while(|i| compiler.try_out(&large(*i)) == Compiled::Fine).count();
        assert!((8..64).contains(&tried), "{tried}");
        assert_eq!(Compiler::default().try_out(&format!("/{}", "\\pL".repeat(10_000))), Compiled::NotTried);
    }
}
