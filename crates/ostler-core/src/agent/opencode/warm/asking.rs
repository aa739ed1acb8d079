//! What the server asks: who decides it, and what it is told.
//!
//! One tool call may be asked about twice, for what it does and for where.
//! Whoever allowed it has seen both, so the second time is not asked again.
//! Every request of ours gets an answer: what no running turn needs a denial.
//! On a server of somebody else's, what no turn of ours asks is theirs to answer.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::{client::escaped, server::Server, turn::Stop};
use crate::{
    agent::{
        Action, SessionKey, TurnKey,
        field::remove_text,
        opencode::{message::take_object, tool::title_of},
    },
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
    /// The tool call that it is about.
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

/// The kind of a request, by the permission that is asked for and by the tool
/// that needs it.
const KINDS: &[(&str, PermissionKind)] = &[
    ("bash", PermissionKind::Command),
    ("edit", PermissionKind::Edit),
    ("write", PermissionKind::Edit),
    ("multiedit", PermissionKind::Edit),
    ("patch", PermissionKind::Edit),
    ("apply_patch", PermissionKind::Edit),
    ("read", PermissionKind::Read),
    ("list", PermissionKind::Read),
    ("grep", PermissionKind::Read),
    ("glob", PermissionKind::Read),
    ("external_directory", PermissionKind::Read),
    ("webfetch", PermissionKind::Network),
    ("websearch", PermissionKind::Network),
    ("codesearch", PermissionKind::Network),
];

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
        let call = remove_text(&mut tool, "callID");
        let live = session.turn.as_ref().filter(|live| live.stop == Stop::No && !live.is_silent);
        let Some(live) = live else {
            return self.reply_to(key, &directory, &id, &over(), out);
        };
        let turn = live.key;
        let known = call.as_deref().and_then(|call| live.call(call));
        let permission = shown(&request, known).named(&id);
        let is_allowed = call.as_ref().is_some_and(|call| live.allowed.contains(call));
        let ruling = match live.permissions() {
            _ if is_allowed => Some(Ruling::Allow { text: None }),
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
        let Some(question) = asked.questions.pop_front() else {
            if let (Ruling::Allow { .. }, Some(call)) = (ruling, asked.call)
                && let Some(live) = self.live(key, asked.turn)
            {
                live.allowed.insert(call);
            }
            return self.reply_to(key, &directory, &asked.id, ruling, out);
        };
        let Ruling::Allow { text } = ruling else {
            let reject = (format!("/question/{}/reject", escaped(&asked.id)), json!({}));
            return self.say(key, &directory, &asked.id, reject, out);
        };
        let text = text.clone().or_else(|| question.choices.first().cloned()).unwrap_or_default();
        asked.answers.push(json!([text]));
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

/// Makes the request that people see. The whole call is shown, whatever part of
/// it is asked about.
fn shown(request: &Map<String, Value>, call: Option<&super::turn::Call>) -> Permission {
    let wanted = request.get("permission").and_then(Value::as_str).unwrap_or_default();
    let metadata = request.get("metadata").filter(|data| data.is_object());
    let kind_of =
        |name: &str| KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let tool = call.map_or(wanted, |call| call.tool.as_str());
    let kind = kind_of(tool).or_else(|| kind_of(wanted)).unwrap_or(PermissionKind::Other);
    let patterns = request.get("patterns").and_then(Value::as_array).into_iter().flatten();
    let patterns: Vec<&str> = patterns.filter_map(Value::as_str).collect();
    let command = metadata.and_then(|data| data.get("command")).and_then(Value::as_str);
    let mut input = call.and_then(|call| call.input.clone()).or_else(|| metadata.cloned());
    let mut title = match (command, &input) {
        (Some(command), _) => command.to_owned(),
        (None, Some(_)) => title_of(input.as_ref()),
        (None, None) => patterns.join(", "),
    };
    if title.is_empty() {
        title = call.map(|call| call.title.clone()).unwrap_or_default();
    }
    if wanted == "external_directory" && command.is_none() && !patterns.is_empty() {
        title = format!("{title} (outside of the directory: {})", patterns.join(", "));
    }
    if let Some(Value::Object(input)) = &mut input {
        // What the agent says about it is not part of what is allowed: its words
        // differ from time to time.
        input.remove("description");
    }
    Permission::new(kind, tool, title, input)
}

fn read_question(question: &Value) -> Option<Question> {
    let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let choices = question.get("options").and_then(Value::as_array).into_iter().flatten();
    Some(Question {
        text: text(question, "question").or_else(|| text(question, "header"))?,
        choices: choices.filter_map(|choice| text(choice, "label")).collect(),
    })
}
