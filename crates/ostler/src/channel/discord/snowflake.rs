//! Discord's ids, which have the time in them at which they were given. Pure.

use std::time::Duration;

use jiff::Timestamp;

/// The first moment of 2015, from which ids count, in milliseconds.
const EPOCH: i64 = 1_420_070_400_000;

/// Returns when something got its id; nothing if that is no id.
pub(super) fn time_of(id: &str) -> Option<Timestamp> {
    let id: u64 = id.parse().ok().filter(|id| *id != 0)?;
    let since = i64::try_from(id >> 22).ok()?;
    Timestamp::from_millisecond(EPOCH.checked_add(since)?).ok()
}

/// Returns the id below all that are given from a time on.
pub(super) fn of_time(time: Timestamp) -> u64 {
    let since = time.as_millisecond().saturating_sub(EPOCH).max(0);
    u64::try_from(since).unwrap_or_default() << 22
}

/// Returns the id below all that are given from so long before another one on.
pub(super) fn before(id: u64, by: Duration) -> u64 {
    let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    (id >> 22).saturating_sub(by) << 22
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_time_in_it() {
        // From Discord's own description of its ids.
        let time = time_of("175928847299117063").unwrap();
        assert_eq!(time.as_millisecond(), 1_462_015_105_796);
        assert!(of_time(time) <= 175_928_847_299_117_063);
        assert_eq!(time_of(&of_time(time).to_string()), Some(time));
        for no_id in ["", "0", "x", "-1", "99999999999999999999"] {
            assert_eq!(time_of(no_id), None, "{no_id}");
        }
        assert_eq!(of_time(Timestamp::UNIX_EPOCH), 0);
    }

    #[test]
    fn what_is_before_an_id_is_counted_in_time() {
        let earlier = before(175_928_847_299_117_063, Duration::from_millis(796));
        assert_eq!(time_of(&earlier.to_string()).unwrap().as_millisecond(), 1_462_015_105_000);
        assert_eq!(before(77, Duration::ZERO), 0);
        assert_eq!(before(175_928_847_299_117_063, Duration::MAX), 0);
    }
}
