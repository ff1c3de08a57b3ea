//! The routes that a pod holds, by their names, and how those of a preview differ from those of the live side.
//!
//! A route has other fields under `expressions` than under the other flavors, and the same name: an ingress controller
//! derives it from its object. Of routes without a name, only their number can be compared.

use std::collections::BTreeMap;

use interlock_core::api::display::display;

/// Routes that a text names.
const NAMED: usize = 3;
/// Characters of a name that a text shows: a pod may answer any.
const LONGEST: usize = 60;

/// How many routes a pod holds of each name; `None` = without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteNames(BTreeMap<Option<String>, usize>);

impl RouteNames {
    /// From a JSON array of names.
    pub fn read(body: &[u8]) -> Option<Self> {
        let names: Vec<Option<String>> = serde_json::from_slice(body).ok()?;
        let mut found = BTreeMap::new();
        for name in names {
            *found.entry(name).or_default() += 1;
        }
        Some(Self(found))
    }

    /// How many routes there are.
    pub fn count(&self) -> usize {
        self.0.values().sum()
    }

    /// What a preview with these routes lacks of those of a live pod, and has beside them; `None` where they are the
    /// same.
    pub fn difference(&self, live: &Self, live_pod: &str) -> Option<String> {
        let (lacks, has) = (live.without(self), self.without(live));
        let of = format!("the {} of live pod {live_pod}", live.count());
        let lacks =
            (lacks.count() > 0).then(|| format!("it lacks {} of {of}: {}", routes(&lacks), lacks.named()));
        let has = (has.count() > 0).then(|| format!("it has {} beside {of}: {}", routes(&has), has.named()));
        match (lacks, has) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one),
            (Some(lacks), Some(has)) => Some(format!("{lacks}; {has}")),
        }
    }

    /// These routes without those of another pod.
    fn without(&self, others: &Self) -> Self {
        let left = self.0.iter().map(|(name, count)| {
            let there = others.0.get(name).copied().unwrap_or_default();
            (name.clone(), count.saturating_sub(there))
        });
        Self(left.filter(|(_, count)| *count > 0).collect())
    }

    /// The first names, and how many there are beside them.
    fn named(&self) -> String {
        let names = self.0.keys().flatten();
        let mut parts: Vec<String> = names.clone().take(NAMED).map(|name| display(name, LONGEST)).collect();
        if let Some(count) = self.0.get(&None) {
            parts.push(format!("{count} without a name"));
        }
        match names.count().saturating_sub(NAMED) {
            0 => parts.join(", "),
            more => format!("{} and {more} more", parts.join(", ")),
        }
    }
}

fn routes(of: &RouteNames) -> String {
    match of.count() {
        1 => "1 route".to_owned(),
        count => format!("{count} routes"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn names(json: &str) -> RouteNames {
        RouteNames::read(json.as_bytes()).expect("an array of names")
    }

    #[rstest]
    #[case::same(r#"["a","b"]"#, r#"["b","a"]"#, None)]
    #[case::none("[]", "[]", None)]
    #[case::unnamed("[null,null]", "[null,null]", None)]
    #[case::lacks_one(r#"["a","b"]"#, r#"["a"]"#, Some("it lacks 1 route of the 2 of live pod p: b"))]
    #[case::lacks_many(
        r#"["a","b","c","d","e"]"#,
        "[]",
        Some("it lacks 5 routes of the 5 of live pod p: a, b, c and 2 more")
    )]
    #[case::lacks_unnamed(
        r#"["a",null,null]"#,
        r#"["a",null]"#,
        Some("it lacks 1 route of the 3 of live pod p: 1 without a name")
    )]
    #[case::has_more("[]", r#"["a"]"#, Some("it has 1 route beside the 0 of live pod p: a"))]
    #[case::others(
        r#"["a"]"#,
        r#"["b"]"#,
        Some("it lacks 1 route of the 1 of live pod p: a; it has 1 route beside the 1 of live pod p: b")
    )]
    // Names are unique in a workspace of Kong's; another one may have the same again.
    #[case::twice(r#"["a","a"]"#, r#"["a"]"#, Some("it lacks 1 route of the 2 of live pod p: a"))]
    #[case::hostile(
        r#"["\u0000\n\u001b[31m"]"#,
        "[]",
        Some(r"it lacks 1 route of the 1 of live pod p: \u0000 \u001b[31m")
    )]
    fn routes_are_compared_by_name_and_number(
        #[case] live: &str,
        #[case] preview: &str,
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(names(preview).difference(&names(live), "p").as_deref(), expected);
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = names(&format!("[\"{}\"]", "ä".repeat(200)));
        let said = RouteNames::default().difference(&long, "p").unwrap();
        assert!(said.ends_with('…') && said.chars().count() < 120, "{said}");
    }

    #[rstest]
    fn what_is_no_array_of_names_is_not_read(#[values("", "{}", "[1]", "<html>")] body: &str) {
        assert_eq!(RouteNames::read(body.as_bytes()), None);
    }
}
