//! One turn of a thread: what is left to say of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::super::agent::Agent;
use super::super::super::answer::{Answer, pieces};
use super::super::super::fault::Faults;
use super::super::super::session::Session;
use super::message::{self, Command};

/// What is done next.
#[derive(Debug)]
pub(super) enum Move {
    Say(Value),
    /// Asks whether the command may run, with what is told about it.
    Ask(Value),
    /// A call of the pretended model is over, and counts.
    Count,
    Crash,
}

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) faults: Faults,
    /// The request that waits for its answer.
    pub(super) asked: Option<u64>,
    thread: String,
    answer: Answer,
    pace: Duration,
    began: Instant,
    moves: VecDeque<(Duration, Move)>,
    due: Instant,
    n_items: u32,
    /// What was said last.
    said: Value,
    steering: VecDeque<String>,
    is_told: bool,
}

impl Turn {
    pub(super) fn new(id: String, pace: Duration, session: &mut Session, prompt: &str) -> Self {
        let answer = session.ask(Agent::Codex.name(), prompt);
        // What it used is counted call by call here.
        session.n_model_calls -= answer.n_model_calls();
        let now = Instant::now();
        let mut turn = Self {
            id,
            faults: answer.faults.clone(),
            asked: None,
            thread: session.id.clone(),
            answer,
            pace,
            began: now,
            moves: VecDeque::new(),
            due: now,
            n_items: 0,
            said: json!([]),
            steering: VecDeque::new(),
            is_told: false,
        };
        turn.plan(prompt, session);
        turn
    }

    /// When the next move is to be made; never while an answer is awaited.
    pub(super) fn due(&self) -> Option<Instant> {
        self.asked.is_none().then_some(self.due)
    }

    pub(super) fn next(&mut self) -> Option<Move> {
        let (_, next) = self.moves.pop_front()?;
        let pause = self.moves.front().map_or(Duration::ZERO, |(pause, _)| *pause);
        self.due = Instant::now() + pause;
        Some(next)
    }

    /// Whether its beginning was told; it is from now on.
    pub(super) fn is_told(&mut self) -> bool {
        std::mem::replace(&mut self.is_told, true)
    }

    pub(super) fn steer(&mut self, prompt: String) {
        self.steering.push_back(prompt);
    }

    /// Takes up what came in since; returns whether there was anything.
    pub(super) fn go_on(&mut self, session: &mut Session) -> bool {
        let Some(prompt) = self.steering.pop_front() else { return false };
        self.answer = session.ask(Agent::Codex.name(), &prompt);
        session.n_model_calls -= self.answer.n_model_calls();
        self.plan(&prompt, session);
        true
    }

    /// Goes on after somebody decided whether the command may run.
    pub(super) fn decide(&mut self, may_run: bool, session: &Session) {
        let Some(tool) = self.answer.tool else { return };
        let command = Command { id: self.item_id("call"), tool, cwd: session.cwd.clone() };
        let text = if may_run {
            let delta = json!({ "itemId": command.id, "delta": format!("{}\n", tool.output) });
            self.tell("item/commandExecution/outputDelta", delta);
            self.tell("item/completed", json!({ "item": command.completed() }));
            self.answer.text.clone()
        } else {
            self.tell("item/completed", json!({ "item": command.declined() }));
            self.answer.denied_text()
        };
        self.plan_text(text);
    }

    fn plan(&mut self, prompt: &str, session: &Session) {
        self.due = Instant::now() + self.answer.faults.delay;
        let asked = message::user_message(&self.item_id("user"), prompt);
        self.tell("item/started", json!({ "item": asked }));
        self.tell("item/completed", json!({ "item": asked }));
        let Some(tool) = self.answer.tool else {
            return self.plan_text(self.answer.text.clone());
        };
        let command = Command { id: self.item_id("call"), tool, cwd: session.cwd.clone() };
        self.count_call();
        self.tell("item/started", json!({ "item": command.started() }));
        self.moves.push_back((self.pace, Move::Ask(command.question())));
    }

    fn plan_text(&mut self, text: String) {
        let id = self.item_id("msg");
        self.n_items += 1;
        self.tell("item/started", json!({ "item": message::agent_message(&id, "") }));
        for (n, piece) in pieces(&text).into_iter().enumerate() {
            let pace = self.answer.faults.pace(n, self.pace);
            let params = json!({ "itemId": id, "delta": piece });
            self.tell_after(pace, "item/agentMessage/delta", params);
            self.moves.push_back((Duration::ZERO, Move::Crash));
        }
        let message = message::agent_message(&id, &text);
        self.tell("item/completed", json!({ "item": message }));
        self.count_call();
        self.said = json!([message]);
    }

    fn count_call(&mut self) {
        self.moves.push_back((Duration::ZERO, Move::Count));
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.tell_after(Duration::ZERO, method, params);
    }

    fn tell_after(&mut self, pause: Duration, method: &str, mut params: Value) {
        message::name(&mut params, &self.thread, &self.id);
        self.moves.push_back((pause, Move::Say(message::notification(method, params))));
    }

    fn item_id(&self, kind: &str) -> String {
        format!("{kind}_{:04}", self.n_items)
    }

    /// What is told of it at its beginning.
    pub(super) fn begun(&self) -> Value {
        message::turn(&self.id, "inProgress", &json!([]), None)
    }

    /// What is told of it at its end.
    pub(super) fn ended(&self, status: &str) -> Value {
        let took = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let items = match status {
            "completed" => self.said.clone(),
            _ => json!([]),
        };
        message::turn(&self.id, status, &items, Some(took))
    }
}
