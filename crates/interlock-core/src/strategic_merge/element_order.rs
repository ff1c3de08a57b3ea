//! The order of the elements of a merged list (client-go `normalizeElementOrder`).

use std::collections::HashMap;

/// Elements with their keys.
pub type Keyed<T> = Vec<(String, T)>;

/// The desired elements in their order, and the others in theirs, interleaved as the live list had them as far as it
/// had them: `live` is the order of its keys.
pub fn interleave<T>(desired: Keyed<T>, others: Keyed<T>, live: &HashMap<String, usize>) -> Keyed<T> {
    let mut merged = Vec::with_capacity(desired.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (key, element) in desired {
        let at = live.get(&key);
        while let Some(other) =
            others.next_if(|(other, _)| at.is_some_and(|at| live.get(other).is_some_and(|o| o < at)))
        {
            merged.push(other);
        }
        merged.push((key, element));
    }
    merged.extend(others);
    merged
}

/// The place of each key.
pub fn places<'k>(keys: impl Iterator<Item = &'k str>) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (i, key) in keys.enumerate() {
        places.entry(key.to_owned()).or_insert(i);
    }
    places
}
