//! Values of parameters: a map by name.
//!
//! A sorted list, as the API server sends it: reading appends to it, comparing two walks them side
//! by side, and a lookup takes a few steps in contiguous memory.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::Text;

type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Values by name, in order of name, borrowed where they can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values<'a>(Vec<Pair<'a>>);

impl<'a> Values<'a> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// From pairs in any order; the last one of a name counts. Also returns whether the pairs were
    /// in order.
    pub fn gathered(pairs: Vec<Pair<'a>>) -> (Self, bool) {
        let in_order = pairs.is_sorted_by(|(one, _), (next, _)| one < next);
        let mut values = Self(pairs);
        if !in_order {
            values.sort();
        }
        (values, in_order)
    }

    fn sort(&mut self) {
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.0.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            same
        });
    }

    /// Keeps only some values, by name.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<&Cow<'a, str>> {
        self.place(name).ok().map(|at| &self.0[at].1)
    }

    /// Whether there is a value of that name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at a position in the order.
    pub fn nth(&self, at: usize) -> Option<(&Cow<'a, str>, &Cow<'a, str>)> {
        self.0.get(at).map(|(name, value)| (name, value))
    }

    /// All of them, in order of name.
    pub fn iter(&self) -> Iter<'_, 'a> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// All names, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Cow<'a, str>> {
        self.0.iter().map(|(name, _)| name)
    }

    /// The same, owning its strings.
    pub fn into_owned(self) -> Values<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Values(self.0.into_iter().map(|(name, value)| (owned(name), owned(value))).collect())
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_ref().cmp(name))
    }
}

/// Names and values, in order.
pub type Iter<'s, 'a> =
    std::iter::Map<std::slice::Iter<'s, Pair<'a>>, fn(&'s Pair<'a>) -> (&'s Cow<'a, str>, &'s Cow<'a, str>)>;

impl<'s, 'a> IntoIterator for &'s Values<'a> {
    type Item = (&'s Cow<'a, str>, &'s Cow<'a, str>);
    type IntoIter = Iter<'s, 'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> FromIterator<Pair<'a>> for Values<'a> {
    fn from_iter<I: IntoIterator<Item = Pair<'a>>>(pairs: I) -> Self {
        Self::gathered(pairs.into_iter().collect()).0
    }
}

impl<'a> Extend<Pair<'a>> for Values<'a> {
    /// Sets values; the last one of a name counts.
    fn extend<I: IntoIterator<Item = Pair<'a>>>(&mut self, pairs: I) {
        self.0.extend(pairs);
        self.sort();
    }
}

impl<'a, const N: usize> From<[Pair<'a>; N]> for Values<'a> {
    fn from(pairs: [Pair<'a>; N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    /// Without copying strings; `null` is none.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Values::new())
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut pairs = Vec::new();
                while let Some((name, value)) = map.next_entry::<Text<'de>, Text<'de>>()? {
                    pairs.push((name.0, value.0));
                }
                Ok(Values::gathered(pairs).0)
            }
        }

        deserializer.deserialize_any(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// It equals a map of the same values, in whatever order it was filled.
        #[test]
        fn a_list_of_values_is_a_map(
            pairs in prop::collection::vec(("[a-c]{0,2}", "[x-z]{0,1}"), 0..12),
            more in prop::collection::vec(("[a-c]{0,2}", "[x-z]{0,1}"), 0..6),
            gone in prop::collection::btree_set("[a-c]{0,2}", 0..4),
        ) {
            let mut map: BTreeMap<String, String> = pairs.iter().cloned().collect();
            let borrowed = |pairs: &[(String, String)]| -> Vec<Pair<'static>> {
                pairs.iter().map(|(k, v)| (k.clone().into(), v.clone().into())).collect()
            };
            let (mut values, in_order) = Values::gathered(borrowed(&pairs));
            prop_assert_eq!(in_order, pairs.windows(2).all(|two| two[0].0 < two[1].0));
            prop_assert_eq!(&values, &borrowed(&pairs).into_iter().collect());
            values.extend(borrowed(&more));
            map.extend(more);
            for name in &gone {
                prop_assert_eq!(values.get(name).map(AsRef::as_ref), map.get(name).map(String::as_str));
            }
            values.retain(|name| !gone.contains(name));
            map.retain(|name, _| !gone.contains(name));
            prop_assert!(gone.iter().all(|name| !values.contains_key(name)));
            prop_assert_eq!(serde_json::to_string(&values).unwrap(), serde_json::to_string(&map).unwrap());
            let json = serde_json::to_string(&map).unwrap();
            prop_assert_eq!(serde_json::from_str::<Values<'_>>(&json).unwrap(), values);
        }
    }
}
