//! Tells hooks what happens to jobs, and makes jobs of their instructions.
//!
//! What comes before a turn is waited for; everything else is told beside it,
//! after the end of the job was written. Nothing of it is stored: a gateway that
//! is killed tells nobody.

mod instructing;

use std::sync::Arc;

use instructing::instruct;
use ostler_core::failure::{Failure, FailureKind};
use tokio::sync::watch;

use super::{
    attempt::{self, Wish},
    begin::{Beginning, Begun, Place},
    ending::{Ending, NOT_STORED, SessionEnd},
    inbound::Fresh,
    joined,
    policy::Policy,
    tools::Tools,
};
use crate::{
    clock::Millis,
    config::{HookAction, HookEvent, OnFailure},
    hooks::{
        happening::{Happening, Outcome, Reason},
        runner::Runner,
    },
    id::TurnId,
    queue::{JobEnd, JobState, Ticket},
    wishes::Wishes,
};

/// What hooks are told of one attempt at a job.
#[derive(Debug)]
pub(crate) struct News {
    /// Everything that does not depend on what happens.
    base: Happening,
    /// How a turn that follows is run.
    wishes: Wishes,
    /// Why the conversation begins afresh with it, and which session ends.
    reset: Option<(Reason, Option<String>)>,
}

/// What came of an attempt, as far as hooks are told.
#[derive(Debug)]
pub(crate) struct End {
    response_text: Option<String>,
    error: Option<(String, String)>,
    session_id: Option<String>,
    is_released: bool,
    forgets: bool,
    /// What the turn was told while it ran.
    taken: Vec<String>,
}

impl News {
    /// Takes what is known when an attempt begins. There is nothing to tell if
    /// nobody listens.
    pub(crate) fn new(
        policy: &Policy,
        ticket: &Ticket,
        turn: TurnId,
        begun: &Begun,
    ) -> Option<Self> {
        if policy.hooks.is_empty() {
            return None;
        }
        let of_place = |place: &Place| Self {
            base: of_place(ticket, place),
            wishes: Wishes::default(),
            reset: None,
        };
        match begun {
            Begun::Turn(beginning) => {
                // The conversation knows its session.
                let wishes = Wishes { session: None, ..beginning.payload.wishes.clone() };
                let base = of_turn(ticket, turn, beginning);
                Some(Self { base, wishes, reset: beginning.reset.clone() })
            }
            Begun::Reset(place, session) => {
                let mut news = of_place(place);
                news.base.session_id.clone_from(session);
                Some(news)
            }
            Begun::Unusable(place, _) => place.as_ref().map(of_place),
            Begun::Fixed(..) | Begun::Skipped(..) | Begun::Program(_) => None,
        }
    }

    /// Tells what happened in the beginning.
    pub(crate) fn begin(&self, tools: &Tools, policy: &Arc<Policy>) {
        if let Some((reason, session)) = &self.reset {
            self.tell(tools, policy, self.of_reset(*reason, session.clone()));
        }
    }

    /// Tells what came of it. `state` is that of the job now.
    pub(crate) fn end(&self, tools: &Tools, policy: &Arc<Policy>, end: &End, state: JobState) {
        for happening in self.happenings(end, state) {
            self.tell(tools, policy, happening);
        }
    }

    /// Returns what happens at an end, in its order.
    fn happenings(&self, end: &End, state: JobState) -> Vec<Happening> {
        let outcome = match state {
            JobState::Done => Outcome::Done,
            JobState::Dead => Outcome::Dead,
            JobState::Cancelled => Outcome::Cancelled,
            JobState::Waiting | JobState::Ready | JobState::Running if end.is_released => {
                Outcome::Released
            }
            JobState::Waiting | JobState::Ready | JobState::Running => Outcome::Retry,
        };
        let mut text = self.base.text.clone();
        if let Some(first) = text.as_deref().filter(|_| !end.taken.is_empty()) {
            let later = end.taken.iter().map(String::as_str);
            text = Some(joined::together([first].into_iter().chain(later)));
        }
        let ended = |event| Happening {
            event,
            at: Millis::now(),
            response_text: end.response_text.clone(),
            error: end.error.clone(),
            session_id: end.session_id.clone(),
            outcome: Some(outcome),
            text: text.clone(),
            ..self.base.clone()
        };
        let is_turn = self.base.turn.is_some();
        let mut all = Vec::new();
        if is_turn {
            all.push(ended(HookEvent::AfterTurn));
        }
        if outcome == Outcome::Dead {
            all.push(ended(HookEvent::Error));
        }
        if end.forgets {
            let is_lost = |(kind, _): &(String, String)| kind == FailureKind::SessionLost.code();
            let reason = match &end.error {
                _ if !is_turn => Reason::Asked,
                Some(error) if is_lost(error) => Reason::Lost,
                Some(_) | None => Reason::Failed,
            };
            all.push(self.of_reset(reason, self.base.session_id.clone()));
        }
        all
    }

