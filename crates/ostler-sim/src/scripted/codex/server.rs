//! Plays `codex app-server`: JSON-RPC by lines, many threads, whose turns run side
//! by side. A turn is a list of moves; whoever is due makes the next one, and
//! in between the client is heard.

mod message;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::turn::{Move, Turn};
use super::super::agent::{Agent, Props};
use super::super::id::{Ids, is_uuid};
use super::super::inbox::Heard;
use super::super::session::{Session, Sessions};
use super::super::stage::{Stage, Stream};
use super::super::{End, Error};
use super::{DEFAULT_MODEL, VERSION};

/// The code of nearly every error of the real server.
const INVALID: i64 = -32600;

pub(super) struct Server<'a, 'b> {
    props: &'a Props,
    stage: &'a mut Stage<'b>,
    sessions: Sessions,
    ids: Ids,
    threads: BTreeMap<String, Thread>,
    /// The requests that the server made itself.
    n_asked: u64,
}

struct Thread {
    session: Session,
    /// Whether somebody is asked before a command runs.
    asks: bool,
    is_kept: bool,
    turn: Option<Turn>,
}

/// Why a request failed.
struct Refusal(String);

impl<'a, 'b> Server<'a, 'b> {
    pub(super) fn new(props: &'a Props, stage: &'a mut Stage<'b>) -> Result<Self, Error> {
        Ok(Self {
            props,
            stage,
            sessions: Sessions::of(Agent::Codex.name(), &props.home),
            ids: Ids::open()?,
            threads: BTreeMap::new(),
            n_asked: 0,
        })
    }

    /// Serves until standard input ends.
    pub(super) fn serve(&mut self) -> Result<End, Error> {
        loop {
            match self.stage.hear(self.due())? {
                Heard::Line(line) => self.hear(&line)?,
                Heard::Nothing => self.advance()?,
                Heard::End => return Ok(End::Exit(0)),
            }
        }
    }

