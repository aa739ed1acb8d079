//! Discord's ids, which have the time in them at which they were given. Pure.

use jiff::Timestamp;

/// The first moment of 2015, from which ids count, in milliseconds.
const EPOCH: i64 = 1_420_070_400_000;

/// Returns when something got its id; nothing if that is no id.
pub(super) fn time_of(id: &str) -> Option<Timestamp> {
    let id: u64 = id.parse().ok().filter(|id| *id != 0)?;
    let since = i64::try_from(id >> 22).ok()?;
    Timestamp::from_millisecond(EPOCH.checked_add(since)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_time_in_it() {
        // From Discord's own description of its ids.
        let time = time_of("175928847299117063").unwrap();
        assert_eq!(time.as_millisecond(), 1_462_015_105_796);
        for no_id in ["", "0", "x", "-1", "99999999999999999999"] {
            assert_eq!(time_of(no_id), None, "{no_id}");
        }
    }
}
