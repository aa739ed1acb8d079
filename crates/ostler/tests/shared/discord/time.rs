//! Discord's times: snowflakes that carry a moment, and moments as text.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// The first second of 2015, from which snowflakes count.
const EPOCH: u64 = 1_420_070_400_000;

/// Returns the milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// Returns the first snowflake of a moment.
pub(super) fn snowflake(millis: u64) -> u64 {
    (millis - EPOCH) << 22
}

/// Returns the moment that a snowflake was made, as text.
pub(super) fn made_at(snowflake: u64) -> String {
    text(millis(snowflake))
}

/// Returns the milliseconds from 1970 until a snowflake was made.
pub(super) fn millis(snowflake: u64) -> u64 {
    (snowflake >> 22) + EPOCH
}

/// Returns a moment as Discord writes it.
pub(super) fn text(millis: u64) -> String {
    let moment = Timestamp::from_millisecond(i64::try_from(millis).unwrap()).unwrap();
    moment.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_with_microseconds_and_an_offset() {
        assert_eq!(text(1_709_210_096_789), "2024-02-29T12:34:56.789000+00:00");
        assert_eq!(made_at(snowflake(1_767_225_600_000)), "2026-01-01T00:00:00.000000+00:00");
    }
}
