//! What is said to running turns: answers and further texts, and what becomes
//! of those that are not taken.

use ostler_core::{
    permission::{Answer, Decision},
    turn::SayError,
};

use super::{
    aside::Aside,
    speaker::{Otherwise, Outcome, Saying, What},
    talk::{Speech, Talk},
};

impl Talk<'_> {
    pub(super) fn steer(&mut self, text: String, otherwise: Otherwise) {
        match self.turns.newest() {
            Some(to) => self.say(Saying { to, what: What::Steer { text, otherwise } }),
            None => self.not_steered(text, otherwise, "nothing runs that could be steered"),
        }
    }

    fn not_steered(&mut self, text: String, otherwise: Otherwise, why: &str) {
        if otherwise == Otherwise::Refuse {
            return self.aside(&Aside::wrong(format!("{why}; send a prompt instead")));
        }
        match self.queue.push(text) {
            // Meanwhile the turn has ended, and this is the next prompt.
            Ok(1) if self.turns.is_empty() => {}
            Ok(position) => self.waits(position, why),
            Err(full) => self.aside(&Aside::too_much(full)),
        }
    }

    pub(super) fn answer(&mut self, request: String, answer: Answer) {
        let Some(to) = self.requests.turn_of(&request).and_then(|turn| self.turns.control(turn))
        else {
            let message = format!("answer: no permission request {request:?} is open");
            return self.aside(&Aside::wrong(message));
        };
        self.say(Saying { to, what: What::Answer { request, answer } });
    }

    fn say(&mut self, saying: Saying) {
        match self.speaker.say(saying) {
            Ok(()) => self.n_sayings = self.n_sayings.saturating_add(1),
            Err(_) => {
                let message = "the turn has not taken what was said before; say it again later";
                self.aside(&Aside::too_much(message));
            }
        }
    }

    /// Something was said to a turn, which took it or not.
    pub(super) fn said(&mut self, outcome: Outcome) {
        self.n_sayings = self.n_sayings.saturating_sub(1);
        let Err(error) = outcome.taken else { return };
        match outcome.what {
            // It was decided while the answer was on its way.
            What::Answer { request, .. } => {
                let message = format!("answer: permission request {request:?} is no longer open");
                self.aside(&Aside::wrong(message));
            }
            What::Steer { text, otherwise } => {
                let why = match error {
                    SayError::NotSteerable => "this agent cannot be steered",
                    SayError::Over | SayError::NotAsked => "the running turn cannot be steered",
                };
                self.not_steered(text, otherwise, why);
            }
        }
    }

    /// Denies what nobody can answer, instead of letting the agent wait.
    pub(super) fn deny_unanswerable(&mut self) {
        if !self.deaf && self.setup.speech != Speech::Lines {
            return;
        }
        for (request, turn) in self.requests.take_all() {
            if let Some(to) = self.turns.control(&turn) {
                let text = Some("nobody is there to answer".to_owned());
                let answer = Answer { decision: Decision::Deny, text };
                self.say(Saying { to, what: What::Answer { request, answer } });
            }
        }
    }
}
