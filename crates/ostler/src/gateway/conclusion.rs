//! What an attempt comes to: the end of its job, what is said, which session is
//! kept, and what is told about it. Pure.

use ostler_core::{
    event::TurnReport,
    failure::{Failure, FailureKind},
};
use serde_json::{Value, json};

use super::{
    attempt::Wish,
    begin::{Beginning, Place},
    ending::{Ending, SessionEnd, Turned, status},
    inbound::Origin,
    joined,
    policy::RetryRules,
    result::{self, Outcome},
    retry::{self, Next, Session},
    steering::Taken,
};
use crate::{
    clock::Millis,
    id::{JobId, TurnId},
    queue::{JobEnd, JobState, Joined},
    schedule::heartbeat,
    store::events::NewEvent,
};

/// What is known of an attempt when its turn is over.
#[derive(Debug)]
pub(crate) struct Conclusion {
    pub(crate) job: JobId,
    pub(crate) turn: TurnId,
    pub(crate) beginning: Beginning,
    /// Where it was run, if it was.
    pub(crate) cwd: Option<String>,
    pub(crate) rules: RetryRules,
    /// What was wanted of it.
    pub(crate) wish: Wish,
    /// Messages that the running turn took.
    pub(crate) steered: Vec<Taken>,
    /// The last events of the turn.
    pub(crate) last: Vec<NewEvent>,
    /// Whether it asked for a permission.
    pub(crate) has_asked: bool,
    pub(crate) now: Millis,
}

impl Conclusion {
    /// Concludes from the report of a turn.
    pub(crate) fn of_report(self, report: &TurnReport) -> Ending {
        if self.beginning.payload.origin == Origin::Heartbeat {
            return self.of_heartbeat(report);
        }
        let kept = result::session(report);
        let session = kept.map_or(SessionEnd::AsItWas, |memo| SessionEnd::Keep(Box::new(memo)));
        let outcome = Outcome::of(report, self.beginning.place.target.clone());
        let text = serde_json::to_string(report).unwrap_or_else(|_| "{}".to_owned());
        match &report.error {
            None => self.end(JobEnd::Done, session, outcome, text),
            Some(failure) if failure.kind == FailureKind::Cancelled => {
                let end = match self.wish {
                    Wish::Release => JobEnd::Release,
                    Wish::Nothing | Wish::Cancel | Wish::Lost => {
                        JobEnd::Cancelled { reason: failure.message.clone() }
                    }
                };
                self.end(end, session, outcome, text)
            }
            Some(failure) => self.failed(failure, outcome, text, session),
        }
    }

    /// Concludes from the turn of a heartbeat: it is tried once, in the session
    /// that there was, and people hear of it only if it has something to tell.
    fn of_heartbeat(self, report: &TurnReport) -> Ending {
        let session_before = self.beginning.memo.as_ref().map(|memo| memo.id.clone());
        let kept = result::session(report).filter(|memo| Some(&memo.id) == session_before.as_ref());
        let session = kept.map_or(SessionEnd::AsItWas, |memo| SessionEnd::Keep(Box::new(memo)));
        let outcome = Outcome::of(report, self.beginning.place.target.clone());
        let is_told = outcome.text.as_deref().is_some_and(|text| !heartbeat::says_nothing(text));
        let end = match &report.error {
            None => JobEnd::Done,
            Some(failure) if failure.kind == FailureKind::Cancelled => {
                JobEnd::Cancelled { reason: failure.message.clone() }
            }
            Some(failure) => {
                let reason = format!("{}: {}", failure.kind.code(), failure.message);
                tracing::warn!(job = %self.job, reason, "a heartbeat failed");
                JobEnd::Dead { reason }
            }
        };
        let text = serde_json::to_string(report).unwrap_or_else(|_| "{}".to_owned());
        let ending = self.end(end, session, outcome, text);
        Ending { is_silent: !is_told, ..ending }
    }

    /// Leaves the job for later, without a word about the turn.
    pub(crate) fn put_back(self) -> Ending {
        let events = self.last;
        Ending { events, ..without_turn(JobEnd::Release, Some(self.beginning.place), None) }
    }

    /// A turn that failed is tried again, or not.
    fn failed(
        mut self,
        failure: &Failure,
        outcome: Outcome,
        report: String,
        session: SessionEnd,
    ) -> Ending {
        let reason = format!("{}: {}", failure.kind.code(), failure.message);
        let (number, delay, keep) =
            match retry::decide(failure, &self.beginning.earlier, self.rules) {
                // One of those that were answered together may be at fault: each gets its own turn.
                Next::GiveUp if !self.beginning.joined.is_empty() => {
                    (None, std::time::Duration::ZERO, Session::Keep)
                }
                Next::GiveUp => return self.end(JobEnd::Dead { reason }, session, outcome, report),
                Next::Again { number, delay, session } => (number, delay, session),
            };
        if let Some(number) = number {
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            let fields = [
                ("attempt", json!(number)),
                ("max", json!(self.rules.max)),
                ("delay_ms", json!(delay_ms)),
            ];
            self.tell("retry", &reason, &fields);
        }
        let session = match keep {
            Session::Keep => session,
            Session::Drop => {
                self.tell("fresh_session", "the next try begins a new session", &[]);
                SessionEnd::Forget
            }
        };
        let end = JobEnd::Retry { not_before: self.now.after(delay), reason };
        self.end(end, session, outcome, report)
    }

    fn tell(&mut self, code: &str, text: &str, fields: &[(&str, Value)]) {
        let place = &self.beginning.place;
        self.last.push(status(place, Some(self.turn), code, text, fields, self.now));
    }

    fn end(self, end: JobEnd, session: SessionEnd, outcome: Outcome, report: String) -> Ending {
        let joined = match end {
            JobEnd::Done => {
                let with = self.beginning.joined.iter().map(|(job, _)| *job);
                Joined {
                    jobs: with.chain(self.steered.iter().map(|taken| taken.job)).collect(),
                    state: JobState::Done,
                    reason: joined::reason(self.job),
                }
            }
            // They get a turn of their own.
            JobEnd::Dead { .. }
            | JobEnd::Cancelled { .. }
            | JobEnd::Retry { .. }
            | JobEnd::Release => Joined::none(),
        };
        let (agent, cwd) = (self.beginning.agent.name.to_string(), self.cwd);
        let has_asked = self.has_asked;
        Ending {
            end,
            joined,
            place: Some(self.beginning.place),
            turn: Some(Turned { id: self.turn, agent, report, has_asked, cwd }),
            session,
            outcome: Some(outcome),
            is_silent: false,
            events: self.last,
            taken: self.steered.into_iter().map(|taken| taken.text).collect(),
        }
    }
}

/// Makes an end without a turn.
pub(crate) fn without_turn(end: JobEnd, place: Option<Place>, outcome: Option<Outcome>) -> Ending {
    let (turn, session, events) = (None, SessionEnd::AsItWas, Vec::new());
    let (joined, is_silent, taken) = (Joined::none(), false, Vec::new());
    Ending { end, joined, place, turn, session, outcome, is_silent, events, taken }
}
