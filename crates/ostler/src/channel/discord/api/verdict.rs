//! What went wrong with a call, and what that means for whoever made it. Pure. The
//! words are for people: no token and no address is in them.

use std::time::Duration;

use thiserror::Error;

use crate::channel::{Next, SendError, chat::Changed};

/// How long nothing is tried after the token was refused: somebody has to do
/// something about it first.
const REFUSED: Duration = Duration::from_secs(60);
/// How long nothing is tried if Discord has no time and does not say until when.
const LIMITED: Duration = Duration::from_secs(5);

/// What went wrong with a call.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{}", judge(self).reason)]
pub(crate) enum Trouble {
    /// Discord refused it. The code is its own; 0 if it gave none.
    Refused { status: u16, code: u64 },
    /// Somebody refused it, but not in Discord's manner: mostly a server before it.
    Illegible,
    /// Discord had no time for it, time and again, or has none for longer than it
    /// could be waited for.
    Limited { after: Option<Duration> },
    /// Nobody was there to take it.
    Unreachable,
    /// The connection was lost before there was an answer.
    Cut,
    /// There was no answer in time.
    Late { was_sent: bool },
    /// It was done, but the answer makes no sense.
    Garbled,
    /// It never left, and never will.
    Unmade(&'static str),
}

impl Trouble {
    /// Says whether the token was refused.
    pub(crate) fn is_token_refused(self) -> bool {
        matches!(self, Self::Refused { status: 401, .. })
    }

    /// Says whether the same call may work a little later.
    pub(crate) fn may_pass(self) -> bool {
        matches!(judge(&self).next, Next::Retry { .. })
    }

