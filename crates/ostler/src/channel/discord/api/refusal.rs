//! What Discord says when it does not do what it was asked: that it has no time for
//! it, until when and for what else, or why it never will. Pure.

use std::time::Duration;

use serde::Deserialize;

use super::{Trouble, wire::Answer};

/// The code of a message that is old and was changed too often. Discord refuses that
/// like a call too many, but it is this message alone that it does not want.
pub(super) const OLD: u64 = 30046;
/// The longest wait that is believed. Who is told more asks again after it: what is
/// wrong must not silence the bot for a day, and one call in five minutes harms nobody.
pub(super) const LONGEST: Duration = Duration::from_secs(300);

/// Why a call was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Discord has no time.
    Busy {
        /// How long, if it says so.
        after: Option<Duration>,
        /// Whether for no call at all, or for none of this kind at this place.
        is_for_all: bool,
    },
    Final(Trouble),
}

/// What all refusals of Discord have in common.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    code: Option<u64>,
    retry_after: Option<f64>,
    global: Option<bool>,
}

/// Reads a refusal.
pub(super) fn read(answer: &Answer) -> Refusal {
    let said: Option<Said> = serde_json::from_slice(&answer.body).ok();
    let is_discord = said.is_some();
    let Said { code, retry_after, global } = said.unwrap_or_default();
    let status = answer.status;
    if status == 429 && code != Some(OLD) {
        let seconds = |name| answer.header(name).and_then(|seconds| seconds.parse().ok());
        let after = retry_after
            .or_else(|| seconds("retry-after"))
            .or_else(|| seconds("x-ratelimit-reset-after"))
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(|after| after.min(LONGEST));
        let is_for_all = match answer.header("x-ratelimit-scope") {
            Some("user" | "shared") => false,
            Some(_) => true,
            // Something before Discord that refuses one call refuses them all.
            None => global != Some(false),
        };
        return Refusal::Busy { after, is_for_all };
    }
    Refusal::Final(match code {
        Some(code) => Trouble::Refused { status, code },
        None if is_discord && status < 500 => Trouble::Refused { status, code: 0 },
        None => Trouble::Illegible,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, headers: &[(&'static str, &str)], body: &str) -> Refusal {
        read(&Answer::new(status, headers, body))
    }

    fn busy(milliseconds: u64, is_for_all: bool) -> Refusal {
        Refusal::Busy { after: Some(Duration::from_millis(milliseconds)), is_for_all }
    }

    #[test]
    fn how_long_and_for_what_discord_has_no_time_is_read_from_what_it_says() {
        let body = r#"{"message": "slow down", "retry_after": 64.57, "global": false}"#;
        let user = ("x-ratelimit-scope", "user");
        assert_eq!(refused(429, &[user, ("retry-after", "65")], body), busy(64_570, false));
        assert_eq!(refused(429, &[("x-ratelimit-scope", "shared")], body), busy(64_570, false));
        let global = r#"{"message": "slow down", "retry_after": 0.7, "global": true}"#;
        assert_eq!(refused(429, &[("x-ratelimit-scope", "global")], global), busy(700, true));
        assert_eq!(refused(429, &[], global), busy(700, true));
        assert_eq!(refused(429, &[], body), busy(64_570, false));
    }

    #[test]
    fn what_does_not_speak_as_discord_does_is_understood_by_its_header() {
        assert_eq!(refused(429, &[("retry-after", "7")], "error code: 1015"), busy(7000, true));
        let reset = [("x-ratelimit-scope", "user"), ("x-ratelimit-reset-after", "1.5")];
        assert_eq!(refused(429, &reset, ""), busy(1500, false));
        let day = [("retry-after", "86400")];
        assert_eq!(refused(429, &day, ""), busy(300_000, true));
        for nonsense in ["", "soon", "-1", "NaN", "1e99"] {
            let refused = refused(429, &[("retry-after", nonsense)], "{}");
            assert_eq!(refused, Refusal::Busy { after: None, is_for_all: true }, "{nonsense}");
        }
    }

    #[test]
    fn a_message_that_is_too_old_is_no_reason_to_wait() {
        let body = r#"{"message": "too many edits", "code": 30046, "retry_after": 900}"#;
        let expected = Trouble::Refused { status: 429, code: OLD };
        assert_eq!(refused(429, &[], body), Refusal::Final(expected));
    }

    #[test]
    fn everything_else_is_refused_by_its_code_if_discord_gave_one() {
        for (status, body, trouble) in [
            (404, r#"{"code": 10003}"#, Trouble::Refused { status: 404, code: 10003 }),
            (400, r#"{"content": ["no"]}"#, Trouble::Refused { status: 400, code: 0 }),
            (500, r#"{"code": 0}"#, Trouble::Refused { status: 500, code: 0 }),
            (500, "{}", Trouble::Illegible),
            (502, "<html>", Trouble::Illegible),
            (302, "", Trouble::Illegible),
        ] {
            assert_eq!(refused(status, &[], body), Refusal::Final(trouble), "{body}");
        }
    }
}
