//! The conversation: what is heard and what happens, in one loop.
//!
//! At most one prompt runs at a time; each goes on with the session that the
//! one before left behind. What waits and why is decided in `queue`; what a
//! person's line means, in `person`; what is said to turns, in `saying`.

use std::path::{Path, PathBuf};

use ostler_core::{
    cli_agent::CliAgent,
    event::{Event, EventBody, Mode, Status, TurnId, TurnReport},
    registry::Agent as _,
    request::{Open, TurnRequest},
    turn::Turn,
};
use tokio::sync::mpsc;

use super::{
    aside::Aside,
    message::{self, Message},
    queue::{Placed, Queue},
    setup::{Begun, Setup},
    source::{Attention, Heard, Source},
    speaker::{Otherwise, Outcome, Speaker},
    turns::Turns,
};
use crate::cli::{Exit, render::Renderer, requests::Requests, run, signals::Wish};

/// How the other side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// In JSON objects, one a line.
    Messages,
    /// In prompts, one a line, with nobody to answer anything.
    Lines,
    /// As people do, at a terminal.
    Person,
}

/// A conversation, and where it stands.
pub(crate) struct Talk<'a> {
    pub(super) setup: Setup,
    pub(super) agent: CliAgent,
    /// What the next turn is made from.
    pub(super) request: TurnRequest,
    /// The turn of the last prompt.
    prompted: Option<TurnId>,
    pub(super) renderer: Renderer<'a>,
    pub(super) queue: Queue,
    pub(super) turns: Turns,
    n_turns: u32,
    pub(super) requests: Requests,
    pub(super) speaker: Speaker,
    /// How much is being said to turns.
    pub(super) n_sayings: usize,
    /// Nothing more will be heard.
    pub(super) deaf: bool,
    /// What runs is being cancelled.
    stopping: bool,
    /// Why the conversation ends before all was done.
    broken_off: Option<Exit>,
}

/// What a conversation listens to.
pub(crate) struct Ears {
    pub(crate) source: Source,
    pub(crate) wishes: mpsc::Receiver<Wish>,
    pub(crate) unasked: mpsc::Receiver<Turn>,
}

enum Happening {
    Heard(Heard),
    Wish(Wish),
    Event(Option<Event>),
    Unasked(Turn),
    Said(Outcome),
}

impl Ears {
    /// Waits for whatever comes first. Cancel-safe, as all that it waits for is.
    async fn next(&mut self, talk: &mut Talk<'_>) -> Happening {
        let attention = if talk.is_busy() { Attention::Busy } else { Attention::Idle };
        // Whoever has only prompts to say is heard again when one is done.
        let waits = talk.setup.speech == Speech::Lines && attention == Attention::Busy;
        tokio::select! {
            Some(wish) = self.wishes.recv() => Happening::Wish(wish),
            Some(turn) = self.unasked.recv() => Happening::Unasked(turn),
            Some(outcome) = talk.speaker.next() => Happening::Said(outcome),
            event = talk.turns.next() => Happening::Event(event),
            heard = self.source.next(attention), if !talk.deaf && !waits => Happening::Heard(heard),
        }
    }
}

impl<'a> Talk<'a> {
    pub(crate) fn new(setup: Setup, begun: Begun, queue: Queue, renderer: Renderer<'a>) -> Self {
        Self {
            setup,
            agent: begun.agent,
            request: begun.request,
            prompted: None,
            renderer,
            queue,
            turns: Turns::default(),
            n_turns: 0,
            requests: Requests::default(),
            speaker: Speaker::start(),
            n_sayings: 0,
            deaf: false,
            stopping: false,
            broken_off: None,
        }
    }

    /// Holds the conversation until nothing more is heard and all was done.
    pub(crate) async fn hold(mut self, first: Option<String>, mut ears: Ears) -> Exit {
        let is_person = self.setup.speech == Speech::Person;
        if is_person {
            self.greet();
        }
        if let Some(prompt) = first {
            self.prompt(prompt);
        }
        loop {
            self.begin_next().await;
            if self.deaf && self.turns.is_empty() && self.n_sayings == 0 {
                break;
            }
            let happening = ears.next(&mut self).await;
            if self.renderer.ui().set_editing(ears.source.is_editing()).is_err() {
                self.break_off(Exit::Failed);
            }
            self.happened(happening);
            if is_person {
                self.ask();
            }
        }
        if is_person {
            self.part();
        }
        self.broken_off.unwrap_or(Exit::Answered)
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.turns.is_empty() || !self.queue.is_empty()
    }

