//! Plays `gemini --acp`: the agent's side of the Agent Client Protocol, many
//! sessions, whose turns run side by side. A turn is a list of moves; whoever is
//! due makes the next one, and in between the client is heard.

mod message;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::message::{Refusal, Reply};
use self::turn::{Move, Turn};
use super::super::agent::{Agent, Props};
use super::super::answer::answer;
use super::super::given::Given;
use super::super::id::Ids;
use super::super::inbox::Heard;
use super::super::session::{Session, Sessions};
use super::super::stage::{Stage, Stream};
use super::super::{End, Error, os};
use super::DEFAULT_MODEL;

/// The mode in which nobody is asked.
const YOLO: &str = "yolo";

pub(super) struct Server<'a, 'b> {
    props: &'a Props,
    stage: &'a mut Stage<'b>,
    sessions: Sessions,
    ids: Ids,
    model: String,
    /// The mode of a new session.
    mode: String,
    /// Whether the rules that it was started with leave a command to the client.
    asks: bool,
    /// By the id that the client uses.
    open: BTreeMap<String, Open>,
    /// The requests that the agent made itself; their numbers begin with 0.
    n_asked: u64,
}

/// A session that takes prompts.
struct Open {
    session: Session,
    mode: String,
    turn: Option<Turn>,
}

impl<'a, 'b> Server<'a, 'b> {
    pub(super) fn new(
        given: &Given,
        props: &'a Props,
        stage: &'a mut Stage<'b>,
    ) -> Result<Self, Error> {
        // Without rules a command is asked for. The real CLI has a list of its
        // own of those that are harmless, and this one is on it.
        let asks = match given.value("--policy") {
            None => true,
            Some(path) => std::fs::read_to_string(path)
                .map_err(Error::file("read", path.as_ref()))?
                .contains("ask_user"),
        };
        Ok(Self {
            props,
            stage,
            sessions: Sessions::of(Agent::Gemini.name(), &props.home),
            ids: Ids::open()?,
            model: given.value("--model").unwrap_or(DEFAULT_MODEL).to_owned(),
            mode: given.value("--approval-mode").unwrap_or("default").to_owned(),
            asks,
            open: BTreeMap::new(),
            n_asked: 0,
        })
    }

    /// Serves until standard input has ended and every turn with it.
    pub(super) fn serve(&mut self) -> Result<End, Error> {
        loop {
            match self.stage.hear(self.due())? {
                Heard::Line(line) => self.hear(&line)?,
                Heard::Nothing => self.advance()?,
                Heard::End => match self.due() {
                    Some(pause) => {
                        os::wait(pause);
                        self.advance()?;
                    }
                    None => return Ok(End::Exit(0)),
                },
            }
        }
    }

    /// How long until somebody makes a move; nobody may have one to make.
    fn due(&self) -> Option<Duration> {
        let turns = self.open.values().filter_map(|open| open.turn.as_ref());
        let next = turns.filter_map(Turn::due).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn advance(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let is_due =
            |open: &Open| open.turn.as_ref().and_then(Turn::due).is_some_and(|due| due <= now);
        let due = self.open.iter().filter(|(_, open)| is_due(open));
        let due: Vec<String> = due.map(|(id, _)| id.clone()).collect();
        for id in due {
            self.advance_session(&id)?;
        }
        Ok(())
    }

    fn advance_session(&mut self, id: &str) -> Result<(), Error> {
        let asks = self.asks;
        let Some(open) = self.open.get_mut(id) else { return Ok(()) };
        let Some(turn) = &mut open.turn else { return Ok(()) };
        match turn.next() {
            Some(Move::Say(update)) => self.tell(id, update),
            Some(Move::Crash) => turn.faults.middle(),
            Some(Move::Ask(tool)) if !asks || open.mode == YOLO => {
                let begun = turn.begun(&tool, &open.session.cwd);
                turn.decide(true);
                self.tell(id, begun)
            }
            Some(Move::Ask(tool)) => {
                turn.asked = Some(self.n_asked);
                let params = turn.question(id, &tool, &open.session.cwd);
                let line = message::request(self.n_asked, "session/request_permission", params);
                self.n_asked += 1;
                self.print(&line)
            }
            None => self.complete(id, "end_turn"),
        }
    }

    /// Ends the turn of a session by answering its prompt.
    fn complete(&mut self, id: &str, reason: &str) -> Result<(), Error> {
        let Some(open) = self.open.get_mut(id) else { return Ok(()) };
        let Some(turn) = open.turn.take() else { return Ok(()) };
        let result = match reason {
            "end_turn" => message::ended(&open.session.model, turn.n_model_calls()),
            reason => json!({ "stopReason": reason }),
        };
        self.print(&message::reply(&turn.prompt_id, result))
    }

    fn hear(&mut self, line: &[u8]) -> Result<(), Error> {
        // Lines that are no messages are passed over, as by the real CLI.
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else { return Ok(()) };
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => {
                let reply = match self.request(id, method, &params)? {
                    Ok(reply) => reply,
                    Err(refusal) => return self.print(&message::refusal(id, &refusal)),
                };
                if let Some(result) = reply.result {
                    self.print(&message::reply(id, result))?;
                }
                reply.then.into_iter().try_for_each(|update| self.tell(&reply.session, update))
            }
            (None, Some(id)) => self.answered(id.as_u64(), &message),
            (Some("session/cancel"), None) => self.cancel(message::text(&params, "sessionId")),
            (_, None) => Ok(()),
        }
    }

