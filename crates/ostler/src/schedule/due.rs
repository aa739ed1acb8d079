//! What is due at a moment, and when the next thing is. Pure.

use std::time::Duration;

use super::cron::Timetable;
use crate::{clock::Millis, store::schedules::Missed};

/// A run that is later than this has missed its time.
pub(crate) const LATE: Duration = Duration::from_secs(60);
/// How many missed times are counted one by one.
const COUNTED: u32 = 1000;
/// A schedule that was dealt with so far into the future was so by a wrong clock.
/// What had a run before has its name and gets no second one.
const AHEAD: Duration = Duration::from_secs(5 * 60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// What is due of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The time that is run now, if one is.
    pub(crate) run: Option<Millis>,
    /// How many times before it are left out; many are not counted to the end.
    pub(crate) n_missed: u32,
    /// Up to when everything is dealt with then.
    pub(crate) until: Millis,
    /// When the next time is.
    pub(crate) next: Option<Millis>,
}

/// How far a schedule was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) created: Millis,
    /// Up to when everything was dealt with.
    pub(crate) last: Millis,
}

/// Says what is due of a schedule that was followed so far. However much was
/// missed, at most one run comes of it. A clock that is set back a little brings
/// no time a second time.
///
/// One that is set back by more was ahead before, or is behind now; nobody can
/// tell. So times are run when they come, but nothing is taken back before one
/// does: what was dealt with stays so if the clock is soon right again. Before
/// there was a schedule it is the clock that is behind, and nothing is run.
pub(crate) fn due(times: &Timetable, missed: Missed, progress: Progress, now: Millis) -> Due {
    let Progress { created, last } = progress;
    if last > now.after(AHEAD) && now >= created {
        let run = passed(times, now.before(LATE), now).map(|(newest, _)| newest);
        let next = times.next_after(now);
        return Due { run, n_missed: 0, until: run.unwrap_or(last), next };
    }
    // A clock that was behind may have left a time from before there was a schedule.
    let from = if now < created { last } else { last.max(created) };
    let next = times.next_after(now.max(from));
    let Some((newest, n_times)) = passed(times, from, now) else {
        return Due { run: None, n_missed: 0, until: last, next };
    };
    let is_on_time = now <= newest.after(LATE);
    let run = (is_on_time || missed == Missed::Once).then_some(newest);
    let n_missed = if run.is_some() { n_times - 1 } else { n_times };
    Due { run, n_missed, until: newest, next }
}

/// Returns the newest of the times that have passed, and how many did.
fn passed(times: &Timetable, last: Millis, now: Millis) -> Option<(Millis, u32)> {
    let mut newest = times.next_after(last).filter(|time| *time <= now)?;
    for n_times in 1..COUNTED {
        match times.next_after(newest).filter(|time| *time <= now) {
            Some(time) => newest = time,
            None => return Some((newest, n_times)),
        }
    }
    // The newest of so many is looked for from the end, further and further back.
    let windows = [HOUR, 24 * HOUR, 40 * 24 * HOUR].map(|window| now.before(window).max(newest));
    for from in windows.into_iter().chain([newest]) {
        let mut times = std::iter::successors(Some(from), |time| times.next_after(*time)).skip(1);
        if let Some(found) = times.by_ref().take_while(|time| *time <= now).last() {
            return Some((found, COUNTED));
        }
    }
    Some((newest, COUNTED))
}

/// What is due of the heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    /// The slot that has just begun, if it has; slots are numbered since 1970,
    /// so that all gateways have the same.
    pub(crate) slot: Option<i64>,
    /// The slot that is dealt with then.
    pub(crate) last: i64,
    pub(crate) next: Millis,
}

