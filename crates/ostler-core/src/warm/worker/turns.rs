//! The turns inside a kept process: how they begin, what is said, how they end.

use std::mem;

use tokio::time::Instant;

use super::{
    super::live::{Done, Ended, LiveTurn, NewTurn, Phase},
    GRACE_AFTER_CANCEL, Worker, not_begun,
};
use crate::{
    agent::{Input, Order, SessionKey, TurnEnd, TurnKey},
    event::{EventBody, Status},
    failure::{Failure, FailureKind},
    permission::{Answer, DecidedBy, Decision, Permission, Ruling},
    turn::{Said, SayError},
    verdict::{Evidence, Reason},
};

impl Worker {
    pub(super) fn prompt(&mut self, new: NewTurn) {
        let NewTurn { key, session, prompt, options, opening, way, unasked } = new;
        let phase = Phase::Waiting { prompt, options: Box::new(options), opening };
        let mut turn = LiveTurn::new(session, phase, way);
        let refused = self.refused.remove(&session);
        if let Some(failure) = refused.or_else(|| self.unusable.clone()) {
            self.turns.insert(key.0, turn);
            let end = TurnEnd::failed(failure);
            return self.finish(key, Some(end));
        }
        let Some(entry) = self.sessions.get_mut(&session) else {
            return not_begun(turn, "its session was closed");
        };
        entry.unasked = Some(unasked);
        if entry.active.is_some() {
            let text = "another turn of this session is running; waiting for its end".to_owned();
            turn.status(Status::Queued { text });
        }
        entry.queue.push_back(key);
        self.turns.insert(key.0, turn);
        self.begin_next(session);
    }

    /// Begins the next turn of a session, if it can take one.
    pub(super) fn begin_next(&mut self, session: SessionKey) {
        if self.is_stepping {
            // What the dialect still wants done comes before anything new.
            return self.next_up.push(session);
        }
        if !self.ready || self.parts.footing.is_going() || self.exit.is_some() {
            return;
        }
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        if entry.active.is_some() || entry.pending.is_some() {
            return;
        }
        let Some(key) = entry.queue.pop_front() else { return };
        entry.active = Some(key);
        let id = entry.id.clone();
        let warned = &mut entry.warned;
        let Some(turn) = self.turns.get_mut(&key.0) else { return };
        let Phase::Waiting { prompt, options, opening } =
            mem::replace(&mut turn.phase, Phase::Running)
        else {
            return;
        };
        turn.heard_at = Instant::now();
        // Should the process end, its last words are those since then. What it
        // said before belongs to other turns.
        self.parts.footing.forget_last_words();
        for event in opening {
            // What a session was warned of once is not said with every turn.
            if let EventBody::Status(Status::Warning { text }) = &event
                && !warned.insert(text.clone())
            {
                continue;
            }
            turn.way.outbox.push(None, event);
        }
        if let Some(id) = id {
            turn.tell_session(&id);
        }
        let order = Order::Prompt { session, turn: key, prompt: &prompt, options: &options };
        self.step(Input::Order(order));
    }

    pub(super) fn unasked(&mut self, session: SessionKey, key: TurnKey) {
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        let Some(hook) = &entry.unasked else { return };
        let (way, opening) = hook(key, entry.id.as_deref());
        let mut turn = LiveTurn::new(session, Phase::Running, way);
        for event in opening {
            turn.way.outbox.push(None, event);
        }
        if let Some(id) = &entry.id {
            turn.tell_session(id);
        }
        // A prompt that comes meanwhile waits, so that the agent does not fold it in.
        entry.active.get_or_insert(key);
        self.turns.insert(key.0, turn);
    }

    pub(super) fn emit(&mut self, key: TurnKey, parent: Option<String>, event: EventBody) {
        // What comes for a turn that has ended is nobody's.
        let Some(turn) = self.turns.get_mut(&key.0) else { return };
        turn.heard_at = Instant::now();
        turn.way.outbox.push(parent, event);
        if self.parts.is_shared && turn.way.outbox.is_overfull() && turn.reason.is_none() {
            let text = "the reader of this turn is too slow; its events were given up";
            self.give_up(key, Reason::Failed(Failure::new(FailureKind::Internal, text)));
        }
    }

    pub(super) fn ask(&mut self, key: TurnKey, permission: Permission) {
        let allow = Ruling::Allow { text: None };
        let deny = |why: &str| Ruling::Deny { why: why.to_owned() };
        let request = permission.request.clone();
        let Some(turn) = self.turns.get_mut(&key.0) else {
            return self.rule(key, &request, &deny("the turn is over"));
        };
        let session = self.sessions.get(&turn.session);
        if turn.reason.is_some() {
            turn.resolved(&request, Decision::Deny, DecidedBy::Cancel);
            return self.rule(key, &request, &deny("the turn is being cancelled"));
        }
        if session.is_some_and(|session| session.allowed.covers(&permission)) {
            turn.resolved(&request, Decision::Allow, DecidedBy::Session);
            return self.rule(key, &request, &allow);
        }
        turn.ask(permission);
    }

    pub(super) fn rule(&mut self, turn: TurnKey, request: &str, ruling: &Ruling) {
        self.step(Input::Order(Order::Answer { turn, request, ruling }));
    }