    fn request(
        &mut self,
        request: &Value,
        method: &str,
        params: &Value,
    ) -> Result<Result<Reply, Refusal>, Error> {
        let id = message::text(params, "sessionId");
        Ok(match method {
            "initialize" => Ok(Reply::new(message::introduction())),
            "authenticate" => Ok(Reply::new(json!({}))),
            "session/new" => {
                let cwd = PathBuf::from(message::text(params, "cwd"));
                let session = Session::new(self.ids.uuid_v4()?, self.model.clone(), &cwd);
                let id = session.id.clone();
                let mut opened = self.open(&id, session);
                if let Value::Object(fields) = &mut opened {
                    fields.insert("sessionId".to_owned(), id.as_str().into());
                }
                Ok(Reply { result: Some(opened), session: id, then: vec![message::commands()] })
            }
            "session/load" => self.load(id, params)?,
            "session/prompt" => self.prompt(request, id, params)?,
            "session/set_mode" | "session/set_model" => match self.open.get_mut(id) {
                None => Err(Refusal::no_session(id)),
                Some(open) if method == "session/set_mode" => {
                    message::text(params, "modeId").clone_into(&mut open.mode);
                    // The real CLI says so in the model's place.
                    let text = format!("[MODE_UPDATE] {}", open.mode);
                    let then = vec![message::chunk("agent_message_chunk", &text)];
                    Ok(Reply { result: Some(json!({})), session: id.to_owned(), then })
                }
                Some(open) => {
                    message::text(params, "modelId").clone_into(&mut open.session.model);
                    Ok(Reply::new(json!({})))
                }
            },
            other => Err(Refusal::no_method(other)),
        })
    }

    /// Opens a session under the id that the client uses.
    fn open(&mut self, id: &str, session: Session) -> Value {
        let mode = self.mode.clone();
        let opened = message::opened(&session.model, &mode);
        self.open.insert(id.to_owned(), Open { session, mode, turn: None });
        opened
    }

    /// The history is told after the reply, except for its first piece.
    fn load(&mut self, id: &str, params: &Value) -> Result<Result<Reply, Refusal>, Error> {
        let cwd = PathBuf::from(message::text(params, "cwd"));
        let Some(session) = self.sessions.load(id.trim())?.filter(|found| found.cwd == cwd) else {
            return Ok(Err(Refusal::not_found(id)));
        };
        let context = "<session_context>\nThis is a scripted agent.\n</session_context>";
        self.tell(id, message::chunk("user_message_chunk", context))?;
        let mut then = Vec::new();
        for (n, prompt) in session.prompts.iter().enumerate() {
            let said = answer(Agent::Gemini.name(), prompt, n + 1).text;
            then.push(message::chunk("user_message_chunk", prompt));
            then.push(message::chunk("agent_message_chunk", &said));
        }
        then.push(message::commands());
        let opened = self.open(id, session);
        Ok(Ok(Reply { result: Some(opened), session: id.to_owned(), then }))
    }

    fn prompt(
        &mut self,
        request: &Value,
        id: &str,
        params: &Value,
    ) -> Result<Result<Reply, Refusal>, Error> {
        // A second prompt ends the first one.
        self.complete(id, "cancelled")?;
        let pace = self.props.pace;
        let Some(open) = self.open.get_mut(id) else { return Ok(Err(Refusal::no_session(id))) };
        let turn = Turn::new(request.clone(), pace, &mut open.session, &message::prompt(params));
        let faults = turn.faults.clone();
        open.turn = Some(turn);
        // A turn that is killed half-way leaves its prompt in the session.
        self.sessions.save(&open.session)?;
        faults.begin(self.stage)?;
        Ok(Ok(Reply { result: None, session: String::new(), then: Vec::new() }))
    }

    /// A turn that waits for an answer ends only with that.
    fn cancel(&mut self, id: &str) -> Result<(), Error> {
        let Some(turn) = self.open.get_mut(id).and_then(|open| open.turn.as_mut()) else {
            return Ok(());
        };
        turn.is_cancelled = true;
        if turn.asked.is_some() { Ok(()) } else { self.complete(id, "cancelled") }
    }

    /// Takes the answer to a request of the agent's own.
    fn answered(&mut self, request: Option<u64>, message: &Value) -> Result<(), Error> {
        let waits = |open: &Open| {
            request.is_some() && open.turn.as_ref().is_some_and(|turn| turn.asked == request)
        };
        let Some((id, open)) = self.open.iter_mut().find(|(_, open)| waits(open)) else {
            return Ok(());
        };
        let id = id.clone();
        let Some(turn) = &mut open.turn else { return Ok(()) };
        turn.asked = None;
        if turn.is_cancelled {
            return self.complete(&id, "cancelled");
        }
        let option = message.pointer("/result/outcome/optionId").and_then(Value::as_str);
        turn.decide(option.is_some_and(|it| it.starts_with("proceed")));
        Ok(())
    }

    fn tell(&mut self, id: &str, update: Value) -> Result<(), Error> {
        self.print(&message::update(id, update))
    }

    fn print(&mut self, line: &Value) -> Result<(), Error> {
        self.stage.write_line(Stream::Stdout, &line.to_string())
    }
}
