//! What is said in passing, and is not worth a place in the outbox: said again for a
//! minute if the chat has no time for it, and forgotten with a gateway that stops.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::Intake;
use crate::channel::{
    Next, SendError,
    chat::{Post, Posting},
};

/// How long it is tried to say something.
const PATIENCE: Duration = Duration::from_secs(60);
/// The wait before the second attempt, unless the chat says when. Each one that follows
/// is twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// What it does if something is done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twice {
    /// Nothing.
    Unnoticed,
    /// People see it.
    Seen,
}

impl Intake {
    /// Says something beside what happens next.
    pub(crate) fn tell(&self, place: &str, answers: &str, text: String) {
        let (intake, place, answers) = (self.clone(), place.to_owned(), answers.to_owned());
        self.spawn(async move {
            let post = intake.post(&text);
            let again = match intake.chat.limits().known_again {
                Some(_) => Twice::Unnoticed,
                None => Twice::Seen,
            };
            let said = insist(again, || intake.say(&place, &answers, &post)).await;
            note(said);
        });
    }

    /// Says something once, whatever becomes of it.
    pub(super) async fn tell_once(&self, place: &str, answers: &str, text: &str) {
        note(self.say(place, answers, &self.post(text)).await);
    }

    /// Returns a message of a text, as far as it fits into one.
    fn post(&self, text: &str) -> Post {
        let limits = self.chat.limits();
        Post::of(limits.measure.start(text, limits.text).to_owned())
    }

    async fn say(&self, place: &str, answers: &str, post: &Post) -> Result<(), SendError> {
        let nonce = format!("told:{answers}");
        let posting = Posting { post, nonce: &nonce, answers: Some(answers) };
        self.chat.send(place, posting).await.map(drop)
    }
}

fn note(said: Result<(), SendError>) {
    if let Err(SendError { reason, .. }) = said {
        tracing::warn!(reason, "somebody could not be told something");
    }
}

/// Does something in a chat, again if that may help, for a while.
pub(crate) async fn insist<F>(again: Twice, attempt: impl Fn() -> F) -> Result<(), SendError>
where
    F: Future<Output = Result<(), SendError>>,
{
    let by = Instant::now() + PATIENCE;
    for n_before in 0_u32.. {
        let Err(error) = attempt().await else { return Ok(()) };
        let left = by.saturating_duration_since(Instant::now());
        let Some(pause) = pause(&error, again, n_before, left) else { return Err(error) };
        time::sleep(pause).await;
    }
    Ok(())
}

/// Returns how long to wait before something is done again; nothing if that is no use, or
/// there is not so much time left.
fn pause(error: &SendError, again: Twice, n_before: u32, left: Duration) -> Option<Duration> {
    let Next::Retry { after } = error.next else { return None };
    if error.is_unsure && again == Twice::Seen {
        return None;
    }
    let usual = PAUSE.saturating_mul(2_u32.saturating_pow(n_before));
    Some(after.unwrap_or(usual)).filter(|pause| *pause < left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(next: Next, is_unsure: bool) -> SendError {
        SendError { reason: "no".to_owned(), next, is_unsure }
    }

    #[test]
    fn it_is_tried_again_as_long_as_that_may_help_and_nobody_sees_it_twice() {
        const SECOND: Duration = Duration::from_secs(1);
        let soon = Next::Retry { after: None };
        let told = Next::Retry { after: Some(9 * SECOND) };
        for (next, is_unsure, again, n_before, left, expected) in [
            (soon, false, Twice::Seen, 0, 60, Some(1)),
            (soon, false, Twice::Seen, 3, 60, Some(8)),
            (soon, false, Twice::Seen, 3, 8, None),
            (soon, false, Twice::Seen, u32::MAX, 60, None),
            (told, false, Twice::Seen, 3, 60, Some(9)),
            (told, false, Twice::Seen, 3, 9, None),
            (soon, true, Twice::Unnoticed, 0, 60, Some(1)),
            (soon, true, Twice::Seen, 0, 60, None),
            (Next::GiveUp, false, Twice::Unnoticed, 0, 60, None),
        ] {
            let error = error(next, is_unsure);
            let pause = pause(&error, again, n_before, left * SECOND);
            assert_eq!(pause, expected.map(|seconds: u32| seconds * SECOND), "{error:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_no_time_is_asked_for_a_minute_at_most() {
        let start = Instant::now();
        let busy = || async { Err(error(Next::Retry { after: None }, false)) };
        insist(Twice::Unnoticed, busy).await.unwrap_err();
        let took = start.elapsed();
        assert!(took > PATIENCE / 2 && took <= PATIENCE, "{took:?}");
    }
}
