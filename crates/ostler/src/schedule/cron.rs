//! When a schedule is due: a cron expression in a time zone. Pure, but for the
//! table of time zones.
//!
//! Where the hours are named (`30 2 * * *`), a time is one on the clock of its
//! zone, and comes once a day: if the clock goes past it twice, the first time
//! counts, and if the clock leaps over it, the moment of the leap. Where they are
//! not (`*/10 * * * *`, `0 */2 * * *`), times follow each other as if no clock
//! was ever changed, so that an hour that comes twice has all of them twice.

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    SignedDuration, Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};
use thiserror::Error;

use crate::{clock::Millis, config::nearest::nearest};

/// The longest expression.
const LONGEST: usize = 256;
/// How many times on the clock are looked at for one that is to come: more than
/// a day has minutes.
const LOOKS: usize = 3000;

/// The fields of an expression, and what each takes.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of the month", "1-31, or L for the last"),
    ("month", "1-12, or JAN-DEC"),
    ("day of the week", "0-7 with Sunday as 0 and 7, or SUN-SAT"),
];

/// What is wrong with a timetable.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum TimetableError {
    #[error(
        "a cron expression has five fields (minute, hour, day of the month, month, day of the \
         week), such as '0 9 * * 1-5', or is one of @hourly, @daily, @weekly, @monthly and \
         @yearly; {0}"
    )]
    Fields(String),
    #[error(
        "the {field} {text:?} of the cron expression is wrong: it takes {takes}, and *, lists \
         (1,2), ranges (1-5) and steps (*/2)"
    )]
    Field { field: &'static str, text: String, takes: &'static str },
    #[error("the cron expression {0:?} cannot be read")]
    Cron(String),
    #[error("the time of the cron expression {0:?} never comes")]
    Never(String),
    #[error("there is no time zone {name:?}{}", nearest_to(.nearest))]
    Zone { name: String, nearest: Option<String> },
}

fn nearest_to(name: &Option<String>) -> String {
    match name {
        Some(name) => format!("; did you mean {name}?"),
        None => "; give a name such as Europe/Berlin or UTC".to_owned(),
    }
}

/// The times of a schedule.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    cron: Cron,
    zone: TimeZone,
    /// The zone's own name.
    name: String,
    pace: Pace,
}

/// What times go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// The clock on the wall.
    Clock,
    /// The time that passes.
    Elapsed,
}

impl Timetable {
    /// Reads an expression and the name of a time zone.
    pub(crate) fn read(cron: &str, zone: &str) -> Result<Self, TimetableError> {
        let (zone, name) = find_zone(zone)?;
        let cron = read_cron(cron)?;
        let pace = if cron.pattern.hours.from_wildcard { Pace::Elapsed } else { Pace::Clock };
        Ok(Self { cron, zone, name, pace })
    }

    /// Returns the name of the time zone, as it is spelt where zones are listed.
    pub(crate) fn zone(&self) -> &str {
        &self.name
    }

    /// Returns the first time after another; none if there is none before long.
    pub(crate) fn next_after(&self, after: Millis) -> Option<Millis> {
        let after = Timestamp::from_millisecond(after.0).ok()?;
        let next = match self.pace {
            Pace::Clock => self.on_the_clock(after),
            Pace::Elapsed => {
                let start = after.to_zoned(self.zone.clone());
                let next = self.cron.find_next_occurrence(&start, false).ok()?.timestamp();
                Some(next).filter(|next| *next > after)
            }
        };
        next.map(|next| Millis(next.as_millisecond()))
    }

    /// Returns a time as a clock in the zone shows it.
    pub(crate) fn local(&self, time: Millis) -> String {
        match Timestamp::from_millisecond(time.0) {
            Ok(time) => time.to_zoned(self.zone.clone()).strftime("%a %F %H:%M %Z").to_string(),
            Err(_) => time.to_string(),
        }
    }

