//! What comes while a turn runs and is handed to it.

use ostler_core::turn::Turn;

use super::{
    begin::{TOGETHER, joining},
    inbound::Payload,
};
use crate::{
    id::JobId,
    queue::LaneId,
    store::{Store, jobs},
};

/// The messages of a turn that runs.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    /// Those that were handed to it, and of which it has not said yet whether it
    /// takes them.
    handed: Vec<Handed>,
    taken: Vec<Taken>,
}

#[derive(Debug)]
struct Handed {
    taken: Taken,
    /// As the turn got it.
    text: String,
}

/// A message that a turn took.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) job: JobId,
    /// What its sender said.
    pub(crate) text: String,
}

impl Steering {
    /// Hands the turn what has come since it began, in the words of `text`, up to
    /// the first message for which there are none.
    pub(crate) async fn steer(
        &mut self,
        store: &Store,
        lane: &LaneId,
        first: &Payload,
        text: impl Fn(&Payload) -> Option<String>,
        turn: &Turn,
    ) {
        let behind = store
            .read(lane.clone(), |conn, lane| Box::pin(jobs::waiting_behind(conn, lane, TOGETHER)));
        let Ok(behind) = behind.await else { return };
        for (job, payload) in joining(first, behind) {
            let handed = self.handed.iter().map(|handed| &handed.taken);
            if handed.chain(&self.taken).any(|known| known.job == job) {
                continue;
            }
            let Some(text) = text(&payload) else { return };
            // What it does not take is its own turn, later.
            if turn.steer(&text).await.is_err() {
                return;
            }
            self.handed.push(Handed { taken: Taken { job, text: payload.text }, text });
        }
    }

    /// Notes that the turn took a text.
    pub(crate) fn took(&mut self, text: &str) {
        if let Some(at) = self.handed.iter().position(|handed| handed.text == text) {
            self.taken.push(self.handed.remove(at).taken);
        }
    }

    /// Returns what it took.
    pub(crate) fn taken(self) -> Vec<Taken> {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_turn_says_that_it_took_is_taken_once() {
        let jobs = [JobId::new(), JobId::new(), JobId::new()];
        let handed = |job, said: &str| Handed {
            taken: Taken { job, text: said.to_owned() },
            text: format!("[12:00] {said}"),
        };
        let handed = vec![handed(jobs[0], "so"), handed(jobs[1], "or so"), handed(jobs[2], "so")];
        let mut steering = Steering { handed, taken: Vec::new() };
        for text in ["[12:00] so", "so", "[12:00] or so", "[12:00] or so"] {
            steering.took(text);
        }
        let taken = steering.taken();
        let taken: Vec<_> = taken.iter().map(|taken| (taken.job, taken.text.as_str())).collect();
        assert_eq!(taken, [(jobs[0], "so"), (jobs[1], "or so")]);
    }
}
