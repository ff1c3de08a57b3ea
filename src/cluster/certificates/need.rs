//! What has to be made next, as a pure function of dates.

use std::time::Duration;

use jiff::Timestamp;

use super::stored::Facts;

/// The next write of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// None.
    Nothing,
    /// A CA and a leaf: there is nothing usable.
    Everything,
    /// A leaf of the same CA.
    Leaf,
    /// A CA to come, for the caBundles.
    NextAuthority,
    /// The CA to come is trusted everywhere: a leaf of it.
    Promotion,
}

/// What the Secret holds.
#[derive(Clone, Debug)]
pub struct Holdings {
    /// The CA.
    pub authority: Facts,
    /// The leaf.
    pub leaf: Facts,
    /// The CA to come.
    pub next: Option<Facts>,
}

/// What is needed at `now`; `next_trusted`: every caBundle has held the CA to come for long
/// enough.
pub fn need(now: Timestamp, holdings: &Holdings, names: &[String], next_trusted: bool) -> Need {
    let Holdings { authority, leaf, next } = holdings;
    if now >= authority.ends {
        return Need::Everything;
    }
    match next {
        Some(next) if now >= next.ends => return Need::NextAuthority,
        Some(_) if next_trusted => return Need::Promotion,
        None if due(authority, now) => return Need::NextAuthority,
        _ => {}
    }
    let named = names.iter().all(|name| leaf.names.contains(name));
    if named && !due(leaf, now) { Need::Nothing } else { Need::Leaf }
}

/// Renewed at two thirds of its life.
fn due(facts: &Facts, now: Timestamp) -> bool {
    let life = Duration::try_from(facts.ends.duration_since(facts.made)).unwrap_or_default();
    now >= facts.made + life * 2 / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn facts(made: i64, ends: i64) -> Facts {
        Facts { made: at(made), ends: at(ends), names: vec!["a".into(), "b".into()], ours: true }
    }

    #[rstest]
    #[case::young(59, None, false, Need::Nothing)]
    #[case::leaf_at_two_thirds(60, None, false, Need::Leaf)]
    #[case::authority_at_two_thirds(600, None, false, Need::NextAuthority)]
    #[case::leaf_while_the_next_is_not_trusted(610, Some((600, 1500)), false, Need::Leaf)]
    #[case::trusted(610, Some((600, 1500)), true, Need::Promotion)]
    #[case::forced(30, Some((29, 900)), false, Need::Nothing)]
    #[case::next_ended_unused(700, Some((600, 700)), false, Need::NextAuthority)]
    #[case::all_ended(900, Some((600, 1500)), true, Need::Everything)]
    fn needs(
        #[case] now: i64,
        #[case] next: Option<(i64, i64)>,
        #[case] trusted: bool,
        #[case] expected: Need,
    ) {
        let next = next.map(|(made, ends)| facts(made, ends));
        let holdings = Holdings { authority: facts(0, 900), leaf: facts(0, 90), next };
        assert_eq!(need(at(now), &holdings, &["b".into()], trusted), expected);
    }

    #[test]
    fn a_name_that_the_leaf_lacks_needs_a_leaf() {
        let holdings = Holdings { authority: facts(0, 900), leaf: facts(0, 90), next: None };
        assert_eq!(need(at(1), &holdings, &["c".into()], false), Need::Leaf);
    }
}
