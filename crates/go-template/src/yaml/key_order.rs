//! The order of keys of yaml.v2: `keyList.Less` of its `sorter.go`.

use std::cmp::Ordering;

/// Entries in the order of their keys. Yaml.v2's order is not transitive for some keys with leading zeros,
/// on which the standard library's sort may panic; a merge does not.
pub(super) fn sorted<T>(mut entries: Vec<&(Vec<u8>, T)>) -> Vec<&(Vec<u8>, T)> {
    if entries.len() < 2 {
        return entries;
    }
    let right = sorted(entries.split_off(entries.len() / 2));
    let mut left = sorted(entries).into_iter().peekable();
    let mut right = right.into_iter().peekable();
    let mut merged = Vec::with_capacity(left.len() + right.len());
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let order = key_order(&String::from_utf8_lossy(a), &String::from_utf8_lossy(b));
        merged.extend(if order == Ordering::Greater { right.next() } else { left.next() });
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

/// `keyList.Less`: letters after everything else, numbers within texts by their value.
fn key_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for i in 0..a.len().min(b.len()) {
        if a[i] == b[i] {
            continue;
        }
        let (a_letter, b_letter) = (a[i].is_alphabetic(), b[i].is_alphabetic());
        if a_letter && b_letter {
            return a[i].cmp(&b[i]);
        }
        if a_letter || b_letter {
            return if b_letter { Ordering::Less } else { Ordering::Greater };
        }
        let leading = (a[i] == '0' || b[i] == '0') && follows_number(&a[..i]);
        let (a_value, a_end) = number_at(&a, i, leading);
        let (b_value, b_end) = number_at(&b, i, leading);
        return a_value.cmp(&b_value).then(a_end.cmp(&b_end)).then(a[i].cmp(&b[i]));
    }
    a.len().cmp(&b.len())
}

/// Whether one of the preceding digits is not zero.
fn follows_number(before: &[char]) -> bool {
    before.iter().rev().take_while(|c| c.is_numeric()).any(|&c| c != '0')
}

fn number_at(chars: &[char], start: usize, leading: bool) -> (i64, usize) {
    let mut value = i64::from(leading);
    let mut end = start;
    while let Some(digit) = chars.get(end).filter(|c| c.is_numeric()) {
        let digit = i64::from(u32::from(*digit)) - i64::from(u32::from('0'));
        value = value.wrapping_mul(10).wrapping_add(digit);
        end += 1;
    }
    (value, end)
}
