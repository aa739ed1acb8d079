//! A conversation between the state machine and a server that a test plays.

use super::*;
use crate::{
    agent::{
        Dialect, Exit, Input, ONLY_SESSION, Order, SessionKey, TimerKey, WarmLaunch,
        http::{CallKey, Heard, HttpCall, HttpReply},
        opencode::warm::WARM,
        testing::{exit, stdout_line},
    },
    memo::Memo,
    permission::Ruling,
    request::Open,
};

pub(super) const SESSION: &str = "ses_e1f636b53ffe5GYbAYGosfFhNq";
pub(super) const BASE: &str = "http://127.0.0.1:4096";

/// A conversation.
pub(super) struct Talk {
    dialect: Box<dyn Dialect>,
    /// What the clock shows.
    pub(super) now: jiff::Timestamp,
    /// Everything that followed so far.
    pub(super) actions: Vec<Action>,
    /// The calls that were not answered.
    pub(super) open_calls: Vec<(CallKey, HttpCall)>,
}

impl Talk {
    /// Begins one; nothing was said yet.
    pub(super) fn new() -> Self {
        let options = options();
        let variables = [("OPENCODE_SERVER_PASSWORD".into(), "secret".into())];
        let launch = WarmLaunch {
            spec: &crate::agent::opencode::SPEC,
            options: &options,
            open: &Open::New,
            new_id: "",
            version: None,
            variables: &variables,
            run_dir: std::path::Path::new("/run"),
        };
        Self::with((WARM.dialect)(&launch))
    }

    /// Begins one with another state machine.
    pub(super) fn with(dialect: Box<dyn Dialect>) -> Self {
        let now = jiff::Timestamp::UNIX_EPOCH;
        Self { dialect, now, actions: Vec::new(), open_calls: Vec::new() }
    }

    /// Begins one in which the server has said where it is.
    pub(super) fn started() -> Self {
        let mut talk = Self::new();
        talk.order(Order::Start);
        let line = format!("opencode server listening on {BASE}");
        talk.step(stdout_line(line.as_bytes()));
        talk
    }

    /// Begins one in which the server is ready.
    pub(super) fn ready() -> Self {
        Self::ready_as("1.18.33")
    }

    /// Begins one in which a server of this version is ready.
    pub(super) fn ready_as(version: &str) -> Self {
        let mut talk = Self::started();
        talk.reply("/global/health", 200, &json!({ "healthy": true, "version": version }));
        talk.tell("server.connected", json!({}));
        talk
    }

    /// Begins one with a turn that the server has not taken up.
    pub(super) fn sent(options: &Options) -> Self {
        let mut talk = Self::ready();
        talk.order(Order::Open { session: ONLY_SESSION, open: &Open::New, options });
        talk.prompt(FIRST, "hi", options);
        talk.reply("/session?", 200, &json!({ "id": SESSION, "directory": "/workspace" }));
        talk.reply("/prompt_async", 204, &Value::Null);
        talk
    }

    /// Begins one with a turn in which the model begins to write.
    pub(super) fn running(options: &Options) -> Self {
        let mut talk = Self::sent(options);
        talk.begin("1");
        talk
    }

    /// Begins one with a session that was found again.
    pub(super) fn resumed(id: &str) -> Self {
        let mut talk = Self::ready();
        let open = Open::Resume(Box::new(Memo::of_id("opencode", id)));
        talk.order(Order::Open { session: ONLY_SESSION, open: &open, options: &options() });
        talk
    }

    /// Begins one with a turn in a session that had turns until the server's
    /// time 30.
    pub(super) fn sent_again() -> Self {
        let mut talk = Self::resumed(SESSION);
        talk.prompt(FIRST, "hi", &options());
        let time = json!({ "created": 10, "updated": 30 });
        let session = json!({ "id": SESSION, "directory": "/workspace", "time": time });
        talk.reply("/session/", 200, &session);
        talk.reply("/prompt_async", 204, &Value::Null);
        talk
    }

    /// Lets it look for a turn again and again, and find nothing.
    pub(super) fn find_nothing(&mut self) {
        for _ in 0..11 {
            self.reply("/message?", 200, &json!([]));
            self.reply("/session/status", 200, &json!({}));
            self.open_calls.clear();
            self.ring();
        }
    }

    /// The server takes a prompt up.
    pub(super) fn begin(&mut self, n: &str) {
        self.user(&format!("msg_u{n}"));
        self.tell("session.status", json!({ "status": { "type": "busy" } }));
        self.assistant(&format!("msg_a{n}"), &format!("msg_u{n}"), json!({}));
    }

    pub(super) fn step(&mut self, input: Input<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        self.dialect.step(self.now, input, &mut out);
        for action in &out {
            if let Action::Call { call, request } = action {
                self.open_calls.push((*call, request.as_ref().clone()));
            }
        }
        self.actions.extend(out.iter().cloned());
        out
    }

    pub(super) fn order(&mut self, order: Order<'_>) -> Vec<Action> {
        self.step(Input::Order(order))
    }

