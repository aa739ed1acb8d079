//! What the agent asks: who decides it, and what it is told.
//!
//! Every request gets a reply: what is not known gets an error at once, and
//! what no running turn needs is answered as cancelled. The agent is told
//! *once*, never *always*: what its always covers is its own matter.

use serde_json::{Map, Value, json};

use super::{call::Call, client::Client};
use crate::{
    agent::{Action, TurnKey, field::remove_text},
    permission::{Permission, Ruling},
    protocol::jsonrpc::{METHOD_NOT_FOUND, RequestId},
    request::Permissions,
};

/// A request of the agent's that waits for a decision.
pub(super) struct Asked {
    id: RequestId,
    turn: TurnKey,
    call: String,
    choices: Choices,
}

/// The two answers that hold for this once.
struct Choices {
    allow: Option<String>,
    reject: Option<String>,
}

impl Choices {
    fn read(options: Option<Value>) -> Self {
        let Some(Value::Array(options)) = options else {
            return Self { allow: None, reject: None };
        };
        let find = |kind: &str| {
            let text = |option: &Value, name: &str| Some(option.get(name)?.as_str()?.to_owned());
            let mut options = options.iter();
            options
                .find(|one| text(one, "kind").as_deref() == Some(kind))
                .and_then(|one| text(one, "optionId"))
        };
        Self { allow: find("allow_once"), reject: find("reject_once") }
    }

    /// Returns the reply, and why the call does not happen if it does not.
    fn decide(&self, ruling: &Ruling) -> (Value, Option<String>) {
        let (option, why) = match ruling {
            Ruling::Allow { .. } if self.allow.is_some() => (self.allow.as_ref(), None),
            Ruling::Allow { .. } => {
                (self.reject.as_ref(), Some("the agent cannot be told to go on once".to_owned()))
            }
            Ruling::Deny { why } => (self.reject.as_ref(), Some(why.clone())),
        };
        match option {
            Some(id) => (json!({ "outcome": { "outcome": "selected", "optionId": id } }), why),
            None => (cancelled(), why),
        }
    }
}

fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

impl Client {
    pub(super) fn request(
        &mut self,
        id: RequestId,
        method: &str,
        mut params: Map<String, Value>,
        out: &mut Vec<Action>,
    ) {
        let session = remove_text(&mut params, "sessionId");
        let key = session.and_then(|id| self.find(&id));
        let live = key.and_then(|key| self.sessions.get_mut(&key.0)?.turn.as_mut());
        let live = live.filter(|live| !live.is_stopping);
        if method != "session/request_permission" {
            let text = format!("{method} cannot be answered here");
            if let Some(live) = live.filter(|_| !self.habits.idle_requests.contains(&method)) {
                live.warn(&text, out);
            }
            out.push(Action::Write(self.peer.refuse(&id, METHOD_NOT_FOUND, &text)));
            return;
        }
        let call = match params.remove("toolCall") {
            Some(Value::Object(call)) => Call::read(call),
            _ => None,
        };
        let (Some(live), Some(call)) = (live, call) else {
            out.push(Action::Write(self.peer.reply(&id, cancelled())));
            return;
        };
        // What is told here only changes what was told before.
        let (call, looks) = live.asked(&call, out);
        let (turn, permissions) = (live.key, live.permissions);
        let choices = Choices::read(params.remove("options"));
        let asked = Asked { id, turn, call: call.id.clone(), choices };
        match permissions {
            Permissions::Ask => self.ask(asked, &call, out),
            Permissions::Bypass => self.decide(&asked, &Ruling::Allow { text: None }, out),
            Permissions::ReadOnly if looks => {
                self.decide(&asked, &Ruling::Allow { text: None }, out);
            }
            Permissions::ReadOnly => {
                self.decide(&asked, &Ruling::Deny { why: "read-only".to_owned() }, out);
            }
        }
    }

    fn ask(&mut self, asked: Asked, call: &Call, out: &mut Vec<Action>) {
        let mut name = asked.id.text();
        while self.asked.contains_key(&name) {
            name.push('+');
        }
        let (tool, title) = ((self.facts.tool)(call), (self.facts.title)(call));
        let input = (self.facts.input)(call);
        let permission = Permission::new(call.permission_kind(), &tool, title, input);
        let permission = permission.named(&name);
        let turn = asked.turn;
        self.asked.insert(name, asked);
        out.push(Action::Ask { turn, permission: Box::new(permission) });
    }

    pub(super) fn answer(&mut self, name: &str, ruling: &Ruling, out: &mut Vec<Action>) {
        if let Some(asked) = self.asked.remove(name) {
            self.decide(&asked, ruling, out);
        }
    }

    fn decide(&mut self, asked: &Asked, ruling: &Ruling, out: &mut Vec<Action>) {
        let (reply, refused) = asked.choices.decide(ruling);
        out.push(Action::Write(self.peer.reply(&asked.id, reply)));
        if let Some(why) = refused
            && let Some(live) = self.find_live(asked.turn)
        {
            if matches!(ruling, Ruling::Allow { .. }) {
                live.warn(&why, out);
            }
            live.denied(&asked.call, &why, out);
        }
    }

    /// Answers what a turn that ends still asks.
    pub(super) fn drop_asked(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let names = self.asked.iter().filter(|(_, asked)| asked.turn == turn);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(asked) = self.asked.remove(&name) {
                out.push(Action::Write(self.peer.reply(&asked.id, cancelled())));
            }
        }
    }
}
