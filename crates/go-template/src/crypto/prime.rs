//! Large primes: a sieve over a window of candidates, then the tests of Miller and Rabin.

use std::sync::LazyLock;

use num_bigint::BigUint;

use crate::generator::Stream;
use crate::limits::{LimitReached, Meter};

/// Candidates that are sieved at once.
const WINDOW: usize = 1 << 14;

/// Tests with random bases, besides the one with base 2. A long number that is none passes few of them.
fn rounds(candidate: &BigUint) -> usize {
    if candidate.bits() < 1024 { 16 } else { 4 }
}

/// Odd primes that candidates are sieved with.
static SMALL: LazyLock<Vec<u32>> = LazyLock::new(|| {
    const END: usize = 1 << 18;
    let mut is_composite = vec![false; END];
    let mut primes = Vec::new();
    for number in (3..END).step_by(2) {
        if is_composite[number] {
            continue;
        }
        primes.extend(u32::try_from(number));
        for multiple in (number * number..END).step_by(2 * number) {
            is_composite[multiple] = true;
        }
    }
    primes
});

/// A random prime of exactly these bits, a multiple of 64; the two highest are set, so that the product of two
/// has twice as many.
pub(super) fn random(meter: &Meter, stream: &mut Stream, bits: usize) -> Result<BigUint, LimitReached> {
    loop {
        let mut bytes = stream.bytes(bits / 8);
        if let Some(first) = bytes.first_mut() {
            *first |= 0xc0;
        }
        if let Some(last) = bytes.last_mut() {
            *last |= 1;
        }
        let found = search(meter, stream, &BigUint::from_bytes_be(&bytes), &BigUint::from(2_u8))?;
        if let Some(prime) = found.filter(|prime| prime.bits() == bits as u64) {
            return Ok(prime);
        }
    }
}