    /// Starts the next prompt once nothing runs.
    async fn begin_next(&mut self) {
        while self.turns.is_empty() {
            let Some(prompt) = self.queue.pop() else { return };
            self.n_turns = self.n_turns.saturating_add(1);
            let transcript = self.request.transcript.as_deref();
            let transcript = transcript.map(|path| numbered(path, self.n_turns));
            let request = TurnRequest { prompt, transcript, ..self.request.clone() };
            match self.agent.start(request).await {
                Ok(turn) => {
                    self.prompted = Some(turn.id().clone());
                    self.turns.add(turn);
                }
                Err(error) => {
                    let (_, failure) = run::refusal(&error);
                    self.renderer.not_started(&self.agent.spec().name, &failure);
                }
            }
        }
    }

    fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Heard(Heard::Line(line)) => self.line(line),
            Happening::Heard(Heard::Wrong(error)) => self.aside(&Aside::wrong(error)),
            Happening::Heard(Heard::Interrupt { at_an_empty_line }) => {
                if !self.turns.is_empty() || at_an_empty_line {
                    self.interrupt();
                }
            }
            Happening::Heard(Heard::End) => self.go_deaf(),
            Happening::Wish(Wish::Interrupt) if self.setup.speech == Speech::Person => {
                self.renderer.ui().interrupted();
                self.interrupt();
            }
            Happening::Wish(_) if self.broken_off.is_some() => self.turns.kill(),
            Happening::Wish(_) => self.break_off(Exit::Cancelled),
            Happening::Event(Some(event)) => self.event(event),
            Happening::Event(None) => {}
            Happening::Unasked(turn) => self.turns.add(turn),
            Happening::Said(outcome) => self.said(outcome),
        }
    }

    fn line(&mut self, line: String) {
        match self.setup.speech {
            Speech::Person => self.typed(&line),
            Speech::Lines if line.trim().is_empty() => {}
            Speech::Lines => self.prompt(line),
            Speech::Messages => match message::parse(&line) {
                Ok(Message::Prompt(text)) => self.prompt(text),
                Ok(Message::Cancel) => self.turns.cancel(),
                Ok(Message::Steer(text)) => self.steer(text, Otherwise::Refuse),
                Ok(Message::Answer { request, answer }) => self.answer(request, answer),
                Err(error) => self.aside(&Aside::wrong(error)),
            },
        }
    }

    pub(super) fn prompt(&mut self, text: String) {
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

    pub(super) fn waits(&mut self, position: usize, why: &str) {
        let text = format!("{why}; this prompt waits as number {position}");
        self.aside(&Aside::Queued { text, position });
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most events are only shown")]
    fn event(&mut self, event: Event) {
        if self.renderer.event(&event).is_err() {
            self.break_off(Exit::Failed);
        }
        match event.body {
            EventBody::Permission(permission) => {
                self.requests.opened(permission, event.turn);
                self.deny_unanswerable();
            }
            EventBody::Status(Status::PermissionResolved { request, .. }) => {
                self.requests.resolved(&request, &event.turn);
            }
            EventBody::Complete(report) => {
                self.requests.ended(&event.turn);
                self.stopping = false;
                // One that the agent began by itself may be of a session that
                // was left meanwhile.
                if self.prompted.as_ref() == Some(&event.turn) {
                    self.go_on(*report);
                }
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
        self.deny_unanswerable();
    }

    /// Ctrl-C: ends what runs, at once the second time; ends the conversation
    /// if nothing does.
    fn interrupt(&mut self) {
        if self.turns.is_empty() {
            self.deaf = true;
        } else if self.stopping {
            self.turns.kill();
        } else {
            self.stop();
        }
    }

    /// Ends what runs and forgets what waits.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        self.turns.cancel();
        match self.queue.clear() {
            0 => {}
            1 => self.notice("  … the prompt that waited is forgotten"),
            n_waiting => self.notice(&format!("  … {n_waiting} prompts that waited are forgotten")),
        }
    }

    /// Ends what runs, and then the conversation.
    fn break_off(&mut self, exit: Exit) {
        self.broken_off.get_or_insert(exit);
        self.deaf = true;
        self.queue.clear();
        self.turns.cancel();
    }

    pub(super) fn notice(&mut self, text: &str) {
        self.renderer.notice(text);
    }

    pub(super) fn aside(&mut self, aside: &Aside) {
        if self.renderer.aside(aside).is_err() {
            self.break_off(Exit::Failed);
        }
    }
}

/// Returns the file for the raw lines of the turn with this number, from 1.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if number > 1 {
        name.push(format!(".{number}"));
    }
    name.into()
}