    pub(super) fn prompt(&mut self, turn: TurnKey, prompt: &str, options: &Options) -> Vec<Action> {
        self.prompt_in(ONLY_SESSION, turn, prompt, options)
    }

    pub(super) fn prompt_in(
        &mut self,
        session: SessionKey,
        turn: TurnKey,
        prompt: &str,
        options: &Options,
    ) -> Vec<Action> {
        self.order(Order::Prompt { session, turn, prompt, options })
    }

    pub(super) fn decide(&mut self, request: &str, ruling: &Ruling) -> Vec<Action> {
        self.order(Order::Answer { turn: FIRST, request, ruling })
    }

    pub(super) fn cancel(&mut self, turn: TurnKey) -> Vec<Action> {
        self.step(Input::Cancel { turn })
    }

    /// The server tells an event of the session.
    pub(super) fn tell(&mut self, kind: &str, mut properties: Value) -> Vec<Action> {
        if properties.get("sessionID").is_none() && !kind.starts_with("server") {
            properties["sessionID"] = SESSION.into();
        }
        let payload = json!({ "id": "evt_1", "type": kind, "properties": properties });
        self.event(&json!({ "directory": "/workspace", "payload": payload }))
    }

    pub(super) fn event(&mut self, event: &Value) -> Vec<Action> {
        self.step(Input::Heard(Heard::Event(event.to_string().as_bytes())))
    }

    pub(super) fn lose(&mut self) -> Vec<Action> {
        self.step(Input::Heard(Heard::Lost { why: "cut" }))
    }

    pub(super) fn user(&mut self, id: &str) -> Vec<Action> {
        self.tell("message.updated", json!({ "info": { "id": id, "role": "user" } }))
    }

    pub(super) fn assistant(&mut self, id: &str, parent: &str, more: Value) -> Vec<Action> {
        let mut info = json!({ "id": id, "parentID": parent, "role": "assistant", "modelID": "m", "providerID": "p" });
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.tell("message.updated", json!({ "info": info }))
    }

    /// A message of the model's is complete.
    pub(super) fn complete(&mut self, n: &str, finish: &str) {
        let more = json!({ "finish": finish, "time": { "completed": 1 } });
        self.assistant(&format!("msg_a{n}"), &format!("msg_u{n}"), more);
    }

    /// A text of the model's, as the server has it now.
    pub(super) fn text(&mut self, message: &str, id: &str, text: &str, is_done: bool) {
        let time = if is_done { json!({ "start": 1, "end": 2 }) } else { json!({ "start": 1 }) };
        let part =
            json!({ "id": id, "messageID": message, "type": "text", "text": text, "time": time });
        self.tell("message.part.updated", json!({ "part": part }));
    }

    pub(super) fn piece(&mut self, id: &str, delta: &str) {
        let message = "msg_a1";
        let piece = json!({ "messageID": message, "partID": id, "field": "text", "delta": delta });
        self.tell("message.part.delta", piece);
    }

    pub(super) fn idle(&mut self) -> Vec<Action> {
        self.tell("session.status", json!({ "status": { "type": "idle" } }));
        self.tell("session.idle", json!({}))
    }

    /// The server answers the oldest call whose address has this in it.
    pub(super) fn reply(&mut self, path: &str, status: u16, body: &Value) -> Vec<Action> {
        let at = self.open_calls.iter().position(|(_, call)| call.url.contains(path));
        let at = at.unwrap_or_else(|| panic!("{path} was not called: {:?}", self.urls()));
        let (call, _) = self.open_calls.remove(at);
        self.reply_to(call, Ok((status, body)))
    }

    pub(super) fn reply_to(
        &mut self,
        call: CallKey,
        reply: Result<(u16, &Value), &str>,
    ) -> Vec<Action> {
        let bytes = reply.map(|(status, body)| (status, body.to_string().into_bytes()));
        let reply = match &bytes {
            Ok((status, body)) => Ok(HttpReply { status: *status, body }),
            Err(why) => Err(*why),
        };
        self.step(Input::Heard(Heard::Reply { call, reply }))
    }

    /// The timer that was armed last rings.
    pub(super) fn ring(&mut self) -> Vec<Action> {
        let armed = self.actions.iter().rev().find_map(|action| {
            let Action::Arm { timer, .. } = action else { return None };
            Some(*timer)
        });
        self.step(Input::Timer(armed.unwrap_or(TimerKey(0))))
    }

    pub(super) fn exit(&mut self) -> Vec<Action> {
        let exit: Exit = exit(1, "");
        self.step(Input::Exited(&exit))
    }

    /// The addresses of the calls that were not answered.
    pub(super) fn urls(&self) -> Vec<&str> {
        self.open_calls.iter().map(|(_, call)| call.url.as_str()).collect()
    }

    /// What the last call of an address was sent.
    pub(super) fn body(&self, path: &str) -> &Value {
        let calls = self.actions.iter().rev().filter_map(|action| {
            let Action::Call { request, .. } = action else { return None };
            request.url.contains(path).then_some(request.body.as_ref())?
        });
        calls.into_iter().next().unwrap()
    }
}
