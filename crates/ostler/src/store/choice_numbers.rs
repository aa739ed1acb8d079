//! The numbers of choices at a place. They go on from request to request, so that each
//! means one choice of one request, and begin with 1 again where they would get long.

use super::{Conn, StoreError, db::values};

/// The highest number that people see.
const HIGHEST: i64 = 90;
/// How many choices one request can have.
pub(crate) const AT_ONCE: u32 = 20;

/// Takes so many numbers at a place, and returns the first and the last of them. Whoever
/// comes at the same time waits for the commit.
pub(crate) async fn take(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    count: u32,
) -> Result<(i64, i64), StoreError> {
    let sql = "INSERT INTO choice_numbers (channel, place, last) VALUES ($1, $2, 0)
               ON CONFLICT (channel, place) DO UPDATE SET last = choice_numbers.last
               RETURNING last";
    let before = conn.fetch_one(sql, values![channel, place]).await?.int("last")?;
    let (first, last) = following(before, count);
    let sql = "UPDATE choice_numbers SET last = $3 WHERE channel = $1 AND place = $2";
    conn.execute(sql, values![channel, place, last]).await?;
    Ok((first, last))
}

/// Returns the number that people at a place see as this one, if it was given: that of
/// the newest request, if it was given several times.
pub(crate) async fn meant(
    conn: &mut Conn,
    channel: &str,
    place: &str,
    shown: u32,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT last FROM choice_numbers WHERE channel = $1 AND place = $2";
    let row = conn.fetch_optional(sql, values![channel, place]).await?;
    let last = row.map(|row| row.int("last")).transpose()?;
    Ok(last.and_then(|last| newest(last, shown)))
}

/// Returns a number as people see it.
pub(crate) fn shown(number: i64) -> u32 {
    u32::try_from((number - 1).rem_euclid(HIGHEST) + 1).unwrap_or(1)
}

/// Returns the numbers that follow the last one: all of them before it begins again.
fn following(last: i64, count: u32) -> (i64, i64) {
    let count = i64::from(count.clamp(1, AT_ONCE));
    let left = HIGHEST - last % HIGHEST;
    let first = if left < count { last + left + 1 } else { last + 1 };
    (first, first + count - 1)
}

/// Returns the last of the numbers up to one that is seen as this.
fn newest(last: i64, seen: u32) -> Option<i64> {
    let seen = i64::from(seen);
    let back = (last - seen).rem_euclid(HIGHEST);
    let number = last - back;
    ((1..=HIGHEST).contains(&seen) && number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_go_on_and_begin_again_before_they_get_long() {
        assert_eq!(following(0, 3), (1, 3));
        assert_eq!(following(3, 2), (4, 5));
        assert_eq!(following(87, 3), (88, 90));
        let (first, last) = following(88, 3);
        assert_eq!((first, last), (91, 93));
        assert_eq!((shown(first), shown(last)), (1, 3));
        assert_eq!((shown(90), shown(180)), (90, 90));
    }

    #[test]
    fn a_number_means_what_had_it_last() {
        assert_eq!(newest(5, 3), Some(3));
        assert_eq!(newest(93, 3), Some(93));
        assert_eq!(newest(93, 4), Some(4));
        for seen in [0, 6, 91] {
            assert_eq!(newest(5, seen), None, "{seen}");
        }
    }

    proptest! {
        #[test]
        fn what_is_seen_leads_back_to_the_number(last in 0i64..1000, count in 0u32..40) {
            let (first, last) = following(last, count);
            for number in first..=last {
                prop_assert_eq!(newest(last, shown(number)), Some(number));
            }
            // All choices of a request are seen in a row.
            let seen: Vec<_> = (first..=last).map(shown).collect();
            prop_assert!(seen.is_sorted_by(|before, after| before + 1 == *after));
        }
    }
}
