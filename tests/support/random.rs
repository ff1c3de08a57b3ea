//! A small generator, so that a seed tells everything that a test draws.

use super::announce;

/// Draws the same numbers for the same seed.
pub struct Random(u64);

impl Random {
    /// With the seed that `INTERLOCK_SEED` names, else with another each time; prints it.
    pub fn announced() -> Self {
        let given = std::env::var("INTERLOCK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
        announce(&format!("INTERLOCK_SEED={seed}"));
        Self(seed)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % n as u64).expect("it is below a usize")
    }
}