    pub(super) fn say(&mut self, key: TurnKey, said: Said) -> Result<(), SayError> {
        let turn = self.turns.get_mut(&key.0).ok_or(SayError::Over)?;
        match said {
            Said::Answer { request, answer } => {
                let permission = turn
                    .resolve(&request, answer.decision, DecidedBy::User)
                    .ok_or(SayError::NotAsked)?;
                let session = turn.session;
                if let (Decision::AllowAlways, Some(session)) =
                    (answer.decision, self.sessions.get_mut(&session))
                {
                    session.allowed.remember(&permission);
                    if let Some(id) = &session.id {
                        let allowed = session.allowed.clone();
                        self.parts.allowances.add(&self.parts.agent, id, allowed);
                    }
                }
                self.rule(key, &request, &answer.ruling());
                Ok(())
            }
            Said::Steer { .. } if !self.parts.can_steer => Err(SayError::NotSteerable),
            Said::Steer { text } => match turn.phase {
                Phase::Running => {
                    self.step(Input::Order(Order::Steer { turn: key, text: &text }));
                    Ok(())
                }
                Phase::Waiting { .. } | Phase::GivenUp(_) => Err(SayError::Over),
            },
        }
    }

    /// Ends a turn for a reason of the driver's, which wins.
    pub(super) fn give_up(&mut self, key: TurnKey, reason: Reason) {
        let Some(turn) = self.turns.get_mut(&key.0) else { return };
        match turn.phase {
            Phase::GivenUp(_) => return,
            Phase::Waiting { .. } => {
                turn.reason = Some(reason);
                return self.finish(key, None);
            }
            Phase::Running => {}
        }
        turn.reason = Some(reason);
        turn.way.outbox.limit();
        turn.phase = Phase::GivenUp(Instant::now() + GRACE_AFTER_CANCEL);
        for request in turn.requests() {
            self.deny(key, &request, DecidedBy::Cancel, "the turn is being cancelled");
        }
        self.step(Input::Cancel { turn: key });
    }

    pub(super) fn deny(&mut self, key: TurnKey, request: &str, by: DecidedBy, why: &str) {
        let Some(turn) = self.turns.get_mut(&key.0) else { return };
        if turn.resolve(request, Decision::Deny, by).is_some() {
            let text = Some(why.to_owned());
            let answer = Answer { decision: Decision::Deny, text };
            self.rule(key, request, &answer.ruling());
        }
    }

    pub(super) fn kill(&mut self, key: TurnKey) {
        let Some(turn) = self.turns.get_mut(&key.0) else { return };
        if matches!(turn.phase, Phase::Waiting { .. }) {
            return self.give_up(key, Reason::Cancelled);
        }
        if self.parts.is_shared {
            // The agent is told all the same, so that it stops working for nobody.
            self.give_up(key, Reason::Cancelled);
            self.abandon(key);
        } else {
            turn.reason.get_or_insert(Reason::Cancelled);
            self.leave_pool();
            self.parts.footing.end();
        }
    }

    /// Ends a turn that the agent does not end. Its session cannot be used any
    /// more, and neither can the process, once the others are done with it.
    pub(super) fn abandon(&mut self, key: TurnKey) {
        let Some(session) = self.turns.get(&key.0).map(|turn| turn.session) else { return };
        let queued = self.sessions.get_mut(&session).map(|entry| mem::take(&mut entry.queue));
        for waiting in queued.unwrap_or_default() {
            if let Some(turn) = self.turns.remove(&waiting.0) {
                not_begun(turn, "the agent did not end the turn before");
            }
        }
        self.finish(key, None);
        self.close(session);
        self.retire();
    }

    /// Ends a turn and hands it back.
    pub(super) fn finish(&mut self, key: TurnKey, end: Option<TurnEnd>) {
        let Some(mut turn) = self.turns.remove(&key.0) else { return };
        if !self.ready
            && let Phase::Waiting { opening, .. } = mem::replace(&mut turn.phase, Phase::Running)
        {
            // Its process was started for it, as that of a one-shot turn.
            for event in opening {
                turn.way.outbox.push(None, event);
            }
        }
        let by = if turn.reason.is_some() { DecidedBy::Cancel } else { DecidedBy::Agent };
        for request in turn.requests() {
            turn.resolve(&request, Decision::Deny, by);
        }
        let session = turn.session;
        let entry = self.sessions.get_mut(&session);
        let session_id = entry.as_ref().and_then(|entry| entry.id.clone());
        let exit = self.exit.clone();
        // A process that leaves in peace without a word has answered nothing.
        let is_silent = end.is_none() && turn.reason.is_none();
        let unreadable = || TurnEnd::failed(Failure::unreadable());
        let end = match &exit {
            Some(exit) if is_silent && exit.is_success() => Some(unreadable()),
            Some(_) | None => end,
        };
        let evidence = Evidence { end, exit, reason: turn.reason, stopped_after_end: false };
        let ended = Ended { outbox: turn.way.outbox, evidence, session_id };
        // A turn whose task is gone has nobody who could be told.
        turn.way.done.send(Done::Ended(Box::new(ended))).ok();
        if let Some(entry) = entry {
            entry.queue.retain(|queued| *queued != key);
            if entry.active == Some(key) {
                // One that the agent began meanwhile holds the session now.
                let runs = |turn: &LiveTurn| {
                    turn.session == session && !matches!(turn.phase, Phase::Waiting { .. })
                };
                let other = self.turns.iter().find(|(_, turn)| runs(turn));
                entry.active = other.map(|(key, _)| TurnKey(*key));
            }
            if entry.closing {
                self.close(session);
            }
        }
        self.begin_next(session);
        self.stop_if_idle();
    }

    pub(super) fn active_turn(&mut self, session: SessionKey) -> Option<&mut LiveTurn> {
        let key = self.sessions.get(&session)?.active?;
        self.turns.get_mut(&key.0)
    }
}
