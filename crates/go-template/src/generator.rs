//! The time and the randomness of a rendering, which the program gives: this crate has neither a clock nor a
//! source of randomness.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::key_store::Keys;

/// What `now` is, and the seed of what is random: with the same generator, a template and its values always
/// render the same text.
#[derive(Clone)]
pub struct Generator {
    now: jiff::Timestamp,
    seed: [u8; 32],
    keys: Keys,
}

// The seed stays out of logs: who has it has the keys and passwords that were made of it.
impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Generator {
    /// A generator for one template. The seed decides every password and key that is made, so derive it from
    /// a secret, another one for each template and each rendering that may differ.
    pub fn new(now: jiff::Timestamp, seed: [u8; 32]) -> Self {
        Self { now, seed, keys: Keys::default() }
    }

    /// A generator for one template of many, whose seed follows from a secret and from texts that name the
    /// template and the rendering.
    pub fn derived(now: jiff::Timestamp, secret: &[u8; 32], names: &[&str]) -> Self {
        // The length keeps apart what would else be the same texts joined.
        let named =
            names.iter().flat_map(|name| [&(name.len() as u64).to_be_bytes(), name.as_bytes()].concat());
        Self::new(now, keyed(secret, &named.collect::<Vec<u8>>()))
    }

    /// With keys that it shares with other renderings: their budget, and what was made before.
    #[must_use]
    pub fn with_keys(self, keys: &Keys) -> Self {
        Self { keys: keys.clone(), ..self }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn now(&self) -> jiff::Timestamp {
        self.now
    }

    /// The stream of bytes of one call, by its number among the calls that need one.
    pub(super) fn stream(&self, call: u64) -> Stream {
        Stream { key: keyed(&self.seed, &call.to_be_bytes()), block: 0, bytes: [0; 32], at: 32 }
    }
}

fn keyed(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    // A key of any length is accepted; the fallback is never taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// Bytes of one call: HMAC-SHA-256 of a counter.
pub(super) struct Stream {
    key: [u8; 32],
    block: u64,
    bytes: [u8; 32],
    at: usize,
}

impl Stream {
    /// Its name, a secret: the bytes follow from it.
    pub(super) fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// Another stream, for a part of what is drawn: it is the same wherever this stream is.
    pub(super) fn part(&self, number: u8) -> Self {
        let key = keyed(&self.key, &[b"part".as_slice(), &[number]].concat());
        Self { key, block: 0, bytes: [0; 32], at: 32 }
    }

    fn byte(&mut self) -> u8 {
        if self.at == self.bytes.len() {
            self.bytes = keyed(&self.key, &self.block.to_be_bytes());
            self.block += 1;
            self.at = 0;
        }
        self.at += 1;
        self.bytes[self.at - 1]
    }

    /// The next bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// A number below `end`, each as likely as the others; 0 if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        if end == 0 {
            return 0;
        }
        let fair = u64::MAX - u64::MAX % end;
        loop {
            let number = self.bytes(8).into_iter().fold(0, |number, byte| number << 8 | u64::from(byte));
            if number < fair {
                return number % end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(seed: u8) -> Generator {
        Generator::new(jiff::Timestamp::UNIX_EPOCH, [seed; 32])
    }

    #[test]
    fn a_stream_is_that_of_its_seed_and_its_call() {
        let first = generator(1).stream(0).bytes(100);
        assert_eq!(generator(1).stream(0).bytes(100), first);
        assert_ne!(generator(2).stream(0).bytes(100), first);
        assert_ne!(generator(1).stream(1).bytes(100), first);
    }

    #[test]
    fn numbers_are_below_their_end_and_fair() {
        let mut stream = generator(1).stream(0);
        let mut counts = [0_u32; 6];
        for _ in 0..6000 {
            counts[usize::try_from(stream.below(6)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn a_derived_seed_is_that_of_its_secret_and_its_names() {
        let first = |secret: u8, names: &[&str]| {
            Generator::derived(jiff::Timestamp::UNIX_EPOCH, &[secret; 32], names).seed
        };
        assert_eq!(first(1, &["a", "bc"]), first(1, &["a", "bc"]));
        assert_ne!(first(1, &["a", "bc"]), first(1, &["ab", "c"]));
        assert_ne!(first(1, &["a"]), first(2, &["a"]));
    }

    #[test]
    fn a_seed_is_not_printed() {
        assert!(!format!("{:?}", generator(171)).contains("171"));
    }
}
