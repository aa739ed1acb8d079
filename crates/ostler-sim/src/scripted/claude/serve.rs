//! Claude's conversation over standard input: prompts, the control protocol, and
//! both of them in the middle of a turn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::answer::Tool;
use super::super::inbox::Heard;
use super::super::stage::Stream;
use super::super::{End, Error, os};
use super::options::{Input, Refusal};
use super::{Flow, Kind, Process, lines, refuse};

#[derive(Debug, Deserialize)]
struct Incoming {
    #[serde(rename = "type")]
    kind: String,
    message: Option<Value>,
    uuid: Option<String>,
    request_id: Option<String>,
    request: Option<Value>,
    response: Option<Value>,
}

/// What came in while a turn ran.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    prompts: VecDeque<Incoming>,
    is_interrupted: bool,
    /// The question that waits for its answer.
    asked: Option<String>,
    answer: Option<Value>,
    /// Whether nothing more will come.
    has_ended: bool,
    /// A line that was no JSON, which ends the program.
    broken: Option<Refusal>,
}

/// What became of a question.
#[derive(Debug)]
pub(super) enum Permission {
    Granted,
    Denied(String),
    Interrupted,
}

impl Process<'_, '_> {
    /// Answers prompts until standard input ends.
    pub(super) fn serve(&mut self) -> Result<End, Error> {
        loop {
            if let Some(refusal) = self.waiting.broken.take() {
                return refuse(&refusal, self.stage);
            }
            if let Some(incoming) = self.waiting.prompts.pop_front() {
                self.answer_prompt(incoming)?;
                continue;
            }
            if self.waiting.has_ended {
                return Ok(End::Exit(0));
            }
            let heard = self.stage.hear(None)?;
            self.hear(heard)?;
        }
    }

    fn answer_prompt(&mut self, incoming: Incoming) -> Result<(), Error> {
        self.asked_by = incoming.uuid;
        self.waiting.is_interrupted = false;
        self.lifecycle(&["queued", "started"])?;
        let flow = self.turn(&prompt_text(incoming.message.as_ref()))?;
        self.lifecycle(match flow {
            Flow::On => &["completed"],
            Flow::Cut => &["cancelled"],
        })
    }

    /// Lets time pass, with open ears where there is somebody to listen to.
    pub(super) fn beat(&mut self, pause: Duration) -> Result<Flow, Error> {
        if self.options.input != Input::Stream {
            os::wait(pause);
            return Ok(Flow::On);
        }
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.waiting.has_ended {
                // What was asked before the end is answered all the same.
                os::wait(left);
                return Ok(Flow::On);
            }
            let heard = self.stage.hear(Some(left))?;
            let is_quiet = heard == Heard::Nothing;
            self.hear(heard)?;
            if self.waiting.is_interrupted {
                return Ok(Flow::Cut);
            }
            if is_quiet {
                return Ok(Flow::On);
            }
        }
    }

    /// Asks whether a tool may run, where somebody wants to be asked.
    pub(super) fn permission(&mut self, id: &str, tool: &Tool) -> Result<Permission, Error> {
        if !self.options.asks || self.options.input != Input::Stream {
            return Ok(match self.beat(self.props.pace)? {
                Flow::On => Permission::Granted,
                Flow::Cut => Permission::Interrupted,
            });
        }
        let request = self.ids.uuid_v4()?;
        self.print(&lines::can_use_tool(&request, id, tool))?;
        self.waiting.asked = Some(request);
        loop {
            if let Some(answer) = self.waiting.answer.take() {
                return Ok(ruling(&answer));
            }
            if self.waiting.is_interrupted {
                return Ok(Permission::Interrupted);
            }
            if self.waiting.has_ended {
                return Ok(Permission::Denied("Stream closed".to_owned()));
            }
            let heard = self.stage.hear(None)?;
            self.hear(heard)?;
        }
    }

    fn hear(&mut self, heard: Heard) -> Result<(), Error> {
        let line = match heard {
            Heard::Line(line) => line,
            Heard::Nothing => return Ok(()),
            Heard::End => {
                self.waiting.has_ended = true;
                return Ok(());
            }
        };
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let Ok(incoming) = serde_json::from_slice::<Incoming>(&line) else {
            let length = line.trim_ascii_end().len();
            let text = format!(
                "Error parsing streaming input line (type=unknown, {length} chars): SyntaxError"
            );
            self.waiting.broken = Some(Refusal(text));
            self.waiting.is_interrupted = true;
            return Ok(());
        };
        match incoming.kind.as_str() {
            "user" => self.waiting.prompts.push_back(incoming),
            "control_request" => self.control(&incoming)?,
            "control_response" => {
                let response = incoming.response.unwrap_or_default();
                let is_awaited = self.waiting.asked.is_some()
                    && response.get("request_id").and_then(Value::as_str)
                        == self.waiting.asked.as_deref();
                if is_awaited {
                    self.waiting.asked = None;
                    self.waiting.answer = Some(response);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn control(&mut self, incoming: &Incoming) -> Result<(), Error> {
        let id = incoming.request_id.as_deref().unwrap_or_default();
        let request = incoming.request.clone().unwrap_or_default();
        let subtype = request.get("subtype").and_then(Value::as_str).unwrap_or_default();
        match subtype {
            "interrupt" => {
                self.waiting.is_interrupted = true;
                if let Some(request_id) = self.waiting.asked.take() {
                    let line = json!({"type": "control_cancel_request", "request_id": request_id});
                    self.print(&line)?;
                }
            }
            "set_model" => {
                if let Some(model) = request.get("model").and_then(Value::as_str) {
                    model.clone_into(&mut self.session.model);
                }
            }
            _ => {}
        }
        self.print(&lines::control_response(id, subtype, &self.session.model))
    }

    fn print(&mut self, line: &Value) -> Result<(), Error> {
        self.stage.write_line(Stream::Stdout, &line.to_string())
    }

    fn lifecycle(&mut self, states: &[&str]) -> Result<(), Error> {
        let Some(uuid) = self.asked_by.clone() else {
            return Ok(());
        };
        for state in states {
            let line = json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state});
            self.show(Kind::Whole, line)?;
        }
        Ok(())
    }
}

/// Reads the answer to a question; one that failed is a no.
fn ruling(response: &Value) -> Permission {
    let text = |path: &str| response.pointer(path).and_then(Value::as_str);
    if text("/response/behavior") == Some("allow") {
        return Permission::Granted;
    }
    if response.pointer("/response/interrupt") == Some(&Value::Bool(true)) {
        return Permission::Interrupted;
    }
    let why = text("/response/message").or(text("/error")).unwrap_or("denied");
    Permission::Denied(why.to_owned())
}

/// The text of a prompt line, whose content is a string or a list of blocks.
fn prompt_text(message: Option<&Value>) -> String {
    let content = message.and_then(|message| message.get("content"));
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => blocks
            .iter()
            .filter_map(|block| block.get("text").and_then(Value::as_str))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}
