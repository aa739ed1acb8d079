//! What an answer to a call means for the reply that was posted. Pure.

use std::time::Duration;

use jiff::fmt::rfc2822;
use ostler_core::failure::chain;
use reqwest::StatusCode;

use super::super::{Next, SendError};
use crate::clock::Millis;

/// How much of what a refusal says is kept, in characters.
const SHOWN: usize = 300;

/// Judges an answer that is no success.
pub(in crate::channel) fn judge(
    status: StatusCode,
    after: Option<Duration>,
    said: &[u8],
) -> SendError {
    let next = match status.as_u16() {
        408 | 429 | 500..=599 => Next::Retry { after },
        _ => Next::GiveUp,
    };
    // These tell of somebody who waited in vain: for the rest of the call, or for
    // another server behind. That one may have the reply.
    let is_unsure = matches!(status.as_u16(), 408 | 502 | 504);
    SendError { reason: reason(status, said), next, is_unsure }
}

fn reason(status: StatusCode, said: &[u8]) -> String {
    let mut reason = status.as_u16().to_string();
    if let Some(words) = status.canonical_reason() {
        reason = format!("{reason} {words}");
    }
    if status.is_redirection() {
        return format!("{reason}: redirects are not followed");
    }
    let said = String::from_utf8_lossy(said);
    let words = said.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let start: String = words.join(" ").chars().take(SHOWN).collect();
    if start.is_empty() { reason } else { format!("{reason}: {start}") }
}

/// Judges a call that was not answered.
pub(in crate::channel) fn no_answer(error: reqwest::Error, limit: Duration) -> SendError {
    let error = error.without_url();
    let is_unsure = !(error.is_connect() || error.is_builder());
    let next = if error.is_builder() { Next::GiveUp } else { Next::Retry { after: None } };
    let reason = if error.is_timeout() && is_unsure {
        format!("no answer within {limit:?}")
    } else {
        chain(&error)
    };
    SendError { reason, next, is_unsure }
}

/// Reads how long to wait: seconds, or a date.
pub(in crate::channel) fn retry_after(text: &str, now: Millis) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait = date.as_millisecond().saturating_sub(now.0);
    Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Millis = Millis(1_000_000_000_000);

    #[test]
    fn what_may_pass_is_tried_again_and_the_rest_is_given_up() {
        let retry = Next::Retry { after: None };
        for (status, next, is_unsure) in [
            (101, Next::GiveUp, false),
            (301, Next::GiveUp, false),
            (302, Next::GiveUp, false),
            (307, Next::GiveUp, false),
            (400, Next::GiveUp, false),
            (401, Next::GiveUp, false),
            (404, Next::GiveUp, false),
            (408, retry, true),
            (410, Next::GiveUp, false),
            (413, Next::GiveUp, false),
            (429, retry, false),
            (500, retry, false),
            (502, retry, true),
            (503, retry, false),
            (504, retry, true),
            (529, retry, false),
            (600, Next::GiveUp, false),
        ] {
            let error = judge(StatusCode::from_u16(status).unwrap(), None, b"");
            assert_eq!((error.next, error.is_unsure), (next, is_unsure), "{status}");
            assert!(error.reason.starts_with(&status.to_string()), "{error}");
        }
    }

    #[test]
    fn the_reason_is_one_line_with_the_start_of_what_the_receiver_says() {
        let said = format!("no such\r\n\x1b[31m channel {}", "x".repeat(1000));
        let error = judge(StatusCode::NOT_FOUND, None, said.as_bytes());
        assert!(error.reason.starts_with("404 Not Found: no such [31m channel xxx"), "{error}");
        assert!(error.reason.len() < 400);
        assert!(judge(StatusCode::FOUND, None, b"<html>").reason.ends_with("not followed"));
    }

    #[test]
    fn the_wait_is_seconds_or_a_date() {
        for (text, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 09 Sep 2001 01:47:10 GMT", Some(30)),
            ("Sun, 09 Sep 2001 01:46:10 GMT", Some(0)),
            ("-5", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(retry_after(text, NOW), seconds.map(Duration::from_secs), "{text}");
        }
        let after = retry_after("7", NOW);
        let error = judge(StatusCode::TOO_MANY_REQUESTS, after, b"");
        assert_eq!(error.next, Next::Retry { after: Some(Duration::from_secs(7)) });
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic_or_breaks_a_line(
            status in 100u16..1000,
            after in ".{0,40}",
            said in proptest::collection::vec(any::<u8>(), 0..5000),
        ) {
            retry_after(&after, NOW);
            let error = judge(StatusCode::from_u16(status).unwrap(), None, &said);
            prop_assert!(!error.reason.contains(char::is_control), "{:?}", error.reason);
        }
    }
}
