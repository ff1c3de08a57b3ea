//! JSON values, of which no object has a key twice.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A key that an object has twice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DuplicateJsonKey {
    pub(super) key: String,
    /// From 1.
    pub(super) line: usize,
}

/// A value, and its bytes in the text.
pub(super) type Located = (Value, Range<usize>);

/// The values of a text that is a stream of JSON; `None` for other texts.
pub(super) fn values(text: &str) -> Result<Option<Vec<Located>>, DuplicateJsonKey> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Unique>();
    let mut values = Vec::new();
    let mut start = 0;
    while let Some(next) = stream.next() {
        match next {
            Ok(Unique(value)) => {
                let end = stream.byte_offset();
                let begin = start + text[start..end].len() - text[start..end].trim_start().len();
                values.push((value, begin..end));
                start = end;
            }
            Err(error) if error.is_data() => {
                let line = error.line();
                let text = error.to_string();
                let key = text.rsplit_once(" at line ").map_or(text.as_str(), |(key, _)| key);
                return Err(DuplicateJsonKey { key: key.to_owned(), line });
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(values))
}

/// A value that refuses duplicate keys; the text of the error is the key.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Unique, E> {
        Ok(Unique(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Unique, E> {
        Ok(Unique(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            values.push(item);
        }
        Ok(Unique(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Unique, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(key));
            }
            let Unique(value) = members.next_value()?;
            map.insert(key, value);
        }
        Ok(Unique(map.into()))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stream_is_read_with_its_places() {
        let text = "{\"a\": [1, -2, 0.5, null, true, \"x\"]}\n\n{\"b\": {}}\n";
        let found = values(text).unwrap().unwrap();
        assert_eq!(found[0].0, json!({"a": [1, -2, 0.5, null, true, "x"]}));
        assert_eq!(&text[found[1].1.clone()], "{\"b\": {}}");
    }

    #[rstest]
    #[case("{\"a\": 1,\n\t\"a\": 2}", "a", 2)]
    #[case("{}\n{\"x\": {\"at line 7\": 1,\n\n \"at line 7\": 2}}", "at line 7", 4)]
    fn a_duplicate_is_named(#[case] text: &str, #[case] key: &str, #[case] line: usize) {
        assert_eq!(values(text).unwrap_err(), DuplicateJsonKey { key: key.to_owned(), line });
    }

    #[rstest]
    #[case("{a: 1}")]
    #[case("{\"a\": 1}\n---\n{}")]
    fn what_is_no_json_is_left_to_yaml(#[case] text: &str) {
        assert_eq!(values(text).unwrap(), None);
    }
}
