//! How often each place can be called. Discord counts calls of a kind in a channel by
//! themselves, and says with each answer how many are left. So one call of a kind and
//! a place is made at a time, and the next one waits if none is left, or if it was
//! refused, for as long as Discord says. What belongs to a button or a command is
//! counted by its ticket, which is a place in this sense too.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex as Turn, OwnedMutexGuard},
    time::{self, Instant},
};
use twilight_http::request::Request;

use super::wire::Answer;

/// How many places are remembered that nobody calls.
const REMEMBERED: usize = 1000;
/// The longest wait that is believed.
const LONGEST: Duration = Duration::from_secs(60);

/// Until when a place is not to be called, if it is not.
type Rest = Option<Instant>;

/// The places that were called.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    places: Mutex<HashMap<String, Arc<Turn<Rest>>>>,
}

/// Whoever calls a place, until he is done.
pub(super) struct Calling(OwnedMutexGuard<Rest>);

impl Buckets {
    /// Waits until a place can be called. Cancel-safe.
    pub(super) async fn enter(&self, place: String) -> Calling {
        let turn = Arc::clone(self.lock().entry(place).or_default());
        let mut rest = turn.lock_owned().await;
        if let Some(until) = *rest {
            time::sleep_until(until).await;
            *rest = None;
        }
        Calling(rest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Turn<Rest>>>> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= REMEMBERED {
            let now = Instant::now();
            places.retain(|_, turn| {
                // Somebody may be about to call.
                Arc::strong_count(turn) > 1
                    || turn.try_lock().map_or(true, |rest| rest.is_some_and(|until| until > now))
            });
        }
        places
    }
}

impl Calling {
    /// Notes what an answer says of the calls to come.
    pub(super) fn answered(&mut self, answer: &Answer) {
        *self.0 = rest(answer).map(|rest| Instant::now() + rest);
    }

    /// Notes that the place is not to be called for so long.
    pub(super) fn refused(&mut self, after: Duration) {
        *self.0 = Some(Instant::now() + after);
    }
}

/// Returns what is counted by itself: a method, and the channel or whatever else the
/// path begins with. Messages of a channel are counted together, but not with what is
/// done at a message, such as beginning a thread.
pub(super) fn place(request: &Request) -> String {
    let path = request.path().split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').take(3).chain(path.split('/').nth(4)).collect();
    format!("{} {}", request.method().name(), parts.join("/"))
}

/// Returns how long no call is left, by the headers of an answer.
fn rest(answer: &Answer) -> Option<Duration> {
    if answer.header("x-ratelimit-remaining") != Some("0") {
        return None;
    }
    let after = answer.header("x-ratelimit-reset-after")?.parse().ok()?;
    Some(Duration::try_from_secs_f64(after).ok()?.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use twilight_http::routing::Route;

    use super::*;

    fn told(remaining: &str, after: &str) -> Option<Duration> {
        let headers = [("x-ratelimit-remaining", remaining), ("x-ratelimit-reset-after", after)];
        rest(&Answer::new(200, &headers, ""))
    }

    #[test]
    fn a_place_rests_when_no_call_is_left() {
        assert_eq!(told("0", "1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(told("1", "1.5"), None);
        for nonsense in ["", "soon", "-1", "NaN", "inf"] {
            assert_eq!(told("0", nonsense), None, "{nonsense}");
        }
        assert_eq!(told("0", "1e15"), Some(LONGEST));
        assert_eq!(rest(&Answer::new(200, &[], "")), None);
    }

    #[test]
    fn messages_of_a_channel_are_one_place_for_each_method() {
        let edit = |channel_id, message_id| {
            place(&Request::from_route(&Route::UpdateMessage { channel_id, message_id }))
        };
        let send = |channel_id| place(&Request::from_route(&Route::CreateMessage { channel_id }));
        let typing = place(&Request::from_route(&Route::CreateTypingTrigger { channel_id: 1 }));
        assert_eq!(edit(1, 2), edit(1, 3));
        assert_ne!(edit(1, 2), edit(2, 2));
        assert_ne!(edit(1, 2), send(1));
        assert_ne!(send(1), typing);
        let thread = |channel_id, message_id| {
            let route = Route::CreateThreadFromMessage { channel_id, message_id };
            place(&Request::from_route(&route))
        };
        assert_eq!(thread(1, 2), thread(1, 3));
        assert_ne!(thread(1, 2), send(1));
    }

    #[tokio::test]
    async fn places_that_nobody_calls_are_forgotten() {
        let buckets = Buckets::default();
        let kept = buckets.enter("kept".to_owned()).await;
        for number in 0..3 * REMEMBERED {
            drop(buckets.enter(number.to_string()).await);
        }
        assert!(buckets.lock().len() <= REMEMBERED);
        assert!(buckets.lock().contains_key("kept"));
        drop(kept);
    }
}
