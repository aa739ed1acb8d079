//! What the server asks: who decides it, and what it is told.
//!
//! One tool call may be asked about twice, for what it does and for where.
//! Whoever allowed it has seen both, so the second time is not asked again,
//! unless the call was not known yet and so not seen.
//! Every request of ours gets an answer: what no running turn needs a denial.
//! On a server of somebody else's, what no turn of ours asks is theirs to answer.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::{client::escaped, server::Server, shown::shown, turn::Stop};
use crate::{
    agent::{Action, SessionKey, TurnKey, field::remove_text, opencode::message::take_object},
    permission::{Permission, PermissionKind, Ruling},
    request::Permissions,
};

/// A request of the server's that waits for a decision.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) session: SessionKey,
    turn: TurnKey,
    /// The server's id of it.
    pub(super) id: String,
    directory: String,
    /// The record of the tool call that it is about, if that was shown.
    call: Option<String>,
    /// Questions that are not answered yet; none if it is a permission.
    questions: VecDeque<Question>,
    answers: Vec<Value>,
}

impl Asked {
    /// Returns whether it is a question to a person.
    pub(super) fn is_question(&self) -> bool {
        !self.questions.is_empty()
    }
}

#[derive(Debug)]
struct Question {
    text: String,
    choices: Vec<String>,
}

impl Server {
    /// Returns the id of a request that is for us to answer, if it is none that
    /// is asked or answered already.
    fn new_request(
        &mut self,
        key: SessionKey,
        request: &mut Map<String, Value>,
        out: &mut Vec<Action>,
    ) -> Option<String> {
        let id = remove_text(request, "id")?;
        if self.asked.values().any(|asked| asked.id == id) || self.is_answered(key, &id, out) {
            return None;
        }
        // Others have their own to answer on a server that is not ours.
        let is_ours = self.visit.is_none() || self.sessions.get(&key.0)?.has_asked(request);
        is_ours.then_some(id)
    }

    pub(super) fn permission(
        &mut self,
        key: SessionKey,
        mut request: Map<String, Value>,
        out: &mut Vec<Action>,
    ) {
        let Some(id) = self.new_request(key, &mut request, out) else { return };
        let Some(session) = self.sessions.get(&key.0) else { return };
        let directory = session.directory.clone();
        let mut tool = take_object(&mut request, "tool");
        let message = remove_text(&mut tool, "messageID");
        let call = remove_text(&mut tool, "callID");
        let live = session.turn.as_ref().filter(|live| live.stop == Stop::No && !live.is_silent);
        let Some(live) = live else {
            return self.reply_to(key, &directory, &id, &over(), out);
        };
        let turn = live.key;
        let known = call.and_then(|call| live.call(message.as_deref(), &call));
        let permission = shown(&request, known.map(|(_, call)| call)).named(&id);
        let call = known.map(|(part, _)| part.to_owned());
        let ruling = match live.permissions() {
            _ if known.is_some_and(|(_, call)| call.is_allowed) => {
                Some(Ruling::Allow { text: None })
            }
            Permissions::Ask => None,
            Permissions::Bypass => Some(Ruling::Allow { text: None }),
            Permissions::ReadOnly => Some(Ruling::Deny { why: "read-only".to_owned() }),
        };
        match ruling {
            Some(ruling) => self.reply_to(key, &directory, &id, &ruling, out),
            None => {
                let asked = Asked {
                    session: key,
                    turn,
                    id: id.clone(),
                    directory,
                    call,
                    questions: VecDeque::new(),
                    answers: Vec::new(),
                };
                self.asked.insert(id, asked);
                out.push(Action::Ask { turn, permission: Box::new(permission) });
            }
        }
    }

    pub(super) fn question(
        &mut self,
        key: SessionKey,
        mut request: Map<String, Value>,
        out: &mut Vec<Action>,
    ) {
        let Some(id) = self.new_request(key, &mut request, out) else { return };
        let Some(session) = self.sessions.get(&key.0) else { return };
        let directory = session.directory.clone();
        let all = request.get("questions").and_then(Value::as_array).into_iter().flatten();
        let questions: VecDeque<Question> = all.filter_map(read_question).collect();
        let live = session.turn.as_ref().filter(|live| live.stop == Stop::No && !live.is_silent);
        let turn = live.map(|live| live.key);
        match (turn, questions.is_empty()) {
            (Some(turn), false) => {
                let asked = Asked {
                    session: key,
                    turn,
                    id,
                    directory,
                    call: None,
                    questions,
                    answers: Vec::new(),
                };
                self.ask_next(asked, out);
            }
            _ => {
                let reject = (format!("/question/{}/reject", escaped(&id)), json!({}));
                self.say(key, &directory, &id, reject, out);
            }
        }
    }

    /// Asks the first question that is not answered yet.
    fn ask_next(&mut self, asked: Asked, out: &mut Vec<Action>) {
        let Some(question) = asked.questions.front() else { return };
        let mut name = asked.id.clone();
        if !asked.answers.is_empty() {
            name = format!("{name}-{}", asked.answers.len() + 1);
        }
        let permission = Permission {
            request: name.clone(),
            kind: PermissionKind::Question,
            tool: "question".to_owned(),
            title: question.text.clone(),
            input: None,
            options: question.choices.clone(),
            expires_at: None,
        };
        let turn = asked.turn;
        self.asked.insert(name, asked);
        out.push(Action::Ask { turn, permission: Box::new(permission) });
    }

    pub(super) fn answer(&mut self, name: &str, ruling: &Ruling, out: &mut Vec<Action>) {
        let Some(mut asked) = self.asked.remove(name) else { return };
        let key = asked.session;
        let directory = asked.directory.clone();
        if asked.questions.pop_front().is_none() {
            if let (Ruling::Allow { .. }, Some(call)) = (ruling, asked.call)
                && let Some(live) = self.live(key, asked.turn)
            {
                live.allow(&call);
            }
            return self.reply_to(key, &directory, &asked.id, ruling, out);
        }
        let Ruling::Allow { text } = ruling else {
            let reject = (format!("/question/{}/reject", escaped(&asked.id)), json!({}));
            return self.say(key, &directory, &asked.id, reject, out);
        };
        // Nobody's choice is not the first one.
        asked.answers.push(text.iter().map(String::as_str).collect());
        if !asked.questions.is_empty() {
            return self.ask_next(asked, out);
        }
        let path = format!("/question/{}/reply", escaped(&asked.id));
        let body = json!({ "answers": asked.answers });
        self.say(key, &directory, &asked.id, (path, body), out);
    }

    /// The server does not wait for an answer any more.
    pub(super) fn withdraw(&mut self, id: &str, out: &mut Vec<Action>) {
        let names = self.asked.iter().filter(|(_, asked)| asked.id == id);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        for request in names {
            if let Some(asked) = self.asked.remove(&request) {
                out.push(Action::Withdraw { turn: asked.turn, request });
            }
        }
    }

    /// Answers what a turn that ends still asks: the server would go on asking.
    pub(super) fn deny_all(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        let names = self.asked.iter().filter(|(_, asked)| asked.turn == turn);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.answer(&name, &over(), out);
        }
    }
}

fn over() -> Ruling {
    Ruling::Deny { why: "the turn is over".to_owned() }
}

fn read_question(question: &Value) -> Option<Question> {
    let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let choices = question.get("options").and_then(Value::as_array).into_iter().flatten();
    Some(Question {
        text: text(question, "question").or_else(|| text(question, "header"))?,
        choices: choices.filter_map(|choice| text(choice, "label")).collect(),
    })
}
