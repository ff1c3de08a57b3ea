//! A list of Kong's Admin API, such as `GET /routes`, read page by page: the names of its elements.
//!
//! A page is `{"data": [...], "offset": "..."}`; the last one has no `offset`. Kong's `next` is a path that repeats it,
//! and is not followed: a pod decides on neither the host nor the path that is asked. What a pod sends is not trusted,
//! so pages, elements and bytes of names have limits.

use std::fmt::Write as _;

use serde::Deserialize;
use thiserror::Error;

/// Elements that a page is asked for: each may have 4 KiB, as an answer may have 1 MiB.
const PAGE: usize = 250;
/// Pages that are read.
const PAGES: usize = 80;
/// Elements that are read.
const ELEMENTS: usize = PAGE * PAGES;
/// Bytes that the names of all elements may have.
const NAMES: usize = 1 << 20;
/// Longest offset that is sent back. Kong's has some fifty bytes.
const OFFSET: usize = 512;

/// Why a list is not read, as what the pod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ListingError {
    /// A page is no list.
    #[error("answers no list of Kong's Admin API")]
    NoList,
    /// There are more pages than are read.
    #[error("has more than {PAGES} pages of {PAGE}")]
    Pages,
    /// There are more elements than are read.
    #[error("lists more than {ELEMENTS} elements")]
    Elements,
    /// The names are longer than what is read.
    #[error("lists names of more than {NAMES} bytes")]
    Names,
    /// The next page cannot be asked for, or is the same one again.
    #[error("names no next page, and not that there is none")]
    Offset,
}

/// A list, as far as it was read.
#[derive(Clone, Debug, Default)]
pub struct KongListing {
    names: Vec<Option<String>>,
    size: usize,
    pages: usize,
    offset: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Element>,
    #[serde(default)]
    offset: Option<String>,
}

#[derive(Deserialize)]
struct Element {
    #[serde(default)]
    name: Option<String>,
}

impl KongListing {
    /// The path and query of the next page of the list at `path`.
    pub fn next(&self, path: &str) -> String {
        let mut next = format!("{path}?size={PAGE}");
        if let Some(offset) = &self.offset {
            next.push_str("&offset=");
            for byte in offset.bytes() {
                match byte {
                    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                        next.push(char::from(byte));
                    }
                    // Writing to a String never fails.
                    other => _ = write!(next, "%{other:02X}"),
                }
            }
        }
        next
    }

    /// Takes in the answer to [`Self::next`]. Returns whether there is another page.
    pub fn take(&mut self, body: &[u8]) -> Result<bool, ListingError> {
        let page: Page = serde_json::from_slice(body).map_err(|_| ListingError::NoList)?;
        self.pages += 1;
        self.size +=
            page.data.iter().filter_map(|element| element.name.as_ref()).map(String::len).sum::<usize>();
        self.names.extend(page.data.into_iter().map(|element| element.name));
        if self.names.len() > ELEMENTS {
            return Err(ListingError::Elements);
        }
        if self.size > NAMES {
            return Err(ListingError::Names);
        }
        let Some(offset) = page.offset else { return Ok(false) };
        if offset.is_empty() || offset.len() > OFFSET || self.offset.as_ref() == Some(&offset) {
            return Err(ListingError::Offset);
        }
        if self.pages == PAGES {
            return Err(ListingError::Pages);
        }
        self.offset = Some(offset);
        Ok(true)
    }

    /// The name of each element, as a JSON array; `null` for one without a name.
    pub fn into_json(self) -> Vec<u8> {
        // An array of strings always serialises.
        serde_json::to_vec(&self.names).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn page(names: &[&str], offset: Option<&str>) -> Value {
        let data: Vec<Value> = names.iter().map(|name| json!({"id": "x", "name": name})).collect();
        match offset {
            Some(offset) => json!({"data": data, "next": "http://evil/routes", "offset": offset}),
            None => json!({"data": data, "next": null}),
        }
    }

    fn take(listing: &mut KongListing, page: &Value) -> Result<bool, ListingError> {
        listing.take(page.to_string().as_bytes())
    }

    #[test]
    fn pages_follow_each_other_by_their_offset() {
        let mut listing = KongListing::default();
        assert_eq!(listing.next("/routes"), "/routes?size=250");
        assert_eq!(take(&mut listing, &page(&["a", "b"], Some("Wz/+=&x"))), Ok(true));
        assert_eq!(listing.next("/routes"), "/routes?size=250&offset=Wz%2F%2B%3D%26x");
        let last = json!({"data": [{"name": "c"}, {"name": null}, {}], "next": null});
        assert_eq!(take(&mut listing, &last), Ok(false));
        assert_eq!(listing.into_json(), br#"["a","b","c",null,null]"#);
    }

    #[rstest]
    #[case::no_json(b"<html>", ListingError::NoList)]
    #[case::no_data(br#"{"message":"ok"}"#, ListingError::NoList)]
    #[case::another_type(br#"{"data":[{"name":7}]}"#, ListingError::NoList)]
    #[case::empty_offset(br#"{"data":[],"offset":""}"#, ListingError::Offset)]
    fn what_is_no_list_is_not_read(#[case] body: &[u8], #[case] expected: ListingError) {
        assert_eq!(KongListing::default().take(body), Err(expected));
    }

    #[test]
    fn a_list_has_limits() {
        let mut same = KongListing::default();
        assert_eq!(take(&mut same, &page(&[], Some("o"))), Ok(true));
        assert_eq!(take(&mut same, &page(&[], Some("o"))), Err(ListingError::Offset), "it goes round");
        let mut endless = KongListing::default();
        let end = (0..).find_map(|n| take(&mut endless, &page(&["a"], Some(&n.to_string()))).err());
        assert_eq!((end, endless.pages), (Some(ListingError::Pages), PAGES));
        let many = vec!["a"; ELEMENTS + 1];
        assert_eq!(take(&mut KongListing::default(), &page(&many, None)), Err(ListingError::Elements));
        let long = "a".repeat(NAMES + 1);
        assert_eq!(take(&mut KongListing::default(), &page(&[&long], None)), Err(ListingError::Names));
        let offset = "o".repeat(OFFSET + 1);
        assert_eq!(take(&mut KongListing::default(), &page(&[], Some(&offset))), Err(ListingError::Offset));
    }
}
