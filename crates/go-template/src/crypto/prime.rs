//! Candidates for primes, in the order of a stream of random bytes.

use std::num::NonZeroU32;

use crypto_bigint::BoxedUint;
use crypto_primes::Flavor;
use crypto_primes::hazmat::SmallFactorsSieve;

use crate::generator::Stream;

/// Numbers of so many bits without small factors, from a random one upwards. The two highest bits are set, so that
/// a product of two numbers has twice as many.
pub(super) fn candidates(mut stream: Stream, bits: u32) -> impl FnMut() -> BoxedUint {
    let mut sieve = None;
    move || {
        loop {
            if let Some(candidate) = sieve.as_mut().and_then(Iterator::next) {
                return candidate;
            }
            sieve = sieve_from(random(&mut stream, bits, 0xc0), bits);
        }
    }
}

/// A random number of so many bits, a multiple of 8, with these bits of its first byte set.
pub(super) fn random(stream: &mut Stream, bits: u32, first: u8) -> BoxedUint {
    let mut bytes = stream.bytes(usize::try_from(bits / 8).unwrap_or_default());
    if let Some(byte) = bytes.first_mut() {
        *byte |= first;
    }
    BoxedUint::from_be_slice_vartime(&bytes)
}

fn sieve_from(start: BoxedUint, bits: u32) -> Option<SmallFactorsSieve<BoxedUint>> {
    SmallFactorsSieve::new(start, NonZeroU32::new(bits)?, false).ok()
}

/// Whether the number, which is odd, has no small factor.
pub(super) fn has_no_small_factor(number: &BoxedUint, bits: u32) -> bool {
    sieve_from(number.clone(), bits).and_then(|mut sieve| sieve.next()).as_ref() == Some(number)
}

pub(super) fn is_prime(number: &BoxedUint) -> bool {
    crypto_primes::is_prime(Flavor::Any, number)
}
