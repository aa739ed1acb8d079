//! Durations as people write them: on the command line, in a file, and back.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
use serde_json::Value;

const DAY: u64 = 24 * 60 * 60;
/// Longer than anything that is waited for, and short enough to add to any time.
const MAX: Duration = Duration::from_secs(10 * 365 * DAY);

/// What is said of a duration that cannot be used.
pub(crate) const HINT: &str = "give one above 0 such as 90s, 10m, 1h30m or 7d";

/// Reads `90s`, `10m`, `1h30m`, `7d`, `500ms`; a bare number is seconds.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => match text.split_once('d') {
            Some((days, rest)) if days.bytes().all(|byte| byte.is_ascii_digit()) => {
                let days = Duration::from_secs(days.parse::<u64>().ok()?.checked_mul(DAY)?);
                if rest.is_empty() { Some(days) } else { days.checked_add(units(rest)?) }
            }
            Some(_) | None => units(text),
        },
    };
    parsed.filter(|duration| !duration.is_zero() && *duration <= MAX)
}

fn units(text: &str) -> Option<Duration> {
    Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok()
}

/// Reads what a file has: a text, or a number of seconds.
pub(crate) fn from_value(value: &Value) -> Option<Duration> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Writes a duration in its largest whole unit, as `parse` reads it.
pub(crate) fn text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration.subsec_nanos() != 0 {
        return format!("{}ms", duration.as_millis());
    }
    let units = [(DAY, "d"), (60 * 60, "h"), (60, "m")];
    let whole =
        units.into_iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}

pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text(*value))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from_value(&Value::deserialize(from)?).ok_or_else(|| D::Error::custom(HINT))
}

/// A duration that can be `off`.
pub(super) mod or_off {
    use super::*;

    pub(in crate::config) const OFF: &str = "off";

    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, to),
            None => to.serialize_str(OFF),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let value = Value::deserialize(from)?;
        if value == OFF {
            return Ok(None);
        }
        from_value(&value).map(Some).ok_or_else(|| D::Error::custom(HINT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let ms = |text| parse(text).map(|duration| duration.as_millis());
        assert_eq!(ms("90s"), Some(90_000));
        assert_eq!(ms("1h30m"), Some(5_400_000));
        assert_eq!(ms("500ms"), Some(500));
        assert_eq!(ms("2"), Some(2000));
        assert_eq!(ms("7d"), Some(604_800_000));
        assert_eq!(ms("1d12h"), Some(129_600_000));
        for wrong in ["0", "0s", "-1", "-5s", "soon", "", "nan", "inf", "d", "0d", "9999999999d"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for ms in [1, 999, 1000, 1500, 59_000, 60_000, 3_600_000, 3_660_000, 604_800_000] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse(&text(duration)), Some(duration), "{}", text(duration));
        }
        assert_eq!(text(Duration::from_secs(600)), "10m");
    }
}