    fn of_reset(&self, reason: Reason, session_id: Option<String>) -> Happening {
        Happening {
            event: HookEvent::SessionReset,
            at: Millis::now(),
            session_id,
            reason: Some(reason),
            ..self.base.clone()
        }
    }

    /// Runs the hooks that are due one after the other, beside everything else.
    fn tell(&self, tools: &Tools, policy: &Arc<Policy>, happening: Happening) {
        if policy.hooks.due(&happening).next().is_none() {
            return;
        }
        let wishes = self.wishes.clone();
        let (tools, policy) = (tools.clone(), Arc::clone(policy));
        let runner = tools.hooks.clone();
        let told = happening.clone();
        runner.beside(&told, async move {
            for hook in policy.hooks.due(&happening) {
                match &hook.action {
                    HookAction::Instruction(text) => {
                        instruct(&tools.store, &policy, hook, text, &happening, &wishes).await;
                    }
                    HookAction::Command(_) | HookAction::Url(_) => {
                        // It was logged, and nothing else can come of it.
                        tools.hooks.run(&policy.hooks, hook, &happening).await.ok();
                    }
                }
            }
        });
    }
}

impl End {
    /// Takes what came of an attempt.
    pub(crate) fn of(ending: &Ending) -> Self {
        let outcome = ending.outcome.as_ref();
        let error = outcome.and_then(|outcome| outcome.error.as_ref());
        let kept = match &ending.session {
            SessionEnd::Keep(memo) => Some(memo.id.clone()),
            SessionEnd::AsItWas | SessionEnd::Forget => None,
        };
        Self {
            response_text: outcome.and_then(|outcome| outcome.text.clone()),
            error: error.map(|error| (error.kind.to_owned(), error.message.clone())),
            session_id: kept.or_else(|| outcome.and_then(|outcome| outcome.session_id.clone())),
            is_released: ending.end == JobEnd::Release,
            forgets: matches!(ending.session, SessionEnd::Forget),
            taken: ending.taken.clone(),
        }
    }

    /// Notes that nothing of it could be stored: nobody gets the answer.
    pub(crate) fn is_not_stored(&mut self) {
        self.response_text = None;
        self.error = Some((FailureKind::Internal.code().to_owned(), NOT_STORED.to_owned()));
        self.forgets = false;
    }
}

fn of_place(ticket: &Ticket, place: &Place) -> Happening {
    Happening {
        subject: ticket.job.to_string(),
        origin: Some(place.origin),
        conversation: Some((place.conversation, place.target.clone())),
        job: Some(ticket.job),
        attempt: Some(ticket.attempt),
        sender: Some(place.sender.clone()),
        // Whoever uses it says what happened.
        ..Happening::of_gateway(HookEvent::Error, Millis::now())
    }
}

fn of_turn(ticket: &Ticket, turn: TurnId, beginning: &Beginning) -> Happening {
    let Beginning { place, payload, agent, memo, joined, .. } = beginning;
    let texts = joined.iter().map(|(_, payload)| payload.text.as_str());
    let texts = [payload.text.as_str()].into_iter().chain(texts);
    let text = if joined.is_empty() { payload.text.clone() } else { joined::together(texts) };
    Happening {
        subject: turn.to_string(),
        turn: Some(turn),
        agent: Some(agent.name.to_string()),
        text: Some(text),
        session_id: memo.as_ref().map(|memo| memo.id.clone()),
        ..of_place(ticket, place)
    }
}

/// Asks the hooks that come before a turn; returns their notes. The error is why
/// the turn does not begin; none if that is nobody's business any more.
pub(crate) async fn before_turn(
    runner: &Runner,
    policy: &Policy,
    (ticket, turn, beginning): (&Ticket, TurnId, &Beginning),
    wish: watch::Receiver<Wish>,
) -> Result<Vec<String>, Option<Failure>> {
    if policy.hooks.is_empty() {
        return Ok(Vec::new());
    }
    let event = HookEvent::BeforeTurn;
    let happening = Happening { event, at: Millis::now(), ..of_turn(ticket, turn, beginning) };
    let notes = async {
        let mut notes = Vec::new();
        for hook in policy.hooks.due(&happening) {
            match runner.run(&policy.hooks, hook, &happening).await {
                Ok(note) => notes.extend(note),
                Err(error) if hook.on_failure == OnFailure::Fail => {
                    let why = format!("the hook {} failed: {error}", hook.name);
                    return Err(Some(Failure::new(FailureKind::Denied, why)));
                }
                Err(_) => {}
            }
        }
        Ok(notes)
    };
    tokio::select! {
        notes = notes => notes,
        why = attempt::unwanted(wish) => Err(why),
    }
}

impl From<Fresh> for Reason {
    fn from(fresh: Fresh) -> Self {
        match fresh {
            Fresh::Idle => Self::Idle,
            Fresh::Asked => Self::Asked,
        }
    }
}

#[cfg(test)]
mod tests;
