//! The conversation: what is heard and what happens, in one loop.
//!
//! At most one prompt runs at a time; each goes on with the session that the
//! one before left behind. What waits and why is decided in `queue`.

use ostler_core::{
    cli_agent::CliAgent,
    event::{Event, EventBody, Mode, Status, TurnReport},
    permission::{Answer, Decision},
    registry::Agent as _,
    request::{Open, TurnRequest},
    turn::{SayError, Turn},
};
use tokio::sync::mpsc;

use super::{
    aside::Aside,
    input::Taken,
    message::{self, Message},
    queue::{Placed, Queue},
    requests::Requests,
    speaker::{Otherwise, Outcome, Saying, Speaker, What},
    turns::Turns,
};
use crate::cli::{Exit, render::Renderer, run, signals::Wish};

/// How the other side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// In JSON objects, one a line.
    Messages,
    /// In prompts, one a line, with nobody to answer anything.
    Lines,
}

/// A conversation, and where it stands.
pub(crate) struct Talk<'a> {
    agent: CliAgent,
    /// What the next turn is made from.
    request: TurnRequest,
    speech: Speech,
    renderer: Renderer<'a>,
    queue: Queue,
    turns: Turns,
    requests: Requests,
    speaker: Speaker,
    /// How much is being said to turns.
    n_sayings: usize,
    /// Nothing more will be heard.
    deaf: bool,
    /// Why the conversation ends before all was done.
    broken_off: Option<Exit>,
}

/// What a conversation listens to.
pub(crate) struct Ears {
    pub(crate) lines: mpsc::Receiver<Taken>,
    pub(crate) wishes: mpsc::Receiver<Wish>,
    pub(crate) unasked: mpsc::Receiver<Turn>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(
        agent: CliAgent,
        request: TurnRequest,
        speech: Speech,
        queue: Queue,
        renderer: Renderer<'a>,
    ) -> Self {
        Self {
            agent,
            request,
            speech,
            renderer,
            queue,
            turns: Turns::default(),
            requests: Requests::default(),
            speaker: Speaker::start(),
            n_sayings: 0,
            deaf: false,
            broken_off: None,
        }
    }

    /// Holds the conversation until nothing more is heard and all was done.
    pub(crate) async fn hold(mut self, first: Option<String>, mut ears: Ears) -> Exit {
        if let Some(prompt) = first {
            self.prompt(prompt);
        }
        loop {
            self.begin_next().await;
            if self.deaf && self.turns.is_empty() && self.n_sayings == 0 {
                return self.broken_off.unwrap_or(Exit::Answered);
            }
            let may_listen = !self.deaf && (self.speech != Speech::Lines || !self.is_busy());
            tokio::select! {
                Some(wish) = ears.wishes.recv() => self.wish(wish),
                Some(turn) = ears.unasked.recv() => self.turns.add(turn),
                Some(outcome) = self.speaker.next() => self.said(outcome),
                event = self.turns.next() => self.event(event),
                line = ears.lines.recv(), if may_listen => self.line(line),
            }
        }
    }

    fn is_busy(&self) -> bool {
        !self.turns.is_empty() || !self.queue.is_empty()
    }

    /// Starts the next prompt once nothing runs.
    async fn begin_next(&mut self) {
        while self.turns.is_empty() {
            let Some(prompt) = self.queue.pop() else { return };
            let request = TurnRequest { prompt, ..self.request.clone() };
            match self.agent.start(request).await {
                Ok(turn) => self.turns.add(turn),
                Err(error) => {
                    run::refuse(&self.agent, &error, &mut self.renderer);
                }
            }
        }
    }

    fn line(&mut self, line: Option<Taken>) {
        let Some(line) = line else { return self.go_deaf() };
        let line = match line {
            Ok(line) => line,
            Err(error) => return self.aside(&Aside::wrong(error)),
        };
        match self.speech {
            Speech::Messages => match message::parse(&line) {
                Ok(message) => self.message(message),
                Err(error) => self.aside(&Aside::wrong(error)),
            },
            Speech::Lines if line.trim().is_empty() => {}
            Speech::Lines => self.prompt(line),
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Prompt(text) => self.prompt(text),
            Message::Cancel => self.turns.cancel(),
            Message::Steer(text) => self.steer(text, Otherwise::Refuse),
            Message::Answer { request, answer } => self.answer(request, answer),
        }
    }

