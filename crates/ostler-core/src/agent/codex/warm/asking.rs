//! What the server asks: who decides it, and what it is told.
//!
//! Every request gets a reply: what is not known gets an error at once, and
//! what no running turn needs a denial.

use serde_json::{Map, Value};

use super::{
    approval::{self, CallInfo, Next, Request},
    server::AppServer,
    turn::Interrupt,
};
use crate::{
    agent::{Action, SessionKey, TurnKey, emit::emit_warning},
    permission::{Permission, Ruling},
    protocol::jsonrpc::{METHOD_NOT_FOUND, RequestId},
    request::Permissions,
};

/// A request of the server's that waits for a decision.
pub(super) struct Asked {
    id: RequestId,
    turn: TurnKey,
    request: Request,
    /// How many of its questions were asked.
    n_asked: u32,
}

impl AppServer {
    pub(super) fn request(
        &mut self,
        id: RequestId,
        method: &str,
        params: Map<String, Value>,
        out: &mut Vec<Action>,
    ) {
        let asks = self.asker(&params);
        let call = asks.as_ref().map(|asks| asks.call.clone()).unwrap_or_default();
        let Some((mut request, permission)) = approval::read(method, params, &call) else {
            let text = format!("{method} cannot be answered here");
            if let Some(asks) = asks {
                emit_warning(asks.turn, &text, out);
            }
            out.push(Action::Write(self.peer.refuse(&id, METHOD_NOT_FOUND, &text)));
            return;
        };
        let ruling = match &asks {
            None => Some(Ruling::Deny { why: "the turn is over".to_owned() }),
            Some(_) if request.is_question() => None,
            Some(asks) => match asks.permissions {
                Permissions::Ask => None,
                Permissions::Bypass => Some(Ruling::Allow { text: None }),
                Permissions::ReadOnly => Some(Ruling::Deny { why: "read-only".to_owned() }),
            },
        };
        match (ruling, asks) {
            (None, Some(asks)) => {
                let asked = Asked { id, turn: asks.turn, request, n_asked: 0 };
                self.ask(asked, permission, out);
            }
            (ruling, _) => {
                let deny = Ruling::Deny { why: String::new() };
                let next = request.decide(&ruling.unwrap_or(deny));
                if let Next::Reply(reply) = next {
                    out.push(Action::Write(self.peer.reply(&id, reply)));
                }
            }
        }
    }

    fn ask(&mut self, mut asked: Asked, mut permission: Permission, out: &mut Vec<Action>) {
        // The questions of one request are asked one after the other, each by a
        // name of its own.
        let mut name = asked.id.text();
        if asked.n_asked > 0 {
            name = format!("{name}+{}", asked.n_asked);
        }
        asked.n_asked += 1;
        while self.asked.contains_key(&name) {
            name.push('+');
        }
        permission.request.clone_from(&name);
        let turn = asked.turn;
        self.asked.insert(name, asked);
        out.push(Action::Ask { turn, permission: Box::new(permission) });
    }

    pub(super) fn answer(&mut self, name: &str, ruling: &Ruling, out: &mut Vec<Action>) {
        let Some(mut asked) = self.asked.remove(name) else { return };
        match asked.request.decide(ruling) {
            Next::Reply(reply) => out.push(Action::Write(self.peer.reply(&asked.id, reply))),
            Next::Ask(permission) => self.ask(asked, *permission, out),
        }
    }

    /// The server does not wait for an answer any more.
    pub(super) fn withdraw(&mut self, params: &Map<String, Value>, out: &mut Vec<Action>) {
        let Some(id) = params.get("requestId").and_then(RequestId::of) else { return };
        let names = self.asked.iter().filter(|(_, asked)| asked.id == id);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        for request in names {
            if let Some(asked) = self.asked.remove(&request) {
                out.push(Action::Withdraw { turn: asked.turn, request });
            }
        }
    }

    /// Answers what a turn that ends still asks.
    pub(super) fn deny_all(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let names = self.asked.iter().filter(|(_, asked)| asked.turn == turn);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        let deny = Ruling::Deny { why: "the turn is over".to_owned() };
        for name in names {
            self.answer(&name, &deny, out);
        }
    }

    /// Finds the running turn that a request belongs to. One of an agent's
    /// helper belongs to the turn that the agent is in.
    fn asker(&mut self, params: &Map<String, Value>) -> Option<Asks> {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        let thread = text("threadId")?;
        let child = self.children.get(thread).copied();
        let key = child.or_else(|| self.find(thread))?;
        let SessionKey(number) = key;
        let session = self.sessions.get(&number)?;
        let live = session.turn.as_ref()?;
        let is_its = child.is_some()
            || text("turnId").is_none_or(|turn| live.id.as_deref().is_none_or(|id| id == turn));
        if !is_its || live.ending.is_some() || live.interrupt != Interrupt::No {
            return None;
        }
        Some(Asks {
            turn: live.key,
            permissions: session.permissions(),
            call: text("itemId").and_then(|id| live.calls.get(id)).cloned().unwrap_or_default(),
        })
    }
}

struct Asks {
    turn: TurnKey,
    permissions: Permissions,
    call: CallInfo,
}