/// Says what is due of the heartbeat. The first one is that of the next slot;
/// what was missed is not made up for.
pub(crate) fn beat(every: Duration, last: Option<i64>, now: Millis) -> Beat {
    let length = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
    let current = now.0.div_euclid(length);
    let next = Millis(current.saturating_add(1).saturating_mul(length));
    let slot = last.filter(|last| *last < current).map(|_| current);
    Beat { slot, last: current, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Millis {
        Millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    /// One that was added long ago.
    fn up_to(last: Millis) -> Progress {
        Progress { created: at("1999-01-01T00:00Z"), last }
    }

    fn daily() -> Timetable {
        Timetable::read("0 9 * * *", "UTC").unwrap()
    }

    #[test]
    fn a_time_that_has_come_is_run_once_and_then_the_next_one_is_waited_for() {
        let (last, now) = (at("2026-01-01T10:00Z"), at("2026-01-02T09:00Z"));
        let found = due(&daily(), Missed::Skip, up_to(last), now);
        let next = Some(at("2026-01-03T09:00Z"));
        assert_eq!(found, Due { run: Some(now), n_missed: 0, until: now, next });
        let again = due(&daily(), Missed::Skip, up_to(found.until), now.after(LATE));
        assert_eq!(again, Due { run: None, ..found });
        let early = due(&daily(), Missed::Skip, up_to(last), Millis(now.0 - 1));
        assert_eq!(early, Due { run: None, n_missed: 0, until: last, next: Some(now) });
    }

    #[test]
    fn what_was_missed_is_left_out_or_made_up_for_once() {
        let (last, now) = (at("2026-01-01T10:00Z"), at("2026-01-05T08:00Z"));
        let (newest, next) = (at("2026-01-04T09:00Z"), Some(at("2026-01-05T09:00Z")));
        let skip = due(&daily(), Missed::Skip, up_to(last), now);
        assert_eq!(skip, Due { run: None, n_missed: 3, until: newest, next });
        let once = due(&daily(), Missed::Once, up_to(last), now);
        assert_eq!(once, Due { run: Some(newest), n_missed: 2, until: newest, next });
        // One that is on time stands for those before it as well.
        let now = at("2026-01-05T09:00Z").after(LATE);
        for missed in [Missed::Skip, Missed::Once] {
            let found = due(&daily(), missed, up_to(last), now);
            assert_eq!((found.run, found.n_missed), (Some(at("2026-01-05T09:00Z")), 3));
        }
        assert_eq!(due(&daily(), Missed::Skip, up_to(last), Millis(now.0 + 1)).run, None);
    }

    #[test]
    fn a_year_without_a_gateway_is_one_run_and_is_not_counted_to_the_end() {
        let times = Timetable::read("* * * * *", "Europe/Berlin").unwrap();
        let (last, now) = (at("2025-01-01T00:00Z"), at("2026-01-01T00:00:30Z"));
        let found = due(&times, Missed::Once, up_to(last), now);
        assert_eq!((found.run, found.n_missed), (Some(at("2026-01-01T00:00Z")), COUNTED - 1));
        let long_ago = due(&daily(), Missed::Once, up_to(at("2000-01-01T00:00Z")), now);
        assert_eq!(long_ago.run, Some(at("2025-12-31T09:00Z")));
        let rare = Timetable::read("* * 1 1 *", "UTC").unwrap();
        let last = up_to(at("2000-06-01T00:00Z"));
        let found = due(&rare, Missed::Once, last, at("2025-06-01T00:00Z"));
        assert_eq!(found.run, Some(at("2025-01-01T23:59Z")));
    }

    #[test]
    fn a_clock_that_was_wrong_silences_nothing_and_takes_nothing_back() {
        let nothing = "-";
        // Created, dealt with up to, now; what is run, up to when it is dealt with
        // then, and the next time.
        for (cron, created, last, now, run, until, next) in [
            // A little back: nothing comes twice.
            (
                "*/10 * * * *",
                "2026-01-01T00:00Z",
                "2026-01-02T09:00Z",
                "2026-01-02T08:56Z",
                nothing,
                "2026-01-02T09:00Z",
                "2026-01-02T09:10Z",
            ),
            // It was 20 hours ahead: times come as before.
            (
                "*/10 * * * *",
                "2026-01-01T00:00Z",
                "2026-01-03T05:00Z",
                "2026-01-02T09:01:30Z",
                nothing,
                "2026-01-03T05:00Z",
                "2026-01-02T09:10Z",
            ),
            (
                "*/10 * * * *",
                "2026-01-01T00:00Z",
                "2026-01-03T05:00Z",
                "2026-01-02T09:10:01Z",
                "2026-01-02T09:10Z",
                "2026-01-02T09:10Z",
                "2026-01-02T09:20Z",
            ),
            // One that was added a moment ago, by this clock, which is behind now.
            (
                "0 9 * * *",
                "2026-01-02T10:00Z",
                "2026-01-02T10:00Z",
                "2026-01-02T09:00Z",
                nothing,
                "2026-01-02T10:00Z",
                "2026-01-03T09:00Z",
            ),
            // It was years ahead, and is right again.
            (
                "0 9 * * *",
                "2026-01-01T00:00Z",
                "2040-01-02T09:00Z",
                "2026-01-02T09:00Z",
                "2026-01-02T09:00Z",
                "2026-01-02T09:00Z",
                "2026-01-03T09:00Z",
            ),
            // A machine begins in 1970, which is the first of a month, or a while
            // ago: what was dealt with stays so.
            (
                "@monthly",
                "2025-06-15T00:00Z",
                "2026-01-01T00:00Z",
                "1970-01-01T00:00:30Z",
                nothing,
                "2026-01-01T00:00Z",
                "2026-02-01T00:00Z",
            ),
            (
                "@monthly",
                "2025-06-15T00:00Z",
                "2026-01-01T00:00Z",
                "2025-10-05T12:00Z",
                nothing,
                "2026-01-01T00:00Z",
                "2025-11-01T00:00Z",
            ),
            // What was before a schedule was never missed.
            (
                "@monthly",
                "2025-06-15T00:00Z",
                "1970-01-01T00:00Z",
                "2025-06-20T00:00Z",
                nothing,
                "1970-01-01T00:00Z",
                "2025-07-01T00:00Z",
            ),
        ] {
            let times = Timetable::read(cron, "UTC").unwrap();
            let progress = Progress { created: at(created), last: at(last) };
            let found = due(&times, Missed::Once, progress, at(now));
            let run = (run != nothing).then(|| at(run));
            let wanted = Due { run, n_missed: 0, until: at(until), next: Some(at(next)) };
            assert_eq!(found, wanted, "{cron} {now}");
        }
    }

    #[test]
    fn heartbeats_come_at_the_start_of_each_slot_and_are_not_made_up_for() {
        let every = Duration::from_secs(30 * 60);
        let first = beat(every, None, at("2026-01-01T10:10Z"));
        assert_eq!((first.slot, first.next), (None, at("2026-01-01T10:30Z")));
        let second = beat(every, Some(first.last), first.next);
        assert_eq!((second.slot, second.next), (Some(first.last + 1), at("2026-01-01T11:00Z")));
        assert_eq!(beat(every, Some(second.last), second.next.before(HOUR / 60)).slot, None);
        let later = beat(every, Some(second.last), at("2026-01-03T10:45Z"));
        assert_eq!(later.slot, Some(later.last));
        let back = beat(every, Some(later.last), at("2026-01-02T10:45Z"));
        assert_eq!((back.slot, back.next), (None, at("2026-01-02T11:00Z")));
    }
}
