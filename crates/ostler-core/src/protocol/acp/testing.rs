//! What the tests of all agents share that speak the protocol: what they can be
//! made to say.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{
    agent::{
        Action, Dialect,
        testing::{Talk, recorded_lines},
    },
    memo::Memo,
    protocol::{jsonrpc::Form, testing::Side},
    request::{Open, Options, Permissions},
};

/// An agent that speaks the protocol and can be played.
pub(crate) trait AcpAgent {
    /// What it prints on standard error.
    const STDERR: &'static [&'static str];

    /// Makes the state machine that speaks with it.
    fn dialect() -> Box<dyn Dialect>;

    /// The id that it is told for the session.
    fn session(&self) -> &str;
}

/// What a real agent said.
static RECORDED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut lines = recorded_lines("gemini", "agent->client");
    lines.retain(|line| line.get("method").is_some());
    assert!(lines.len() > 100);
    lines
});

impl<A: AcpAgent> Side for A {
    const FORM: Form = Form::Marked;
    const FIELDS: &'static [&'static str] = &[
        "sessionUpdate",
        "content",
        "type",
        "text",
        "toolCallId",
        "status",
        "title",
        "kind",
        "locations",
        "rawInput",
        "rawOutput",
        "entries",
        "options",
        "toolCall",
        "stopReason",
        "_meta",
        "quota",
    ];
    const STDERR: &'static [&'static str] = A::STDERR;
    const NAMES: [&'static str; 2] = ["/params/sessionId", "/sessionId"];

    fn dialect() -> Box<dyn Dialect> {
        A::dialect()
    }

    fn recorded() -> &'static [Value] {
        &RECORDED
    }

    fn resumed(number: u32) -> Open {
        Open::Resume(Box::new(Memo::of_id("any", format!("r{number}"))))
    }

    fn options(choice: usize) -> Options {
        let mut options = Options::new("/workspace");
        options.permissions = match choice % 3 {
            0 | 1 => Permissions::Ask,
            _ => Permissions::Bypass,
        };
        options.model = choice.is_multiple_of(2).then(|| format!("m{}", choice % 5));
        options
    }

    fn result(asked: &Value, _choice: usize) -> Value {
        match asked["method"].as_str().unwrap() {
            "initialize" => {
                json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } })
            }
            "session/new" => json!({ "sessionId": format!("s{}", asked["id"]), "models": {} }),
            "session/prompt" => json!({ "stopReason": "end_turn" }),
            _ => json!({ "models": {} }),
        }
    }

    fn request(session: &str, choice: usize, mut value: Value) -> (&'static str, Value) {
        let method = match choice % 4 {
            0 => "brand/new",
            1 => "session/request_permission",
            _ => {
                let options = json!([{ "optionId": "y", "kind": "allow_once" }]);
                let call = json!({ "toolCallId": format!("c{}", choice % 9), "title": "do" });
                value = json!({ "options": options, "toolCall": call });
                "session/request_permission"
            }
        };
        if let Some(fields) = value.as_object_mut() {
            fields.insert("sessionId".to_owned(), session.into());
        }
        (method, value)
    }

    fn notification(session: &str, _choice: usize, value: Value) -> (&'static str, Value) {
        ("session/update", json!({ "sessionId": session, "update": value }))
    }

    fn address(message: &mut Value, session: &str) {
        message["params"]["sessionId"] = session.into();
    }

    fn stops(message: &Value) -> Option<&str> {
        // The id that an agent is told may differ from the caller's by what stands around it.
        let session = message["params"]["sessionId"].as_str().map(str::trim);
        session.filter(|_| message["method"] == "session/cancel")
    }

    fn check(request: &Value, pending: &[Value]) {
        let is_prompt = |one: &Value| {
            one["method"] == "session/prompt"
                && one["params"]["sessionId"] == request["params"]["sessionId"]
        };
        let is_second = is_prompt(request) && pending.iter().any(is_prompt);
        assert!(!is_second, "a second prompt would end the first");
    }
}

impl<A: AcpAgent> Talk<A> {
    /// The agent tells something of the session.
    pub(crate) fn tell(&mut self, update: Value) -> Vec<Action> {
        let params = json!({ "sessionId": self.played.session(), "update": update });
        self.notify("session/update", params)
    }

    /// The agent says a piece of the answer.
    pub(crate) fn text(&mut self, text: &str) -> Vec<Action> {
        let content = json!({ "type": "text", "text": text });
        self.tell(json!({ "sessionUpdate": "agent_message_chunk", "content": content }))
    }

    /// The agent asks whether it may do something.
    pub(crate) fn asks(&mut self, id: Value, options: Value, call: Value) -> Vec<Action> {
        let session = self.played.session();
        let params = json!({ "sessionId": session, "options": options, "toolCall": call });
        self.request(id, "session/request_permission", params)
    }

    /// The agent ends the turn.
    pub(crate) fn over(&mut self, reason: &str) -> Vec<Action> {
        self.answer_ok("session/prompt", json!({ "stopReason": reason }))
    }
}
