//! What arrived: a bounded record of requests, so that tests can assert what a
//! CLI really sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

use super::reply::Charge;
use super::wire;

/// One request, with the key it carried: keys here are made up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// Counts all requests from one, in the order of their arrival.
    pub number: u64,
    /// Milliseconds since the simulated model was started.
    pub at_ms: u64,
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers that tests care about, in lower case.
    pub headers: BTreeMap<String, String>,
    /// The key, whichever header held it, or the address.
    pub key: Option<String>,
    /// The parsed body; a text when it was not JSON, null when it was empty.
    pub body: Value,
    /// The newest prompt as the user typed it; none for other calls.
    pub prompt: Option<String>,
    /// The behaviour word that was chosen; none when it did not come to that.
    pub word: Option<String>,
    /// The HTTP status of the response.
    pub status: u16,
}

impl Recorded {
    /// Returns what the call cost; `None` when no model answered it.
    pub fn charge(&self) -> Option<Charge> {
        let is_answered = self.word.is_some() && self.status == 200;
        wire::charge(&self.path).filter(|_| is_answered)
    }
}

/// The newest requests, bounded in number and in bytes.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    requests: VecDeque<(usize, Arc<Recorded>)>,
    n_bytes: usize,
}

impl Log {
    /// Adds a request whose body had `n_bytes`, and forgets the oldest ones
    /// beyond the bounds.
    pub(crate) fn add(&self, n_bytes: usize, request: Recorded) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.n_bytes += n_bytes;
        entries.requests.push_back((n_bytes, Arc::new(request)));
        // Two requests of one conversation may be recorded in another order
        // than they were numbered.
        entries.requests.make_contiguous().sort_by_key(|(_, request)| request.number);
        while entries.requests.len() > MAX_REQUESTS
            || (entries.n_bytes > MAX_BYTES && entries.requests.len() > 1)
        {
            let Some((n_bytes, _)) = entries.requests.pop_front() else {
                break;
            };
            entries.n_bytes -= n_bytes;
        }
    }

    /// Returns the requests after number `after`, oldest first.
    pub(crate) fn since(&self, after: u64) -> Vec<Arc<Recorded>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries
            .requests
            .iter()
            .map(|(_, request)| Arc::clone(request))
            .filter(|request| request.number > after)
            .collect()
    }
}

/// Headers that are kept.
pub(crate) const KEPT_HEADERS: &[&str] = &[
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "authorization",
    "content-type",
    "originator",
    "session-id",
    "user-agent",
    "x-api-key",
    "x-claude-code-session-id",
    "x-goog-api-client",
    "x-goog-api-key",
    "x-session-affinity",
    "x-session-id",
];

const MAX_REQUESTS: usize = 1000;
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> Recorded {
        Recorded {
            number,
            at_ms: 0,
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            headers: BTreeMap::new(),
            key: None,
            body: Value::Null,
            prompt: None,
            word: None,
            status: 200,
        }
    }

    fn numbers(log: &Log, after: u64) -> Vec<u64> {
        log.since(after).iter().map(|request| request.number).collect()
    }

    #[test]
    fn requests_stay_in_the_order_of_arrival() {
        let log = Log::default();
        for number in [1, 3, 2] {
            log.add(10, request(number));
        }
        assert_eq!(numbers(&log, 0), [1, 2, 3]);
        assert_eq!(numbers(&log, 2), [3]);
    }

    #[test]
    fn only_an_answered_call_of_a_model_costs_something() {
        let answered = Recorded {
            path: "/v1/messages?beta=true".to_owned(),
            word: Some("text".to_owned()),
            ..request(1)
        };
        let charge = answered.charge().unwrap();
        assert!(charge.input > charge.cached && charge.output > 0);
        assert_eq!(request(1).charge(), None);
        assert_eq!(Recorded { status: 429, ..answered.clone() }.charge(), None);
        assert_eq!(Recorded { path: "/v1/models".to_owned(), ..answered }.charge(), None);
    }

    #[test]
    fn the_oldest_requests_are_forgotten_beyond_the_bounds() {
        let log = Log::default();
        for number in 1..=1005 {
            log.add(10, request(number));
        }
        assert_eq!(log.since(0).len(), MAX_REQUESTS);
        log.add(MAX_BYTES, request(1006));
        assert_eq!(numbers(&log, 0), [1006]);
    }
}
