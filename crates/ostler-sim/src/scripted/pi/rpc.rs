//! Plays `pi --mode rpc`: commands and their answers, also in the middle of a turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::id::Ids;
use super::super::inbox::Heard;
use super::super::session::{Session, Sessions};
use super::super::{End, Error};
use super::lines;
use super::voice::{Flow, Voice};

/// What came in while a turn ran.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    steering: VecDeque<String>,
    /// The commands that asked for the end of the turn.
    aborts: Vec<Value>,
    /// Whether there will be no more commands.
    has_ended: bool,
    /// What is told about the session.
    state: Value,
}

impl Waiting {
    pub(super) fn take_steering(&mut self) -> Option<String> {
        self.steering.pop_front()
    }

    /// Whether there will be no more commands.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// What is told when the queue has changed.
    pub(super) fn queue(&self) -> Value {
        json!({ "type": "queue_update", "steering": self.steering, "followUp": [] })
    }
}

/// How busy the agent is when a command comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Busy {
    Idle,
    Working,
}

impl Voice<'_, '_> {
    /// Carries commands out until standard input ends.
    pub(super) fn serve(&mut self, mut session: Session) -> Result<End, Error> {
        loop {
            let line = match self.stage.hear(None)? {
                Heard::Line(line) => line,
                Heard::Nothing => continue,
                Heard::End => return Ok(End::Exit(0)),
            };
            let Some(command) = self.parse(&line)? else { continue };
            self.waiting.state = self.state(&session);
            match text(&command, "type") {
                "prompt" => {
                    self.succeed(&command, Value::Null)?;
                    let prompt = text(&command, "message").to_owned();
                    self.turn(&mut session, &prompt)?;
                    for abort in std::mem::take(&mut self.waiting.aborts) {
                        self.succeed(&abort, Value::Null)?;
                    }
                    if self.waiting.has_ended {
                        return Ok(End::Exit(0));
                    }
                }
                "new_session" => {
                    let id = self.ids.uuid_v7()?;
                    session = Session::new(id, session.model, &self.props.cwd);
                    self.succeed(&command, json!({ "cancelled": false }))?;
                }
                "switch_session" => {
                    session = self.switched(&command, &session)?;
                    self.succeed(&command, json!({ "cancelled": false }))?;
                }
                "set_model" => {
                    text(&command, "modelId").clone_into(&mut session.model);
                    self.succeed(&command, json!({ "id": session.model }))?;
                }
                _ => self.carry_out(&command, Busy::Idle)?,
            }
        }
    }

    /// Lets time pass and carries out what comes meanwhile.
    pub(super) fn listen(&mut self, pause: Duration) -> Result<Flow, Error> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.stage.hear(Some(left))? {
                Heard::Line(line) => {
                    if let Some(command) = self.parse(&line)? {
                        self.carry_out(&command, Busy::Working)?;
                    }
                }
                Heard::End => self.waiting.has_ended = true,
                Heard::Nothing => return Ok(Flow::On),
            }
            if self.waiting.has_ended || !self.waiting.aborts.is_empty() {
                return Ok(Flow::Cut);
            }
        }
    }

    fn carry_out(&mut self, command: &Value, busy: Busy) -> Result<(), Error> {
        match (text(command, "type"), busy) {
            ("get_state", _) => {
                let mut state = self.waiting.state.clone();
                if let Value::Object(fields) = &mut state {
                    fields.insert("isStreaming".to_owned(), (busy == Busy::Working).into());
                }
                self.succeed(command, state)
            }
            ("abort", Busy::Working) => {
                self.waiting.aborts.push(command.clone());
                Ok(())
            }
            ("abort", Busy::Idle) => self.succeed(command, Value::Null),
            ("steer" | "follow_up", _) => {
                self.waiting.steering.push_back(text(command, "message").to_owned());
                self.say(&self.waiting.queue())?;
                self.succeed(command, Value::Null)
            }
            ("clear_queue", _) => {
                let cleared = std::mem::take(&mut self.waiting.steering);
                self.say(&self.waiting.queue())?;
                self.succeed(command, json!({ "steering": cleared, "followUp": [] }))
            }
            ("extension_ui_response", _) => Ok(()),
            ("prompt", _) => {
                let error = "Agent is already processing. Specify streamingBehavior ('steer' or \
                             'followUp') to queue the message.";
                self.fail(command, error)
            }
            (other, _) => self.fail(command, &format!("Unknown command: {other}")),
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Value>, Error> {
        match serde_json::from_slice(line) {
            Ok(command) => Ok(Some(command)),
            Err(error) => {
                let error = format!("Failed to parse command: {error}");
                let line = json!({
                    "type": "response", "command": "parse", "success": false, "error": error,
                });
                self.say(&line)?;
                Ok(None)
            }
        }
    }

    /// The session in a file, or a new one where there is none.
    fn switched(&mut self, command: &Value, session: &Session) -> Result<Session, Error> {
        let path = std::path::Path::new(text(command, "sessionPath"));
        let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let found = match &self.sessions {
            Some(sessions) if sessions.path(id) == path => sessions.load(id)?,
            Some(_) | None => None,
        };
        let model = session.model.clone();
        Ok(match found {
            Some(found) => Session { model, ..found },
            None => Session::new(Ids::open()?.uuid_v7()?, model, &self.props.cwd),
        })
    }

    fn state(&self, session: &Session) -> Value {
        let file = self.sessions.as_ref().map(|sessions: &Sessions| sessions.path(&session.id));
        json!({
            "model": { "id": session.model, "provider": self.provider },
            "thinkingLevel": "medium", "isStreaming": false, "isCompacting": false,
            "steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time",
            "sessionFile": file, "sessionId": session.id, "autoCompactionEnabled": true,
            "messageCount": session.prompts.len() * 2,
            "pendingMessageCount": self.waiting.steering.len(),
        })
    }

    fn succeed(&mut self, command: &Value, data: Value) -> Result<(), Error> {
        let mut line = lines::response(command, true);
        if let (Value::Object(fields), false) = (&mut line, data.is_null()) {
            fields.insert("data".to_owned(), data);
        }
        self.say(&line)
    }

    fn fail(&mut self, command: &Value, error: &str) -> Result<(), Error> {
        let mut line = lines::response(command, false);
        if let Value::Object(fields) = &mut line {
            fields.insert("error".to_owned(), error.into());
        }
        self.say(&line)
    }
}

fn text<'a>(command: &'a Value, name: &str) -> &'a str {
    command.get(name).and_then(Value::as_str).unwrap_or_default()
}