    /// Says whether Discord refused it with this code.
    pub(super) fn is_code(self, expected: u64) -> bool {
        matches!(self, Self::Refused { code, .. } if code == expected)
    }
}

impl From<Trouble> for SendError {
    fn from(trouble: Trouble) -> Self {
        judge(&trouble)
    }
}

/// Judges a change of a message.
pub(super) fn changed(result: Result<(), Trouble>) -> Result<Changed, SendError> {
    match result {
        Ok(()) => Ok(Changed::Done),
        Err(trouble) if trouble.is_code(10008) => Ok(Changed::Gone),
        Err(trouble) => Err(trouble.into()),
    }
}

/// Judges a call that failed.
pub(super) fn judge(trouble: &Trouble) -> SendError {
    let soon = Next::Retry { after: None };
    let (reason, next, is_unsure) = match *trouble {
        Trouble::Refused { status, code } => return refused(status, code),
        Trouble::Illegible => ("something before Discord refused it", soon, true),
        Trouble::Limited { after } => {
            let next = Next::Retry { after: Some(after.unwrap_or(LIMITED)) };
            ("Discord has no time for it now", next, false)
        }
        Trouble::Unreachable => ("Discord cannot be reached", soon, false),
        Trouble::Cut => ("the connection to Discord was lost", soon, true),
        Trouble::Late { was_sent: true } => ("Discord did not answer in time", soon, true),
        Trouble::Late { was_sent: false } => {
            ("Discord's rate limit did not let it pass in time", soon, false)
        }
        Trouble::Garbled => ("Discord's answer could not be read", soon, true),
        Trouble::Unmade(why) => (why, Next::GiveUp, false),
    };
    SendError { reason: reason.to_owned(), next, is_unsure }
}

fn refused(status: u16, code: u64) -> SendError {
    let known = match (status, code) {
        (401, _) => Some(
            "Discord does not take the bot's token; make a new one in the developer portal \
             and set it (discord.token, or DISCORD_BOT_TOKEN)",
        ),
        (429, _) => Some("Discord has no time for it now"),
        (_, 10003) => Some("there is no such channel"),
        (_, 10008) => Some("the message is not there any more"),
        (_, 10013) => Some("there is no such user"),
        (_, 10062) => Some("it is too late to answer"),
        (_, 40005) => Some("it is too large for Discord"),
        (_, 40060) => Some("it was answered already"),
        (_, 50001) => Some("the bot may not see the channel"),
        (_, 50006) => Some("an empty message cannot be sent"),
        (_, 50007) => Some("this user takes no messages from the bot"),
        (_, 50013) => Some("the bot lacks a permission in the channel"),
        (_, 50035) => Some("Discord does not take it as it is"),
        (_, 50083) => Some("the thread is closed"),
        _ => None,
    };
    let reason = known.map_or_else(
        || format!("Discord refused it (status {status}, code {code})"),
        |known| known.to_owned(),
    );
    let next = match status {
        401 => Next::Retry { after: Some(REFUSED) },
        429 => Next::Retry { after: Some(LIMITED) },
        408 | 500..=599 => Next::Retry { after: None },
        _ => Next::GiveUp,
    };
    // Only of 503 one knows that nobody took it up.
    let is_unsure = matches!(status, 408 | 500..=502 | 504..=599);
    SendError { reason, next, is_unsure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: u64) -> Trouble {
        Trouble::Refused { status, code }
    }

    #[test]
    fn every_trouble_has_its_verdict() {
        let soon = Next::Retry { after: None };
        let later = |seconds| Next::Retry { after: Some(Duration::from_secs(seconds)) };
        let told = Trouble::Limited { after: Some(Duration::from_secs(9)) };
        for (trouble, next, is_unsure, words) in [
            (refusal(404, 10003), Next::GiveUp, false, "no such channel"),
            (refusal(403, 50001), Next::GiveUp, false, "may not see"),
            (refusal(403, 50013), Next::GiveUp, false, "permission"),
            (refusal(403, 50007), Next::GiveUp, false, "this user"),
            (refusal(400, 50006), Next::GiveUp, false, "empty"),
            (refusal(400, 50035), Next::GiveUp, false, "as it is"),
            (refusal(413, 40005), Next::GiveUp, false, "too large"),
            (refusal(404, 10008), Next::GiveUp, false, "any more"),
            (refusal(404, 10062), Next::GiveUp, false, "too late"),
            (refusal(400, 77), Next::GiveUp, false, "status 400, code 77"),
            (refusal(302, 0), Next::GiveUp, false, "status 302"),
            (refusal(401, 0), later(60), false, "DISCORD_BOT_TOKEN"),
            (refusal(429, 0), later(5), false, "no time"),
            (told, later(9), false, "no time"),
            (refusal(408, 0), soon, true, "status 408"),
            (refusal(500, 0), soon, true, "status 500"),
            (refusal(502, 0), soon, true, "status 502"),
            (refusal(503, 0), soon, false, "status 503"),
            (refusal(504, 0), soon, true, "status 504"),
            (Trouble::Illegible, soon, true, "before Discord"),
            (Trouble::Limited { after: None }, later(5), false, "no time"),
            (Trouble::Unreachable, soon, false, "reached"),
            (Trouble::Cut, soon, true, "lost"),
            (Trouble::Late { was_sent: true }, soon, true, "in time"),
            (Trouble::Late { was_sent: false }, soon, false, "rate limit"),
            (Trouble::Garbled, soon, true, "could not be read"),
            (Trouble::Unmade("no id"), Next::GiveUp, false, "no id"),
        ] {
            let error = judge(&trouble);
            assert_eq!((error.next, error.is_unsure), (next, is_unsure), "{trouble:?}");
            assert!(error.reason.contains(words), "{error}");
            assert_eq!(trouble.to_string(), error.reason);
        }
    }

    #[test]
    fn a_message_that_is_gone_is_no_failure_of_its_change() {
        assert_eq!(changed(Ok(())), Ok(Changed::Done));
        assert_eq!(changed(Err(refusal(404, 10008))), Ok(Changed::Gone));
        let error = changed(Err(refusal(404, 10003))).unwrap_err();
        assert_eq!(error.next, Next::GiveUp);
    }
}
