//! A member of a spec that maps names to strings, such as an Instance's `parameters`, as values and as their
//! original text.
//!
//! An object and its old version share nearly all entries, and the API server sends them in canonical form:
//! so most are neither read twice nor serialized again to be hashed.

use std::borrow::Cow;

use crate::api::json::{JsonError, Raw, Scanner, json_string};
use crate::api::values::Values;

/// A map of strings: values by name, and their original text.
#[derive(Clone, Debug)]
pub struct StringMap<'a> {
    /// The values.
    pub values: Values<'a>,
    /// The text of each, name and value, in the order of the values; empty if they came in another
    /// order.
    members: Vec<&'a str>,
    text: Raw<'a>,
    /// Whether the text of all is canonical JSON.
    canonical: bool,
}

/// Packages seldom have more parameters.
const USUAL: usize = 48;

impl<'a> StringMap<'a> {
    /// The original text of all parameters.
    pub fn text(&self) -> Raw<'a> {
        self.text
    }

    /// The canonical JSON of all parameters, if they came that way.
    pub fn canonical(&self) -> Option<&'a str> {
        self.canonical.then(|| self.text.get())
    }

    /// Reads an object of strings, or null, that probably resembles `like`.
    pub fn read(s: &mut Scanner<'a>, like: Option<&Self>) -> Result<Self, JsonError> {
        let from = s.here();
        if s.null()? {
            let text = s.since(from);
            return Ok(Self { values: Values::new(), members: Vec::new(), text, canonical: false });
        }
        let mut known = Known { like, next: 0 };
        let count = like.map_or(USUAL, |like| like.members.len() + 1);
        let mut pairs = Vec::with_capacity(count);
        let mut members = Vec::with_capacity(count);
        let (mut canonical, mut length) = (true, 2);
        s.whole_members(|s| {
            let member = match known.take(s) {
                Some(member) => member,
                None => known.read(s)?,
            };
            canonical &= member.canonical;
            length += member.text.len() + usize::from(!members.is_empty());
            members.push(member.text);
            pairs.push((member.name, member.value));
            Ok(())
        })?;
        let text = s.since(from);
        let (values, in_order) = Values::gathered(pairs);
        if !in_order {
            members.clear();
        }
        // The text has only the members, a comma between two, and the braces: no white space.
        let canonical = canonical && in_order && length == text.get().len();
        Ok(Self { values, members, text, canonical })
    }
}

/// One parameter and its text.
struct Member<'a> {
    name: Cow<'a, str>,
    value: Cow<'a, str>,
    text: &'a str,
    /// Whether the text is canonical.
    canonical: bool,
}

impl<'a> Member<'a> {
    fn read(s: &mut Scanner<'a>) -> Result<Self, JsonError> {
        let from = s.here();
        let (name, value) = (s.name()?.0, s.text()?.0);
        let text = s.since(from).get();
        let canonical = match (&name, &value) {
            // A text without escapes: five punctuation marks, and no white space.
            (Cow::Borrowed(name), Cow::Borrowed(value)) => text.len() == name.len() + value.len() + 5,
            _ => {
                let mut own = String::with_capacity(text.len());
                json_string(&mut own, &name);
                own.push(':');
                json_string(&mut own, &value);
                own == text
            }
        };
        Ok(Self { name, value, text, canonical })
    }
}

/// Parameters read before, one of which is probably next.
struct Known<'k, 'a> {
    like: Option<&'k StringMap<'a>>,
    next: usize,
}

