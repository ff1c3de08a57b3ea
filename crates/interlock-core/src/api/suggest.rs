//! "Did you mean": names like one that is not known.

/// Longest word that is compared: names of Kubernetes have at most 253 characters.
const MAX_WORD: usize = 253;
/// Most names that a word is compared with.
const MAX_NAMES: usize = 1000;
/// Most pairs of characters that are compared for a word, some 1 ms: a review waits for the result, and its
/// names may be as long and as many as a tenant likes.
const MAX_PAIRS: usize = 1 << 18;
/// Most names that are suggested, and that are listed.
const SHOWN: usize = 3;
const LISTED: usize = 12;

/// The known names that a word is likely to stand for, likeliest first.
pub fn similar<'n>(word: &str, known: &[&'n str]) -> Vec<&'n str> {
    if word.len() > MAX_WORD {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let far = (word.chars().count() / 3).clamp(1, 4);
    let mut pairs = MAX_PAIRS;
    let known = known.iter().filter(|name| name.len() <= MAX_WORD).take(MAX_NAMES);
    let mut found: Vec<(usize, &str)> = known
        .filter_map(|name| {
            let other = name.to_lowercase();
            let part =
                word.len() >= 3 && (other.contains(&word) || other.len() >= 3 && word.contains(&other));
            // Names of another length are never as near as that.
            let near = word.len().abs_diff(other.len()) <= 4 * far;
            if !near && !part {
                return None;
            }
            pairs = pairs.checked_sub(word.len() * other.len())?;
            let distance = strsim::osa_distance(&word, &other);
            (distance <= far || part).then_some((distance, *name))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, name)| name).take(SHOWN).collect()
}

/// The names that a word is likely to stand for, as a question.
pub fn did_you_mean(word: &str, known: &[&str]) -> Option<String> {
    let found = similar(word, known);
    (!found.is_empty()).then(|| format!("did you mean {}?", found.join(" or ")))
}

/// What to do about a name that is not known: the names that it is likely to stand for, else all of them, as
/// far as a line holds them, else nothing. `what` is their plural, such as "plans of OperatorVersion x".
pub fn remedy(word: &str, what: &str, known: &[&str]) -> Option<String> {
    let listed = || (!known.is_empty()).then(|| format!("name one of the {what}: {}", listed(known)));
    did_you_mean(word, known).or_else(listed)
}

/// The names in one line, at most a dozen.
fn listed(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    match names.get(LISTED..) {
        None | Some([]) => names.join(", "),
        Some(rest) => format!("{} and {} more", names[..LISTED].join(", "), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const PLANS: [&str; 5] = ["backup", "cleanup", "deploy", "restore", "update"];

    #[rstest]
    #[case::letters_swapped("deplyo", &["deploy"])]
    #[case::letter_missing("depoy", &["deploy"])]
    #[case::upper_case("DEPLOY", &["deploy"])]
    #[case::part("back", &["backup"])]
    #[case::longer("backups", &["backup"])]
    #[case::two("upup", &[])]
    #[case::nothing_like_it("migrate", &[])]
    #[case::short("de", &[])]
    #[case::empty("", &[])]
    fn names_like_a_word(#[case] word: &str, #[case] expected: &[&str]) {
        assert_eq!(similar(word, &PLANS), expected);
    }

    #[test]
    fn the_likeliest_comes_first() {
        assert_eq!(similar("demo", &["demo-2", "demos", "remo", "memo"]), ["demos", "memo", "remo"]);
    }

    #[test]
    fn without_a_likely_name_all_are_listed() {
        let remedy = |word| remedy(word, "plans", &PLANS);
        assert_eq!(remedy("depoy").unwrap(), "did you mean deploy?");
        assert_eq!(
            remedy("migrate").unwrap(),
            "name one of the plans: backup, cleanup, deploy, restore, update"
        );
        assert_eq!(super::remedy("x", "plans", &[]), None);
    }

    #[test]
    fn many_names_and_long_ones_cost_little() {
        let names: Vec<String> = (0..100_000).map(|i| format!("{i:0200}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = remedy(&"x".repeat(200), "Instances", &names).unwrap();
        assert!(text.ends_with(" and 99988 more") && text.len() < 4000, "{text}");
        assert_eq!(remedy(&"0".repeat(100_000), "Instances", &names[..1]).unwrap().len(), 227);
        // Six of them are compared, and then none any more.
        let near: Vec<String> = (0..1000).map(|i| format!("{}{i:03}", "y".repeat(200))).collect();
        let near: Vec<&str> = near.iter().map(String::as_str).collect();
        assert_eq!(similar(near[5], &near)[0], near[5]);
        assert_eq!(similar(near[900], &near[100..]), near[100..103]);
    }
}
