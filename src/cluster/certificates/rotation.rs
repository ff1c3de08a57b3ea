//! Which write of the Secret is due, as a pure function of dates.

use std::time::Duration;

use jiff::Timestamp;

use super::stored::CertificateFacts;

/// The next write of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextWrite {
    /// None.
    Nothing,
    /// A CA and a leaf: the Secret holds no valid pair.
    Everything,
    /// A leaf of the same CA.
    Leaf,
    /// The next CA, for the caBundles.
    NextAuthority,
    /// A leaf of the next CA, which is now trusted everywhere.
    Promotion,
}

/// The certificates in the Secret.
#[derive(Clone, Debug)]
pub struct StoredCertificates {
    /// The CA.
    pub authority: CertificateFacts,
    pub leaf: CertificateFacts,
    /// The next CA.
    pub next: Option<CertificateFacts>,
}

/// The write that is due at `now`; `next_trusted`: every caBundle has held the next CA for long enough.
pub fn next_write(
    now: Timestamp,
    certificates: &StoredCertificates,
    names: &[String],
    next_trusted: bool,
) -> NextWrite {
    let StoredCertificates { authority, leaf, next } = certificates;
    if now >= authority.expires {
        return NextWrite::Everything;
    }
    match next {
        Some(next) if now >= next.expires => return NextWrite::NextAuthority,
        Some(_) if next_trusted => return NextWrite::Promotion,
        None if due(authority, now) => return NextWrite::NextAuthority,
        _ => {}
    }
    let named = names.iter().all(|name| leaf.names.contains(name));
    if named && !due(leaf, now) { NextWrite::Nothing } else { NextWrite::Leaf }
}

/// A certificate is renewed at two thirds of its life.
fn due(facts: &CertificateFacts, now: Timestamp) -> bool {
    let life = Duration::try_from(facts.expires.duration_since(facts.issued)).unwrap_or_default();
    now >= facts.issued + life * 2 / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn facts(issued: i64, expires: i64) -> CertificateFacts {
        CertificateFacts {
            issued: at(issued),
            expires: at(expires),
            names: vec!["a".into(), "b".into()],
            ours: true,
        }
    }

    #[rstest]
    #[case::young(59, None, false, NextWrite::Nothing)]
    #[case::leaf_at_two_thirds(60, None, false, NextWrite::Leaf)]
    #[case::authority_at_two_thirds(600, None, false, NextWrite::NextAuthority)]
    #[case::leaf_while_the_next_is_not_trusted(610, Some((600, 1500)), false, NextWrite::Leaf)]
    #[case::trusted(610, Some((600, 1500)), true, NextWrite::Promotion)]
    #[case::forced(30, Some((29, 900)), false, NextWrite::Nothing)]
    #[case::next_ended_unused(700, Some((600, 700)), false, NextWrite::NextAuthority)]
    #[case::all_ended(900, Some((600, 1500)), true, NextWrite::Everything)]
    fn due_write(
        #[case] now: i64,
        #[case] next: Option<(i64, i64)>,
        #[case] trusted: bool,
        #[case] expected: NextWrite,
    ) {
        let next = next.map(|(issued, expires)| facts(issued, expires));
        let certificates = StoredCertificates { authority: facts(0, 900), leaf: facts(0, 90), next };
        assert_eq!(next_write(at(now), &certificates, &["b".into()], trusted), expected);
    }

    #[test]
    fn a_name_that_the_leaf_lacks_needs_a_leaf() {
        let certificates = StoredCertificates { authority: facts(0, 900), leaf: facts(0, 90), next: None };
        assert_eq!(next_write(at(1), &certificates, &["c".into()], false), NextWrite::Leaf);
    }
}
