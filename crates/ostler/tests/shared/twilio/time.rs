//! Twilio's two ways to write a moment.

use jiff::{Timestamp, civil, tz::TimeZone};

/// Writes a moment as the API of 2010 does: RFC 2822.
pub(super) fn rfc2822(moment: Timestamp) -> String {
    moment.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

/// Writes a moment as the newer APIs do.
pub(super) fn iso(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Writes a moment as the webhooks of Conversations do.
pub(super) fn millis(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Reads a moment or a date of GMT; a date is a whole day.
pub(super) fn read(text: &str) -> Option<(Timestamp, Timestamp)> {
    if let Ok(date) = text.parse::<civil::Date>()
        && text.len() == 10
    {
        let start = |date: civil::Date| date.to_zoned(TimeZone::UTC).ok();
        return Some((start(date)?.timestamp(), start(date.tomorrow().ok()?)?.timestamp()));
    }
    text.parse().ok().map(|moment| (moment, moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_greenwich() {
        let moment: Timestamp = "2023-08-24T05:01:45.678Z".parse().unwrap();
        assert_eq!(rfc2822(moment), "Thu, 24 Aug 2023 05:01:45 +0000");
        assert_eq!(iso(moment), "2023-08-24T05:01:45Z");
        assert_eq!(millis(moment), "2023-08-24T05:01:45.678Z");
        let (start, end) = read("2023-08-24").unwrap();
        assert!(start <= moment && moment < end);
    }
}
