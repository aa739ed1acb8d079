//! Which times there are, also when clocks are changed.

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Millis {
    Millis(text.parse::<Timestamp>().unwrap().as_millisecond())
}

/// Returns the times between two others, as they are written in UTC.
fn times(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let timetable = Timetable::read(cron, zone).unwrap();
    let (mut time, to) = (at(from), at(to));
    let mut all = Vec::new();
    while let Some(next) = timetable.next_after(time).filter(|next| *next <= to) {
        all.push(next.to_string().replace(":00.000Z", "Z"));
        time = next;
    }
    all
}

#[test]
fn a_time_is_one_on_the_clock_of_its_zone_in_summer_and_in_winter() {
    let berlin = times("0 9 * * 1-5", "Europe/Berlin", "2026-03-26T12:00Z", "2026-03-31T12:00Z");
    assert_eq!(berlin, ["2026-03-27T08:00Z", "2026-03-30T07:00Z", "2026-03-31T07:00Z"]);
    let new_york = times("@daily", "America/New_York", "2026-11-01T00:00Z", "2026-11-03T12:00Z");
    assert_eq!(new_york, ["2026-11-01T04:00Z", "2026-11-02T05:00Z", "2026-11-03T05:00Z"]);
}

#[test]
fn a_time_that_the_clock_leaps_over_comes_once_at_the_leap() {
    // In Berlin the clock goes from 02:00 to 03:00 on 29 March 2026, in New York on 8 March.
    for cron in ["30 2 * * *", "0 2 * * *", "0,15,30,45 2 * * *", "*/10 2 * * *", "30 2,3 29 3 *"] {
        let berlin = times(cron, "Europe/Berlin", "2026-03-29T00:00Z", "2026-03-29T01:10Z");
        assert_eq!(berlin, ["2026-03-29T01:00Z"], "{cron}");
    }
    let new_york =
        times("30 2 * * *", "America/New_York", "2026-03-08T00:00Z", "2026-03-09T12:00Z");
    assert_eq!(new_york, ["2026-03-08T07:00Z", "2026-03-09T06:30Z"]);
}

#[test]
fn a_time_that_the_clock_shows_twice_comes_once_at_the_first() {
    // In Berlin the clock goes from 03:00 back to 02:00 on 25 October 2026, in New York from
    // 02:00 back to 01:00 on 1 November.
    let berlin = times("30 2,14 * * *", "Europe/Berlin", "2026-10-24T20:00Z", "2026-10-26T12:00Z");
    assert_eq!(berlin, ["2026-10-25T00:30Z", "2026-10-25T13:30Z", "2026-10-26T01:30Z"]);
    let new_york =
        times("*/20 1 * * *", "America/New_York", "2026-11-01T00:00Z", "2026-11-02T00:00Z");
    assert_eq!(new_york, ["2026-11-01T05:00Z", "2026-11-01T05:20Z", "2026-11-01T05:40Z"]);
    // Asked in the second of the two hours, the answer is the next day.
    let timetable = Timetable::read("30 2 * * *", "Europe/Berlin").unwrap();
    let next = timetable.next_after(at("2026-10-25T01:10Z")).unwrap();
    assert_eq!(next, at("2026-10-26T01:30Z"));
}

#[test]
fn times_without_named_hours_follow_each_other_whatever_clocks_do() {
    for (zone, from, to) in [
        ("Europe/Berlin", "2026-03-28T23:00Z", "2026-03-29T03:00Z"),
        ("Europe/Berlin", "2026-10-24T23:00Z", "2026-10-25T03:00Z"),
        ("America/New_York", "2026-11-01T03:00Z", "2026-11-01T07:00Z"),
    ] {
        assert_eq!(times("*/30 * * * *", zone, from, to).len(), 8, "{zone} {from}");
        assert_eq!(times("@hourly", zone, from, to).len(), 4, "{zone} {from}");
    }
}