impl<'a> Known<'_, 'a> {
    /// Takes the expected parameter, if it is next.
    fn take(&mut self, s: &mut Scanner<'a>) -> Option<Member<'a>> {
        let like = self.like?;
        let text = *like.members.get(self.next)?;
        let (name, value) = like.values.nth(self.next)?;
        if !s.exactly(text) {
            return None;
        }
        self.next += 1;
        let canonical = like.canonical;
        Some(Member { name: name.clone(), value: value.clone(), text, canonical })
    }

    /// Reads another parameter, and finds the one expected after it.
    fn read(&mut self, s: &mut Scanner<'a>) -> Result<Member<'a>, JsonError> {
        let member = Member::read(s)?;
        let passed = |next: usize| {
            self.like.and_then(|like| like.values.nth(next)).is_some_and(|(name, _)| *name <= member.name)
        };
        while passed(self.next) {
            self.next += 1;
        }
        Ok(member)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::api::stamp::{Applied, VersionRef};

    fn alone(text: &str) -> StringMap<'_> {
        StringMap::read(&mut Scanner::new(text), None).unwrap()
    }

    #[rstest]
    #[case::sorted(r#"{"A":"1","B":"x"}"#, true)]
    #[case::none("{}", true)]
    #[case::escapes(r#"{"A":"\"\n\\","B":"\u0001"}"#, true)]
    #[case::go_escapes(r#"{"A":"\u003c"}"#, false)]
    #[case::a_slash(r#"{"A":"\/"}"#, false)]
    #[case::upper_case(r#"{"A":"\u001F"}"#, false)]
    #[case::in_another_order(r#"{"B":"1","A":"x"}"#, false)]
    #[case::twice(r#"{"A":"1","A":"1"}"#, false)]
    #[case::space_between(r#"{"A":"1", "B":"x"}"#, false)]
    #[case::space_inside(r#"{"A": "1","B":"x"}"#, false)]
    #[case::space_at_the_end(r#"{"A":"1","B":"x" }"#, false)]
    #[case::null("null", false)]
    fn what_is_canonical_as_it_came(#[case] text: &str, #[case] canonical: bool) {
        let found = alone(text);
        assert_eq!(found.text().get(), text);
        assert_eq!(found.canonical(), canonical.then_some(text));
        if canonical {
            let version = VersionRef { name: "v".into(), namespace: "n".into() };
            let written = version.canonical_with(text);
            assert_eq!(written, Applied { operator_version: version, parameters: found.values }.canonical());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Parameters read before do not change the result.
        #[test]
        fn what_was_read_before_changes_nothing(
            text in members(), before in members(), common in members(),
        ) {
            let join = |a: &str, b: &str| format!("{{{}}}", [a, b].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(","));
            let (text, before) = (join(&common, &text), join(&common, &before));
            let before = alone(&before);
            let found = StringMap::read(&mut Scanner::new(&text), Some(&before)).unwrap();
            let own = alone(&text);
            prop_assert_eq!(&found.values, &own.values);
            // Never canonical by mistake; a canonical text may go unnoticed.
            prop_assert!(found.canonical().is_none() || found.canonical() == own.canonical());
            prop_assert_eq!(found.members, own.members);
            let map: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&map).unwrap(), serde_json::to_string(&found.values).unwrap());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Likewise for what the API server sends: sorted, without spaces, and nearly the same.
        #[test]
        fn a_change_of_few_is_read_as_all_would_be(
            before in map(0..40), changes in map(0..4), dropped in prop::collection::vec(0..40_usize, 0..3),
        ) {
            let mut after = before.clone();
            after.extend(changes);
            for index in dropped {
                if let Some(name) = after.keys().nth(index).cloned() {
                    after.remove(&name);
                }
            }
            let (before, after) = (serde_json::to_string(&before).unwrap(), serde_json::to_string(&after).unwrap());
            let known = alone(&before);
            let document = format!(" {after}, and more");
            let mut scanner = Scanner::new(&document);
            let found = StringMap::read(&mut scanner, Some(&known)).unwrap();
            let own = alone(&after);
            prop_assert_eq!(scanner.position(), 1 + after.len());
            prop_assert_eq!(&found.values, &own.values);
            prop_assert_eq!(found.canonical(), Some(after.as_str()));
            prop_assert_eq!(found.members, own.members);
        }
    }

    fn map(size: std::ops::Range<usize>) -> impl Strategy<Value = BTreeMap<String, String>> {
        prop::collection::btree_map("[a-d]{1,3}", "[x-z]{0,2}[\"\\\\é]?", size)
    }

    /// Members of an object, some of them with escapes and spaces.
    fn members() -> impl Strategy<Value = String> {
        prop::collection::vec("\"[a-c]{0,2}\":( )?\"([x-z]|\\\\n|\\\\u0041){0,2}\"", 0..5)
            .prop_map(|all| all.join(","))
    }
}
