//! One turn of a session: what is left to say of it.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::super::agent::Agent;
use super::super::super::answer::{Answer, Tool, pieces};
use super::super::super::clock;
use super::super::super::fault::Faults;
use super::super::super::session::Session;
use super::super::lines::SHELL;
use super::message;

/// What is done next.
#[derive(Debug)]
pub(super) enum Move {
    Say(Value),
    /// Asks whether the command may run, unless nobody is asked.
    Ask(Tool),
    Crash,
}

#[derive(Debug)]
pub(super) struct Turn {
    /// The id of the request that the end of the turn answers.
    pub(super) prompt_id: Value,
    pub(super) faults: Faults,
    /// The request that waits for its answer.
    pub(super) asked: Option<u64>,
    pub(super) is_cancelled: bool,
    answer: Answer,
    call_id: String,
    pace: Duration,
    moves: VecDeque<(Duration, Move)>,
    due: Instant,
}

impl Turn {
    pub(super) fn new(
        prompt_id: Value,
        pace: Duration,
        session: &mut Session,
        prompt: &str,
    ) -> Self {
        let answer = session.ask(Agent::Gemini.name(), prompt);
        let mut turn = Self {
            prompt_id,
            faults: answer.faults.clone(),
            asked: None,
            is_cancelled: false,
            due: Instant::now() + answer.faults.delay,
            call_id: format!("{SHELL}__{SHELL}_{}_0", clock::now_ms()),
            pace,
            moves: VecDeque::new(),
            answer,
        };
        match turn.answer.tool {
            Some(tool) => turn.moves.push_back((pace, Move::Ask(tool))),
            None => turn.plan_text(&turn.answer.text.clone()),
        }
        turn
    }

    pub(super) fn n_model_calls(&self) -> u64 {
        self.answer.n_model_calls()
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

    /// Goes on after it was decided whether the command may run. One that may
    /// not is not told of again.
    pub(super) fn decide(&mut self, may_run: bool) {
        let Some(tool) = self.answer.tool else { return };
        if may_run {
            let mut update = self.call(&tool, "completed", json!([]));
            name(&mut update, "tool_call_update");
            self.moves.push_back((self.pace, Move::Say(update)));
        }
        let text = if may_run { self.answer.text.clone() } else { self.answer.denied_text() };
        self.plan_text(&text);
    }

    /// What is told of a command that needs nobody's word.
    pub(super) fn begun(&self, tool: &Tool, cwd: &Path) -> Value {
        let mut update = self.call(tool, "in_progress", about(tool, cwd));
        name(&mut update, "tool_call");
        update
    }

    /// What the client is asked.
    pub(super) fn question(&self, session: &str, tool: &Tool, cwd: &Path) -> Value {
        let options = [
            ("proceed_always", "Allow for this session", "allow_always"),
            ("proceed_once", "Allow", "allow_once"),
            ("cancel", "Reject", "reject_once"),
        ];
        let options =
            options.map(|(id, name, kind)| json!({ "optionId": id, "name": name, "kind": kind }));
        let call = self.call(tool, "pending", about(tool, cwd));
        json!({ "sessionId": session, "options": options, "toolCall": call })
    }

    fn call(&self, tool: &Tool, status: &str, content: Value) -> Value {
        json!({
            "toolCallId": self.call_id, "status": status, "title": tool.command,
            "content": content, "locations": [], "kind": "execute",
        })
    }

    fn plan_text(&mut self, text: &str) {
        for (n, piece) in pieces(text).into_iter().enumerate() {
            let pace = self.answer.faults.pace(n, self.pace);
            let update = message::chunk("agent_message_chunk", piece);
            self.moves.push_back((pace, Move::Say(update)));
            self.moves.push_back((Duration::ZERO, Move::Crash));
        }
    }
}

fn name(update: &mut Value, kind: &str) {
    if let Value::Object(fields) = update {
        fields.insert("sessionUpdate".to_owned(), kind.into());
    }
}

/// The output of a command is not told, only where it runs and what for.
fn about(tool: &Tool, cwd: &Path) -> Value {
    let text = format!("[current working directory {}] ({})", cwd.display(), tool.description);
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}