#[test]
fn the_usual_ways_to_write_an_expression_are_read() {
    for (cron, first) in [
        ("@weekly", "2026-01-04T00:00Z"),
        ("0 0 L * *", "2026-01-31T00:00Z"),
        ("15 10 * jan mon#2", "2026-01-12T10:15Z"),
        ("0 12 29 2 *", "2028-02-29T12:00Z"),
        ("  5   4 * * 7 ", "2026-01-04T04:05Z"),
        ("0 9 13 * fri", "2026-01-02T09:00Z"),
        ("0 9 13 * +fri", "2026-02-13T09:00Z"),
    ] {
        let timetable = Timetable::read(cron, "utc").unwrap();
        assert_eq!(timetable.next_after(at("2026-01-01T00:00Z")), Some(at(first)), "{cron}");
        assert_eq!(timetable.zone(), "UTC");
    }
    let timetable = Timetable::read("0 9 * * *", "europe/berlin").unwrap();
    assert_eq!(timetable.zone(), "Europe/Berlin");
    assert_eq!(timetable.local(at("2026-07-01T07:00Z")), "Wed 2026-07-01 09:00 CEST");
}

#[test]
fn what_is_wrong_with_an_expression_is_named() {
    for (cron, says) in [
        ("", "has 0"),
        ("0 9 * *", "has 4"),
        ("0 0 9 * * *", "has 6"),
        ("0 25 * * *", "the hour \"25\" of the cron expression is wrong: it takes 0-23"),
        ("60 9 * * *", "the minute \"60\""),
        ("0 9 32 * *", "the day of the month \"32\""),
        ("0 9 * 13 *", "the month \"13\""),
        ("0 9 * * 8", "the day of the week \"8\""),
        ("0 9 * * monday-friday", "the day of the week"),
        ("*/0 * * * *", "the minute \"*/0\""),
        ("0 9 30 2 *", "never comes"),
        ("@reboot", "none of these"),
        ("0 9 * * \u{7}", "no line of text"),
        (&"1,".repeat(200), "too long"),
    ] {
        let said = Timetable::read(cron, "UTC").unwrap_err().to_string();
        assert!(said.contains(says), "{cron:?}: {said}");
    }
}

#[test]
fn a_zone_that_there_is_not_has_a_nearest_one() {
    for (zone, nearest) in [
        ("Europe/Berlim", Some("Europe/Berlin")),
        ("berlin", Some("Europe/Berlin")),
        ("New York", Some("America/New_York")),
        ("Amerika/New_York", Some("America/New_York")),
        ("Middle/Earth", None),
        ("", None),
    ] {
        let Err(TimetableError::Zone { nearest: found, .. }) = Timetable::read("@daily", zone)
        else {
            panic!("{zone}")
        };
        assert_eq!(found.as_deref(), nearest, "{zone}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_read_or_refused(cron in "[-0-9*/,?LW#@a-zA-Z +]{0,30}", zone in "[ -~]{0,20}") {
        if let Ok(timetable) = Timetable::read(&cron, "UTC") {
            timetable.next_after(Millis(0));
        }
        Timetable::read("@daily", &zone).ok();
    }

    #[test]
    fn each_time_is_after_the_one_before_and_no_two_searches_disagree(
        minute in 0..60,
        hour in proptest::sample::select(vec!["*", "*/3", "0", "1", "2", "3", "14", "1,2,3"]),
        zone in proptest::sample::select(vec!["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
        start in 1_760_000_000_i64..1_830_000_000,
        within in 0.0..1.0,
    ) {
        let timetable = Timetable::read(&format!("{minute} {hour} * * *"), zone).unwrap();
        let mut time = Millis(start * 1000);
        for _ in 0..40 {
            let next = timetable.next_after(time).unwrap();
            prop_assert!(next > time);
            // From anywhere between the two, the next one is the same.
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a few days")]
            let between = Millis(time.0 + ((next.0 - time.0 - 1) as f64 * within) as i64);
            prop_assert_eq!(timetable.next_after(between), Some(next));
            time = next;
        }
    }
}