    fn on_the_clock(&self, after: Timestamp) -> Option<Timestamp> {
        let mut shown = after.to_zoned(self.zone.clone()).datetime();
        for _ in 0..LOOKS {
            shown = self.cron.find_next_occurrence(&shown, false).ok()?;
            // In the second of two equal hours, the times that are shown were before.
            let instant = self.instant(shown)?;
            if instant > after {
                return Some(instant);
            }
        }
        None
    }

    /// Returns when a clock shows a time for the first time, or leaps over it.
    fn instant(&self, shown: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        let offset = ambiguous.offset();
        let instant = ambiguous.compatible().ok()?;
        match offset {
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => Some(instant),
            AmbiguousOffset::Gap { .. } => {
                let after = instant.checked_add(SignedDuration::from_secs(1)).ok()?;
                let leap = self.zone.preceding(after).next().map(|leap| leap.timestamp());
                Some(leap.unwrap_or(instant))
            }
        }
    }
}

/// Returns the name of the zone that this machine is in; UTC if it is not known.
pub(crate) fn zone_here() -> String {
    let zone = TimeZone::try_system().ok();
    let name = zone.as_ref().and_then(TimeZone::iana_name);
    name.filter(|name| TimeZone::get(name).is_ok()).unwrap_or("UTC").to_owned()
}

fn find_zone(name: &str) -> Result<(TimeZone, String), TimetableError> {
    match TimeZone::get(name) {
        Ok(zone) => {
            let name = zone.iana_name().unwrap_or(name).to_owned();
            Ok((zone, name))
        }
        Err(_) => {
            let known: Vec<String> =
                jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
            let nearest = nearest_zone(name, &known).map(str::to_owned);
            let name = name.chars().take(LONGEST).collect();
            Err(TimetableError::Zone { name, nearest })
        }
    }
}

/// Returns the zone that somebody may have meant: by its whole name, or by its city.
fn nearest_zone<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let city = |zone: &'a str| zone.rsplit('/').next().unwrap_or(zone);
    let wanted = name.rsplit('/').next().unwrap_or(name).replace(' ', "_");
    let all = || known.iter().map(String::as_str);
    let by_city = |city_of: &str| all().find(|zone| city(zone).eq_ignore_ascii_case(city_of));
    by_city(&wanted)
        .or_else(|| nearest(name, all()))
        .or_else(|| by_city(nearest(&wanted, all().map(city))?))
}

fn read_cron(text: &str) -> Result<Cron, TimetableError> {
    let text = text.trim();
    if text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(TimetableError::Fields("this one is too long, or no line of text".to_owned()));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if !text.starts_with('@') && fields.len() != FIELDS.len() {
        return Err(TimetableError::Fields(format!("{text:?} has {}", fields.len())));
    }
    // A turn each second, or one every ten years, is not what schedules are for.
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let Ok(cron) = parser.parse(text) else {
        if text.starts_with('@') {
            return Err(TimetableError::Fields(format!("{text:?} is none of these")));
        }
        return Err(wrong_field(&parser, &fields, text));
    };
    let start = DateTime::constant(2024, 1, 1, 0, 0, 0, 0);
    match cron.find_next_occurrence(&start, true) {
        Ok(_) => Ok(cron),
        Err(_) => Err(TimetableError::Never(text.to_owned())),
    }
}

/// Finds the field that cannot be read even where the others are stars.
fn wrong_field(parser: &CronParser, fields: &[&str], text: &str) -> TimetableError {
    let wrong = fields.iter().zip(FIELDS).enumerate().find(|(number, (field, _))| {
        let alone: Vec<&str> =
            (0..FIELDS.len()).map(|other| if other == *number { **field } else { "*" }).collect();
        parser.parse(&alone.join(" ")).is_err()
    });
    match wrong {
        Some((_, (field, (name, takes)))) => {
            TimetableError::Field { field: name, text: (*field).to_owned(), takes }
        }
        None => TimetableError::Cron(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
