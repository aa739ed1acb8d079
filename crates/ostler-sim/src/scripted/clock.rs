//! The time of day in the two forms that session ids and event lines need.

use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// RFC 3339 in UTC with milliseconds. Counting up year by year is quick enough
/// for a few lines a run, and leaves nothing to get wrong.
pub(super) fn rfc3339(ms: u64) -> String {
    let (mut days, ms_of_day) = (ms / 86_400_000, ms % 86_400_000);
    let mut year = 1970;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    for length in month_lengths(year) {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute) = (ms_of_day / 3_600_000, ms_of_day / 60_000 % 60);
    let (second, ms) = (ms_of_day / 1000 % 60, ms_of_day % 1000);
    let day = days + 1;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

fn is_leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

fn month_lengths(year: u64) -> [u64; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

fn days_of_year(year: u64) -> u64 {
    month_lengths(year).iter().sum()
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn dates_around_leap_days_and_year_ends_are_right() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (1_794_768_280_276, "2026-11-15T18:44:40.276Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}
