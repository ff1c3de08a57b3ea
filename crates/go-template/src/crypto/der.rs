//! ASN.1 in DER: what keys and certificates need of it.

use num_bigint::BigUint;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// A value with its tag and length.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length) if length < 0x80 => out.push(length),
        _ => {
            let bytes = content.len().to_be_bytes();
            let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
            out.push(0x80 | bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A number that is not negative.
pub(super) fn integer(value: &BigUint) -> Vec<u8> {
    let mut bytes = value.to_bytes_be();
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    element(INTEGER, &bytes)
}

pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// One element: its tag, its content, and all of its bytes.
#[derive(Clone, Copy)]
pub(super) struct DerElement<'d> {
    pub(super) tag: u8,
    pub(super) content: &'d [u8],
    pub(super) whole: &'d [u8],
}

impl<'d> DerElement<'d> {
    /// The only element of some bytes.
    pub(super) fn only(bytes: &'d [u8]) -> Option<Self> {
        let mut reader = DerReader(bytes);
        reader.next_element().filter(|_| reader.0.is_empty())
    }

    /// Its elements, if it has this tag.
    pub(super) fn inside(&self, tag: u8) -> Option<DerReader<'d>> {
        (self.tag == tag).then_some(DerReader(self.content))
    }

    /// Its number, if it is one that is not negative, in as few bytes as it takes.
    pub(super) fn number(&self) -> Option<BigUint> {
        let (first, rest) = self.content.split_first()?;
        let is_shortest = *first != 0 || rest.first().is_none_or(|next| next & 0x80 != 0);
        (self.tag == INTEGER && first & 0x80 == 0 && is_shortest)
            .then(|| BigUint::from_bytes_be(self.content))
    }
}

/// Elements one after another.
pub(super) struct DerReader<'d>(&'d [u8]);

impl<'d> DerReader<'d> {
    pub(super) fn next_element(&mut self) -> Option<DerElement<'d>> {
        let (&tag, after) = self.0.split_first()?;
        let (&length, after) = after.split_first()?;
        let (length, after) = match length {
            0..=0x7f => (usize::from(length), after),
            0x81..=0x84 => {
                let count = usize::from(length - 0x80);
                let bytes = after.get(..count)?;
                let length = bytes.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
                if bytes[0] == 0 || length < 0x80 {
                    return None;
                }
                (length, &after[count..])
            }
            _ => return None,
        };
        let content = after.get(..length)?;
        let (whole, rest) = self.0.split_at(self.0.len() - after.len() + length);
        self.0 = rest;
        Some(DerElement { tag, content, whole })
    }

    /// The next element, if it has this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<DerElement<'d>> {
        self.next_element().filter(|element| element.tag == tag)
    }

    /// The next element, if it has this tag; else it stays.
    pub(super) fn optional(&mut self, tag: u8) -> Option<DerElement<'d>> {
        if self.0.first() == Some(&tag) { self.next_element() } else { None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