    fn prompt(&mut self, text: String) {
        match self.queue.place(text, self.is_busy()) {
            Ok(Placed::Next) => {}
            Ok(Placed::Waits(position)) => self.waits(position, "a turn is running"),
            Ok(Placed::Interrupts(position)) => {
                self.turns.cancel();
                self.waits(position, "the running turn is being cancelled");
            }
            Ok(Placed::Steers(text)) => self.steer(text, Otherwise::Queue),
            Err(full) => self.aside(&Aside::too_much(full)),
        }
    }

    fn waits(&mut self, position: usize, why: &str) {
        let text = format!("{why}; this prompt waits as number {position}");
        self.aside(&Aside::Queued { text, position });
    }

    fn steer(&mut self, text: String, otherwise: Otherwise) {
        let Some(to) = self.turns.newest() else {
            return self.not_steered(text, otherwise, "nothing runs that could be steered");
        };
        self.say(Saying { to, what: What::Steer { text, otherwise } });
    }

    fn not_steered(&mut self, text: String, otherwise: Otherwise, why: &str) {
        if otherwise == Otherwise::Refuse {
            return self.aside(&Aside::wrong(why));
        }
        match self.queue.push(text) {
            Ok(position) if self.is_idle_for(position) => {}
            Ok(position) => self.waits(position, why),
            Err(full) => self.aside(&Aside::too_much(full)),
        }
    }

    /// Returns whether the prompt with this number begins right away.
    fn is_idle_for(&self, position: usize) -> bool {
        self.turns.is_empty() && position == 1
    }

    fn answer(&mut self, request: String, answer: Answer) {
        let Some(to) = self.requests.turn_of(&request).and_then(|turn| self.turns.control(turn))
        else {
            let message = format!("answer: no permission request {request:?} is open");
            return self.aside(&Aside::wrong(message));
        };
        self.say(Saying { to, what: What::Answer { request, answer } });
    }

    fn say(&mut self, saying: Saying) {
        match self.speaker.say(saying) {
            Ok(()) => self.n_sayings += 1,
            Err(_) => {
                self.aside(&Aside::too_much(
                    "the turn has not taken what was said before; say it again",
                ));
            }
        }
    }

    /// Something was said to a turn, which took it or not.
    fn said(&mut self, outcome: Outcome) {
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
                    SayError::NotSteerable => "the agent cannot be steered",
                    SayError::Over | SayError::NotAsked => {
                        "the turn does not take anything any more"
                    }
                };
                self.not_steered(text, otherwise, why);
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most events are only shown")]
    fn event(&mut self, event: Option<Event>) {
        let Some(event) = event else { return };
        if self.renderer.event(&event).is_err() {
            self.break_off(Exit::Failed);
        }
        match event.body {
            EventBody::Permission(permission) => {
                self.requests.opened(permission, event.turn);
                self.deny_if_deaf();
            }
            EventBody::Status(Status::PermissionResolved { request, .. }) => {
                self.requests.resolved(&request, &event.turn);
            }
            EventBody::Complete(report) => {
                self.requests.ended(&event.turn);
                self.go_on(*report);
            }
            _ => {}
        }
    }

    /// Makes the next turn go on where this one ended.
    fn go_on(&mut self, report: TurnReport) {
        if let Some(memo) = report.memo {
            self.request.open = Open::Resume(Box::new(memo));
        }
        // An agent that cannot be kept running says so once, not in every turn.
        if report.mode == Mode::OneShot {
            self.request.mode = Mode::OneShot;
        }
    }

    /// Nothing more will be heard, not even an answer.
    fn go_deaf(&mut self) {
        self.deaf = true;
        self.deny_if_deaf();
    }

    fn deny_if_deaf(&mut self) {
        if !self.deaf {
            return;
        }
        for (request, turn) in self.requests.take_all() {
            if let Some(to) = self.turns.control(&turn) {
                let text = Some("nobody is left to answer".to_owned());
                let answer = Answer { decision: Decision::Deny, text };
                self.say(Saying { to, what: What::Answer { request, answer } });
            }
        }
    }

    fn wish(&mut self, _wish: Wish) {
        if self.broken_off.is_some() {
            return self.turns.kill();
        }
        self.break_off(Exit::Cancelled);
    }

    /// Ends what runs, forgets what waits.
    fn break_off(&mut self, exit: Exit) {
        self.broken_off.get_or_insert(exit);
        self.deaf = true;
        self.queue.clear();
        self.turns.cancel();
    }

    fn aside(&mut self, aside: &Aside) {
        if self.renderer.aside(aside).is_err() {
            self.break_off(Exit::Failed);
        }
    }
}
