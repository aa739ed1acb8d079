//! Choices that look random, and can be made again from their seed.

use std::time::{Duration, SystemTime};

/// A generator of numbers: SplitMix64, as its authors published it.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the seed that `OSTLER_TEST_SEED` names, or a new one.
    pub(crate) fn seed() -> u64 {
        match std::env::var("OSTLER_TEST_SEED") {
            Ok(text) => text.parse().expect("OSTLER_TEST_SEED is a number"),
            Err(_) => {
                let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
                now.as_secs() ^ u64::from(now.subsec_nanos())
            }
        }
    }

    /// Returns a number below a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % limit
    }

    /// Returns a place in something that has so many.
    pub(crate) fn place(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap()
    }

    /// Returns a time up to this one.
    pub(crate) fn within(&mut self, longest: Duration) -> Duration {
        let limit = u64::try_from(longest.as_micros()).unwrap() + 1;
        Duration::from_micros(self.below(limit))
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}
