//! A time as somebody writes it: a day, a moment, or how long ago.

use std::{str::FromStr, time::Duration};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use crate::{clock::Millis, config::duration};

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    At(Millis),
    Ago(Duration),
}

impl Moment {
    /// Returns when it is.
    pub(super) fn at(self, now: Millis) -> Millis {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.before(ago),
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(Millis(at.as_millisecond())));
        }
        // A date can be read from a moment as well, and would be another time than was meant.
        if let Some(day) = text.parse::<Date>().ok().filter(|day| day.to_string() == text)
            && let Ok(begin) = day.to_zoned(TimeZone::UTC)
        {
            return Ok(Self::At(Millis(begin.timestamp().as_millisecond())));
        }
        // A number alone could be meant as anything.
        let ago = duration::parse(text).filter(|_| text.parse::<f64>().is_err());
        ago.map(Self::Ago).ok_or_else(|| {
            "give a day such as 2026-11-16 (by UTC), a moment with its offset such as \
             2026-11-16T09:30:00Z or 2026-11-16T09:30:00+01:00, or how long ago, such as 2h or 7d"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_a_moment_or_how_long_ago() {
        let now = Millis(10_000_000_000);
        let at = |text: &str| text.parse::<Moment>().map(|moment| moment.at(now));
        assert_eq!(at("1970-01-02"), Ok(Millis(86_400_000)));
        assert_eq!(at("1970-01-01T00:00:01.5Z"), Ok(Millis(1_500)));
        assert_eq!(at("1970-01-01T01:00:00+01:00"), Ok(Millis(0)));
        assert_eq!(at("2h"), Ok(Millis(10_000_000_000 - 7_200_000)));
        assert_eq!(at("7d"), Ok(Millis(10_000_000_000 - 604_800_000)));
        for wrong in [
            "",
            "soon",
            "5",
            "-2h",
            "19700102",
            "2026-13-01",
            "2026-11-16T09:30:00",
            "2026-11-16 09:30",
            "2026-11-16T09:30:00[Europe/Berlin]",
        ] {
            assert!(at(wrong).is_err(), "{wrong}: {:?}", at(wrong));
        }
    }
}
