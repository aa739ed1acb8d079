//! Time as the store keeps it. Whoever needs the time is given it, so that
//! tests choose it; only the outermost code asks the system.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// Milliseconds since 1970. May jump when somebody sets the clock, so that
/// nothing may be ordered by it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Millis(pub(crate) i64);

impl Millis {
    /// Asks the system's clock.
    pub(crate) fn now() -> Self {
        Self(Timestamp::now().as_millisecond())
    }

    /// Returns a time this much later.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Returns a time this much earlier.
    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// Returns how long ago it was, by its largest unit.
    pub(crate) fn age(self, now: Self) -> String {
        let seconds = now.0.saturating_sub(self.0).max(0) / 1000;
        match seconds {
            0..60 => format!("{seconds}s"),
            60..3600 => format!("{}m", seconds / 60),
            3600..86_400 => format!("{}h", seconds / 3600),
            _ => format!("{}d", seconds / 86_400),
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Display for Millis {
    /// Writes it as RFC 3339.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_rfc_3339_and_one_beyond_the_calendar_as_it_is() {
        assert_eq!(Millis(1_500).to_string(), "1970-01-01T00:00:01.500Z");
        assert_eq!(Millis(i64::MAX).to_string(), format!("{} ms", i64::MAX));
    }

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let ages = [0, 59, 60, 3_600, 86_400, 200_000].map(|s| Millis(0).age(Millis(s * 1000)));
        assert_eq!(ages, ["0s", "59s", "1m", "1h", "1d", "2d"]);
        assert_eq!(Millis(5_000).age(Millis(0)), "0s");
    }

    #[test]
    fn arithmetic_stays_within_what_there_is() {
        assert_eq!(Millis(i64::MAX).after(Duration::MAX), Millis(i64::MAX));
        assert_eq!(Millis(5).before(Duration::from_millis(7)), Millis(-2));
    }
}
