//! DSA: keys of 2048 and 256 bits, as `crypto/dsa` makes them.

use num_bigint::BigUint;

use super::{der, prime};
use crate::generator::Stream;
use crate::limits::{LimitReached, Meter};

const BITS: usize = 2048;
const ORDER_BITS: usize = 256;

/// A private key as sprig writes it: version, p, q, g, y, x.
pub(crate) fn generate(meter: &Meter, stream: &mut Stream) -> Result<Vec<u8>, LimitReached> {
    let one = BigUint::from(1_u8);
    let q = prime::random(meter, stream, ORDER_BITS)?;
    let step = &q << 1_u8;
    let p = loop {
        let mut bytes = stream.bytes(BITS / 8);
        if let Some(first) = bytes.first_mut() {
            *first |= 0x80;
        }
        let random = BigUint::from_bytes_be(&bytes);
        let start = &random - &random % &step + &one;
        let found = prime::search(meter, stream, &start, &step)?;
        if let Some(p) = found.filter(|p| p.bits() == BITS as u64) {
            break p;
        }
    };
    let cofactor = (&p - &one) / &q;
    let mut base = BigUint::from(2_u8);
    let g = loop {
        let g = base.modpow(&cofactor, &p);
        if g != one {
            break g;
        }
        base += 1_u8;
    };
    let x = BigUint::from_bytes_be(&stream.bytes(ORDER_BITS / 8 + 8)) % (&q - &one) + &one;
    let y = g.modpow(&x, &p);
    Ok(der::sequence(&[BigUint::ZERO, p, q, g, y, x].each_ref().map(der::integer)))
}