    /// How long until somebody makes a move; nobody may have one to make.
    fn due(&self) -> Option<Duration> {
        let turns = self.threads.values().filter_map(|thread| thread.turn.as_ref());
        let next = turns.filter_map(Turn::due).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn advance(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let is_due = |thread: &&Thread| {
            thread.turn.as_ref().and_then(Turn::due).is_some_and(|due| due <= now)
        };
        let due: Vec<String> =
            self.threads.values().filter(is_due).map(|thread| thread.session.id.clone()).collect();
        for id in due {
            self.advance_thread(&id)?;
        }
        Ok(())
    }

    fn advance_thread(&mut self, id: &str) -> Result<(), Error> {
        let Some(thread) = self.threads.get_mut(id) else { return Ok(()) };
        let Some(turn) = &mut thread.turn else { return Ok(()) };
        match turn.next() {
            Some(Move::Say(line)) => self.print(&line),
            Some(Move::Crash) => turn.faults.middle(),
            Some(Move::Count) => {
                thread.session.n_model_calls += 1;
                let usage = message::token_usage(thread.session.n_model_calls);
                let mut params = json!({ "tokenUsage": usage });
                message::name(&mut params, id, &turn.id);
                self.notify("thread/tokenUsage/updated", params)
            }
            Some(Move::Ask(mut params)) => {
                if !thread.asks {
                    turn.decide(true, &thread.session);
                    return Ok(());
                }
                message::name(&mut params, id, &turn.id);
                turn.asked = Some(self.n_asked);
                let line = json!({
                    "id": self.n_asked, "method": "item/commandExecution/requestApproval",
                    "params": params,
                });
                self.n_asked += 1;
                self.print(&line)
            }
            None if turn.go_on(&mut thread.session) => self.save(id),
            None => self.complete(id, "completed"),
        }
    }

    /// Ends the turn of a thread.
    fn complete(&mut self, id: &str, status: &str) -> Result<(), Error> {
        let Some(thread) = self.threads.get_mut(id) else { return Ok(()) };
        let Some(turn) = thread.turn.take() else { return Ok(()) };
        if let Some(request) = turn.asked {
            let params = json!({ "threadId": id, "requestId": request });
            self.notify("serverRequest/resolved", params)?;
        }
        self.save(id)?;
        self.notify("thread/status/changed", message::status(id, "idle"))?;
        self.notify("turn/completed", json!({ "threadId": id, "turn": turn.ended(status) }))
    }

    fn save(&self, id: &str) -> Result<(), Error> {
        match self.threads.get(id) {
            Some(thread) if thread.is_kept => self.sessions.save(&thread.session),
            Some(_) | None => Ok(()),
        }
    }

    fn hear(&mut self, line: &[u8]) -> Result<(), Error> {
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
            // It has no id to answer to, and the real server lives on as well.
            return self.stage.write_line(Stream::Stderr, "ERROR failed to parse a message");
        };
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => {
                let answer = match self.request(method, &params)? {
                    Ok(result) => json!({ "id": id, "result": result }),
                    Err(Refusal(text)) => {
                        json!({ "id": id, "error": { "code": INVALID, "message": text } })
                    }
                };
                self.print(&answer)?;
                self.after(method, &params)
            }
            (None, Some(id)) => self.answered(id.as_u64(), &message),
            (_, None) => Ok(()),
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Result<Value, Refusal>, Error> {
        let thread = text(params, "threadId");
        Ok(match method {
            "initialize" => Ok(json!({
                "userAgent": format!("ostler/{VERSION} (scripted)"),
                "codexHome": self.props.home, "platformFamily": "unix", "platformOs": "linux",
            })),
            "thread/start" => {
                let model = text(params, "model");
                let model = if model.is_empty() { DEFAULT_MODEL } else { model };
                let id = self.ids.uuid_v7()?;
                let session = Session::new(id, model.to_owned(), &self.cwd(params));
                Ok(self.open(session, params))
            }
            "thread/resume" => match self.load(thread)? {
                Some(session) => {
                    let cwd = self.cwd(params);
                    let model = text(params, "model");
                    let model = if model.is_empty() { &session.model } else { model };
                    Ok(self.open(Session { model: model.to_owned(), cwd, ..session }, params))
                }
                None => Err(Refusal(format!("no rollout found for thread id {thread}"))),
            },
            "turn/start" => self.begin(thread, params)?,
            "turn/steer" => match self.running(thread) {
                Some(turn) => {
                    turn.steer(message::prompt(params));
                    Ok(json!({ "turnId": turn.id }))
                }
                None => Err(Refusal("no active turn to steer".to_owned())),
            },
            "turn/interrupt" => match self.running(thread) {
                Some(_) => Ok(json!({})),
                None => Err(Refusal("no active turn to interrupt".to_owned())),
            },
            "thread/unsubscribe" => {
                self.threads.remove(thread);
                Ok(json!({ "status": "unsubscribed" }))
            }
            "thread/backgroundTerminals/clean" => Ok(json!({})),
            "account/login/start" => Ok(json!({ "type": text(params, "type") })),
            other => Err(Refusal(format!("Invalid request: unknown variant `{other}`"))),
        })
    }

    /// What the server tells once a request is answered.
    fn after(&mut self, method: &str, params: &Value) -> Result<(), Error> {
        let thread = text(params, "threadId");
        match method {
            "turn/start" => {
                let Some(turn) = self.running(thread) else { return Ok(()) };
                if turn.is_told() {
                    return Ok(());
                }
                let begun = turn.begun();
                let faults = turn.faults.clone();
                self.notify("thread/status/changed", message::status(thread, "active"))?;
                self.notify("turn/started", json!({ "threadId": thread, "turn": begun }))?;
                faults.begin(self.stage)
            }
            "turn/interrupt" => self.complete(thread, "interrupted"),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, id: &str, params: &Value) -> Result<Result<Value, Refusal>, Error> {
        let turn_id = self.ids.uuid_v7()?;
        let pace = self.props.pace;
        let Some(thread) = self.threads.get_mut(id) else {
            return Ok(Err(Refusal(format!("thread not found: {id}"))));
        };
        thread.asks = asks(params).unwrap_or(thread.asks);
        let prompt = message::prompt(params);
        if let Some(turn) = &mut thread.turn {
            // The real server takes it into the turn that runs, too.
            turn.steer(prompt);
            return Ok(Ok(json!({ "turn": turn.begun() })));
        }
        let turn = Turn::new(turn_id, pace, &mut thread.session, &prompt);
        let begun = turn.begun();
        thread.turn = Some(turn);
        self.save(id)?;
        Ok(Ok(json!({ "turn": begun })))
    }

    /// Takes the answer to a request of the server's own.
    fn answered(&mut self, request: Option<u64>, message: &Value) -> Result<(), Error> {
        let waits = |thread: &&mut Thread| {
            request.is_some() && thread.turn.as_ref().is_some_and(|turn| turn.asked == request)
        };
        let Some(thread) = self.threads.values_mut().find(waits) else { return Ok(()) };
        let id = thread.session.id.clone();
        let decision = message.pointer("/result/decision").and_then(Value::as_str);
        if decision == Some("cancel") {
            return self.complete(&id, "interrupted");
        }
        if let Some(turn) = &mut thread.turn {
            turn.asked = None;
            turn.decide(decision.is_some_and(|it| it.starts_with("accept")), &thread.session);
        }
        self.notify("serverRequest/resolved", json!({ "threadId": id, "requestId": request }))
    }

    fn open(&mut self, session: Session, params: &Value) -> Value {
        let mut result = message::opened(&session, &self.sessions.path(&session.id));
        // The real one repeats what it holds the thread to.
        if let Some(fields) = result.as_object_mut() {
            let policy = params.get("approvalPolicy").cloned().unwrap_or_default();
            fields.insert("approvalPolicy".to_owned(), policy);
            let sandbox = sandbox_type(text(params, "sandbox"));
            fields.insert("sandbox".to_owned(), json!({ "type": sandbox }));
        }
        let is_kept = params.get("ephemeral") != Some(&Value::Bool(true));
        let asks = asks(params).unwrap_or(false);
        let id = session.id.clone();
        self.threads.insert(id, Thread { session, asks, is_kept, turn: None });
        result
    }

    fn load(&self, id: &str) -> Result<Option<Session>, Error> {
        match self.threads.get(id) {
            Some(thread) => Ok(Some(thread.session.clone())),
            None if is_uuid(id) => self.sessions.load(id),
            None => Ok(None),
        }
    }

    fn running(&mut self, thread: &str) -> Option<&mut Turn> {
        self.threads.get_mut(thread)?.turn.as_mut()
    }

    fn cwd(&self, params: &Value) -> PathBuf {
        match text(params, "cwd") {
            "" => self.props.cwd.clone(),
            cwd => PathBuf::from(cwd),
        }
    }

    fn notify(&mut self, method: &str, params: Value) -> Result<(), Error> {
        self.print(&message::notification(method, params))
    }

    fn print(&mut self, line: &Value) -> Result<(), Error> {
        self.stage.write_line(Stream::Stdout, &line.to_string())
    }
}

/// Returns how replies call a sandbox that requests call otherwise.
fn sandbox_type(mode: &str) -> &'static str {
    match mode {
        "danger-full-access" => "dangerFullAccess",
        "workspace-write" => "workspaceWrite",
        _ => "readOnly",
    }
}

/// Whether somebody is to be asked, if that is said.
fn asks(params: &Value) -> Option<bool> {
    let policy = params.get("approvalPolicy")?.as_str()?;
    Some(["on-request", "untrusted"].contains(&policy))
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