/// The first prime among `start`, `start + step` and so on, within a window. `start` is odd, and has more bits
/// than the primes of the sieve.
pub(super) fn search(
    meter: &Meter,
    stream: &mut Stream,
    start: &BigUint,
    step: &BigUint,
) -> Result<Option<BigUint>, LimitReached> {
    let is_composite = sieve(start, step);
    for (i, _) in is_composite.iter().enumerate().filter(|(_, is_composite)| !**is_composite) {
        let candidate = start + step * i;
        // A test multiplies numbers of so many words for each bit.
        let bits = usize::try_from(candidate.bits()).unwrap_or(usize::MAX);
        meter.pass((bits / 64).saturating_mul(bits / 64).saturating_mul(bits) / 4)?;
        if Montgomery::new(&candidate).is_some_and(|field| field.is_probable_prime())
            && is_prime(&candidate, stream)
        {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

fn sieve(start: &BigUint, step: &BigUint) -> Vec<bool> {
    let mut is_composite = vec![false; WINDOW];
    let (start, step) = (start.to_u32_digits(), step.to_u32_digits());
    for &prime in SMALL.iter() {
        let (start, step) = (remainder(&start, prime), remainder(&step, prime));
        if step == 0 {
            continue;
        }
        let prime = u64::from(prime);
        let first = (prime - start) % prime * power(step, prime - 2, prime) % prime;
        let mut at = usize::try_from(first).unwrap_or(WINDOW);
        while let Some(found) = is_composite.get_mut(at) {
            *found = true;
            at += usize::try_from(prime).unwrap_or(WINDOW);
        }
    }
    is_composite
}

fn remainder(digits: &[u32], prime: u32) -> u64 {
    digits.iter().rev().fold(0, |rest, digit| (rest << 32 | u64::from(*digit)) % u64::from(prime))
}

fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let (mut base, mut result) = (base % modulus, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

/// Miller and Rabin's test with random bases.
fn is_prime(candidate: &BigUint, stream: &mut Stream) -> bool {
    let one = BigUint::from(1_u8);
    let last = candidate - &one;
    let twos = last.trailing_zeros().unwrap_or(0);
    let odd = &last >> twos;
    (0..rounds(candidate)).all(|_| {
        let base = BigUint::from_bytes_be(&stream.bytes(16)) + 2_u8;
        let mut value = base.modpow(&odd, candidate);
        if value == one || value == last {
            return true;
        }
        (1..twos).any(|_| {
            value = &value * &value % candidate;
            value == last
        })
    })
}

/// Numbers modulo an odd number whose highest bit is set, in Montgomery's form.
struct Montgomery {
    modulus: Vec<u64>,
    /// The negated inverse of its lowest word.
    inverse: u64,
}

impl Montgomery {
    fn new(modulus: &BigUint) -> Option<Self> {
        let modulus = modulus.to_u64_digits();
        let (first, last) = (*modulus.first()?, *modulus.last()?);
        if first & 1 == 0 || last >> 63 == 0 {
            return None;
        }
        // Each step of Newton's method doubles the bits that are right; of an odd number three are.
        let inverse = (0..5)
            .fold(first, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(first.wrapping_mul(inverse))));
        Some(Self { modulus, inverse: inverse.wrapping_neg() })
    }

    /// Miller and Rabin's test with base 2, by squaring and doubling alone.
    fn is_probable_prime(&self) -> bool {
        let size = self.modulus.len();
        // 2^(64 * size) mod n, which is 1 in this form.
        let one: Vec<u64> = negated(&self.modulus);
        let minus_one = difference(&self.modulus, &one);
        let mut last = self.modulus.clone();
        last[0] -= 1;
        let twos = trailing_zeros(&last);
        let mut value = one.clone();
        let mut scratch = vec![0; size + 2];
        for bit in (twos..size * 64).rev() {
            self.square(&mut value, &mut scratch);
            if last[bit / 64] >> (bit % 64) & 1 == 1 {
                self.double(&mut value);
            }
        }
        if value == one || value == minus_one {
            return true;
        }
        (1..twos).any(|_| {
            self.square(&mut value, &mut scratch);
            value == minus_one
        })
    }

    fn double(&self, value: &mut [u64]) {
        let mut carry = 0;
        for word in value.iter_mut() {
            let next = *word >> 63;
            *word = *word << 1 | carry;
            carry = next;
        }
        if carry == 1 || !is_less(value, &self.modulus) {
            subtract(value, &self.modulus);
        }
    }

    /// The square, reduced word by word.
    fn square(&self, value: &mut [u64], scratch: &mut [u64]) {
        let size = self.modulus.len();
        let modulus = &self.modulus[..size];
        scratch.fill(0);
        for i in 0..size {
            let factor = value[i];
            let mut carry = 0;
            for (word, other) in scratch[..size].iter_mut().zip(&value[..size]) {
                (*word, carry) = multiply_add(*word, *other, factor, carry);
            }
            let (word, over) = scratch[size].overflowing_add(carry);
            scratch[size] = word;
            scratch[size + 1] = u64::from(over);

            let factor = scratch[0].wrapping_mul(self.inverse);
            let (_, mut carry) = multiply_add(scratch[0], modulus[0], factor, 0);
            for j in 1..size {
                (scratch[j - 1], carry) = multiply_add(scratch[j], modulus[j], factor, carry);
            }
            let (word, over) = scratch[size].overflowing_add(carry);
            scratch[size - 1] = word;
            scratch[size] = scratch[size + 1] + u64::from(over);
        }
        value.copy_from_slice(&scratch[..size]);
        if scratch[size] != 0 || !is_less(value, modulus) {
            subtract(value, modulus);
        }
    }
}

/// `sum + a * b + carry`, as a word and the next carry; it fits.
fn multiply_add(sum: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    let wide = u128::from(sum) + u128::from(a) * u128::from(b) + u128::from(carry);
    (wide as u64, (wide >> 64) as u64)
}

fn is_less(a: &[u64], b: &[u64]) -> bool {
    a.iter().rev().cmp(b.iter().rev()).is_lt()
}

fn subtract(value: &mut [u64], other: &[u64]) {
    let mut borrow = false;
    for (word, other) in value.iter_mut().zip(other) {
        let (first, over) = word.overflowing_sub(*other);
        let (second, again) = first.overflowing_sub(u64::from(borrow));
        *word = second;
        borrow = over || again;
    }
}

fn difference(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut value = a.to_vec();
    subtract(&mut value, b);
    value
}

fn negated(value: &[u64]) -> Vec<u64> {
    difference(&vec![0; value.len()], value)
}

fn trailing_zeros(value: &[u64]) -> usize {
    let words = value.iter().take_while(|word| **word == 0).count();
    words * 64 + value.get(words).map_or(0, |word| word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::Never;
    use crate::generator::Generator;

    fn number(text: &str) -> BigUint {
        BigUint::parse_bytes(text.as_bytes(), 16).unwrap()
    }

    /// The primes of curves, and their neighbours.
    #[rstest]
    #[case::p256("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff", true)]
    #[case::its_order("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", true)]
    #[case::one_word("ffffffffffffffc5", true)]
    #[case::neighbour("ffffffff00000001000000000000000000000001000000000000000000000001", false)]
    #[case::strong_pseudoprime_to_no_base_2("fffffffffffffffd", false)]
    fn primes(#[case] text: &str, #[case] expected: bool) {
        let candidate = number(text);
        assert_eq!(Montgomery::new(&candidate).unwrap().is_probable_prime(), expected);
        let mut stream = Generator::new(jiff::Timestamp::UNIX_EPOCH, [1; 32]).stream(0);
        assert_eq!(is_prime(&candidate, &mut stream), expected);
    }

    #[test]
    fn a_random_prime_has_its_bits_and_is_that_of_its_stream() {
        let made = || {
            let mut stream = Generator::new(jiff::Timestamp::UNIX_EPOCH, [7; 32]).stream(0);
            random(&Meter::new(&Never, None), &mut stream, 256).unwrap()
        };
        let prime = made();
        assert_eq!((prime.bits(), &prime), (256, &made()));
        assert!(prime.bit(255) && prime.bit(254) && prime.bit(0));
    }
}
