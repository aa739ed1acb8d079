//! Reads points in time as events have them.

/// Returns the seconds since 1970 of an RFC 3339 time, if it is one.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let number = |at: std::ops::Range<usize>| {
        let digits = text.get(at).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
        digits.parse::<i64>().ok()
    };
    let is_at = |at: usize, all: &str| text.get(at..=at).is_some_and(|c| all.contains(c));
    let is_shaped =
        is_at(4, "-") && is_at(7, "-") && is_at(10, "Tt ") && is_at(13, ":") && is_at(16, ":");
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let is_valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_shaped || !is_valid || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
            let ahead = i64::from(hours) * 3600 + i64::from(minutes) * 60;
            match zone.get(..1)? {
                "+" => ahead,
                "-" => -ahead,
                _ => return None,
            }
        }
    };
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// Returns the days from 1970 to a date. The year is taken to begin in March, so
/// that the day that leap years add is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_with_its_fraction_and_its_zone() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2000-02-29T12:00:00.123Z"), Some(951_825_600));
        assert_eq!(seconds("2026-11-16T10:00:00+02:00"), Some(1_794_816_000));
        assert_eq!(seconds("2026-11-16T10:00:00-00:30"), Some(1_794_825_000));
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        let all = [
            "",
            "soon",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01",
            "ä026-01-01T00:00:00Z",
        ];
        assert!(all.iter().all(|text| seconds(text).is_none()));
    }
}
