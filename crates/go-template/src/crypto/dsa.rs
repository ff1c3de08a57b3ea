//! DSA: keys of 2048 and 256 bits, as `crypto/dsa` makes them. No crate has them in the form that sprig writes, and
//! the search of the crate `dsa` cannot be interrupted.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, NonZero, Odd, Resize as _};
use der::asn1::Uint;
use der::{Encode as _, Sequence};

use super::making::Making;
use super::prime;
use crate::error::Failure;
use crate::generator::Stream;

const BITS: u32 = 2048;
const ORDER_BITS: u32 = 256;

/// The form of sprig, which is that of OpenSSL.
#[derive(Sequence)]
struct DsaPrivateKey {
    version: u8,
    p: Uint,
    q: Uint,
    g: Uint,
    y: Uint,
    x: Uint,
}

/// A private key in DER.
pub(crate) fn generate(making: &mut Making<'_, '_>, stream: &Stream) -> Result<Vec<u8>, Failure> {
    let q = making.number(0, prime::candidates(stream.part(0), ORDER_BITS), prime::is_prime)?;
    let p = making.number(1, moduli(stream.part(1), &q)?, |p| {
        prime::has_no_small_factor(p, BITS) && prime::is_prime(p)
    })?;
    key(p, q, stream.part(2)).ok_or_else(no_key)
}

/// Numbers `p` of which `p - 1` is a multiple of `2 * q`, upwards from a random one.
fn moduli(mut stream: Stream, q: &BoxedUint) -> Result<impl FnMut() -> BoxedUint, Failure> {
    let q = q.resize_unchecked(BITS);
    let step = q.wrapping_add(&q);
    let divisor = NonZero::new(step.clone()).into_option().ok_or_else(no_key)?;
    let start = prime::random(&mut stream, BITS, 0x80);
    let mut next = start.wrapping_sub(start.rem_vartime(&divisor)).wrapping_add(BoxedUint::one());
    Ok(move || {
        let candidate = next.clone();
        next = next.wrapping_add(&step);
        candidate
    })
}

fn key(p: BoxedUint, q: BoxedUint, mut stream: Stream) -> Option<Vec<u8>> {
    let one = BoxedUint::one();
    let order = NonZero::new((&q).resize_unchecked(BITS)).into_option()?;
    let (cofactor, _) = p.wrapping_sub(&one).div_rem_vartime(&order);
    let modulus = BoxedMontyParams::new_vartime(Odd::new(p.clone()).into_option()?);
    // A base whose power is 1 is as good as impossible; the next one serves.
    let g = (2..=u8::MAX).map(|base| {
        BoxedMontyForm::new(BoxedUint::from(base).resize_unchecked(BITS), &modulus).pow(&cofactor)
    });
    let g = g.into_iter().find(|g| !g.retrieve().is_one().to_bool())?;
    let exponents = NonZero::new(q.wrapping_sub(&one)).into_option()?;
    let x = prime::random(&mut stream, ORDER_BITS + 64, 0).rem_vartime(&exponents).wrapping_add(&one);
    let y = g.pow(&x).retrieve();
    let uint = |number: &BoxedUint| Uint::new(&number.to_be_bytes()).ok();
    let [p, q, g, y, x] = [uint(&p)?, uint(&q)?, uint(&g.retrieve())?, uint(&y)?, uint(&x)?];
    DsaPrivateKey { version: 0, p, q, g, y, x }.to_der().ok()
}

fn no_key() -> Failure {
    Failure::new("failed to generate dsa key")
}
