//! The calls of OpenCode's server: where they go, and what each was for.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::health::HEALTH;
use crate::{
    agent::{
        Action, SessionKey, TurnKey,
        http::{CallKey, EventSource, HttpCall, HttpReply, Login, Method},
        opencode::fault,
    },
    failure::{Failure, FailureKind},
};

/// How long a call may take. The first one in a directory makes the server load
/// its plug-ins, which took four seconds on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the stream may be silent; the server sends a sign each ten seconds.
const QUIET: Duration = Duration::from_secs(25);
/// How much of a reply is shown when it is not what it should be.
pub(super) const SHOWN: usize = 300;

/// What a call was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Learns the version.
    Health,
    /// Makes a session.
    Create(SessionKey),
    /// Finds a session.
    Find(SessionKey),
    /// Says what a session's turns may do.
    Rules(SessionKey),
    /// Begins a turn, or tells a running one something.
    Prompt(SessionKey, TurnKey, Option<String>),
    /// Ends a turn.
    Abort(SessionKey, TurnKey),
    /// Answers what was asked, by the server's id of it.
    Answer(SessionKey, String),
    /// Reads something anew.
    Look(SessionKey, Round, Sight),
    /// Whatever the reply is, nothing follows from it.
    Nothing,
}

/// Which look at a session it is. An older one does not show the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Round(u32);

impl Round {
    /// Begins the next one.
    pub(super) fn next(&mut self) -> Self {
        self.0 = self.0.wrapping_add(1);
        *self
    }
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// What has become of a turn.
    Messages,
    /// The same, after it was over and the server did nothing any more.
    Whole,
    /// What a helper has done, by the server's id of its session.
    Helper(String),
    /// Whether a turn runs.
    Status,
    /// Which permissions are asked for; those that were before it was looked.
    Permissions(Vec<String>),
    /// Which questions there are; those that were before it was looked.
    Questions(Vec<String>),
}

/// The way to one server.
#[derive(Debug)]
pub(super) struct Client {
    base: String,
    login: Option<Login>,
    n_calls: u32,
    /// What is under way: for what, and how it is named in an error.
    calls: BTreeMap<CallKey, (Purpose, String)>,
}

impl Client {
    pub(super) fn new(login: Option<Login>) -> Self {
        Self { base: String::new(), login, n_calls: 0, calls: BTreeMap::new() }
    }

    /// Takes the address; nothing can be called before.
    pub(super) fn found(&mut self, base: &str) {
        self.base = base.trim_end_matches('/').to_owned();
    }

    pub(super) fn is_found(&self) -> bool {
        !self.base.is_empty()
    }

    /// Listens to what happens in every directory.
    pub(super) fn listen(&self, out: &mut Vec<Action>) {
        let url = format!("{}/global/event", self.base);
        let login = self.login.clone();
        out.push(Action::Listen(EventSource { url, login, quiet: QUIET }));
    }

    pub(super) fn health(&mut self, out: &mut Vec<Action>) {
        self.call(Purpose::Health, Method::Get, HEALTH, None, None, out);
    }

    /// Returns whether every call was answered.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn create(
        &mut self,
        session: SessionKey,
        directory: &str,
        body: Value,
        out: &mut Vec<Action>,
    ) {
        let purpose = Purpose::Create(session);
        self.call(purpose, Method::Post, "/session", Some(directory), Some(body), out);
    }

    pub(super) fn find(&mut self, session: SessionKey, at: (&str, &str), out: &mut Vec<Action>) {
        self.get(Purpose::Find(session), at, "", out);
    }

    /// Adds rules to those of a session; the last one that matches counts.
    pub(super) fn restrict(
        &mut self,
        session: SessionKey,
        (id, directory): (&str, &str),
        rules: &[Value],
        out: &mut Vec<Action>,
    ) {
        let path = format!("/session/{}", escaped(id));
        let body = json!({ "permission": rules });
        let purpose = Purpose::Rules(session);
        self.call(purpose, Method::Patch, &path, Some(directory), Some(body), out);
    }

    pub(super) fn prompt(
        &mut self,
        purpose: Purpose,
        (id, directory): (&str, &str),
        body: Value,
        out: &mut Vec<Action>,
    ) {
        let path = format!("/session/{}/prompt_async", escaped(id));
        self.call(purpose, Method::Post, &path, Some(directory), Some(body), out);
    }

    pub(super) fn abort(
        &mut self,
        purpose: Purpose,
        (id, directory): (&str, &str),
        out: &mut Vec<Action>,
    ) {
        let path = format!("/session/{}/abort", escaped(id));
        self.call(purpose, Method::Post, &path, Some(directory), None, out);
    }

    /// Answers a request for permission, or a question.
    pub(super) fn answer(
        &mut self,
        (session, request): (SessionKey, &str),
        directory: &str,
        (path, body): (String, Value),
        out: &mut Vec<Action>,
    ) {
        let purpose = Purpose::Answer(session, request.to_owned());
        self.call(purpose, Method::Post, &path, Some(directory), Some(body), out);
    }

    /// Reads the last messages of a session.
    pub(super) fn messages(&mut self, purpose: Purpose, at: (&str, &str), out: &mut Vec<Action>) {
        self.get(purpose, at, "/message?limit=100", out);
    }

    /// Reads what a directory's sessions do, or wait for.
    pub(super) fn read(
        &mut self,
        purpose: Purpose,
        path: &str,
        directory: &str,
        out: &mut Vec<Action>,
    ) {
        self.call(purpose, Method::Get, path, Some(directory), None, out);
    }

    fn get(
        &mut self,
        purpose: Purpose,
        (id, directory): (&str, &str),
        rest: &str,
        out: &mut Vec<Action>,
    ) {
        let path = format!("/session/{}{rest}", escaped(id));
        self.call(purpose, Method::Get, &path, Some(directory), None, out);
    }

    fn call(
        &mut self,
        purpose: Purpose,
        method: Method,
        path: &str,
        directory: Option<&str>,
        body: Option<Value>,
        out: &mut Vec<Action>,
    ) {
        self.n_calls = self.n_calls.wrapping_add(1);
        let call = CallKey(self.n_calls);
        let mut url = format!("{}{path}", self.base);
        if let Some(directory) = directory {
            url.push(if path.contains('?') { '&' } else { '?' });
            url.push_str("directory=");
            url.push_str(&escaped(directory));
        }
        let bare = path.split('?').next().unwrap_or_default();
        self.calls.insert(call, (purpose, format!("{} {bare}", method.as_str())));
        let login = self.login.clone();
        let request = Box::new(HttpCall { method, url, login, body, limit: LIMIT });
        out.push(Action::Call { call, request });
    }

    /// Takes a reply; returns what it was for and what it says.
    pub(super) fn reply(
        &mut self,
        call: CallKey,
        reply: Result<HttpReply<'_>, &str>,
        cause: Option<&str>,
    ) -> Option<(Purpose, Result<Value, Failure>)> {
        let (purpose, name) = self.calls.remove(&call)?;
        Some((purpose, read(&name, reply, cause)))
    }
}

/// Reads a reply. Failures name the call, the status and how the reply begins.
pub(super) fn read(
    name: &str,
    reply: Result<HttpReply<'_>, &str>,
    cause: Option<&str>,
) -> Result<Value, Failure> {
    let reply = reply.map_err(|why| {
        Failure::new(FailureKind::Unavailable, format!("{name} of opencode's server failed: {why}"))
    })?;
    let value = serde_json::from_slice::<Value>(reply.body).ok();
    let HttpReply { status, body } = reply;
    match (status, value) {
        (204, _) => return Ok(Value::Null),
        (200..=299, Some(value)) => return Ok(value),
        (_, Some(value)) if value.get("name").is_some() => {
            let failure = fault::of_error(&value, cause);
            let by_status = FailureKind::of_http_status(status).unwrap_or(failure.kind);
            let kind = if status == 404 {
                FailureKind::SessionLost
            } else if failure.kind == FailureKind::Crashed {
                by_status
            } else {
                failure.kind
            };
            let message = format!("{name} of opencode's server: {status} {}", failure.message);
            return Err(Failure { kind, message, ..failure });
        }
        _ => {}
    }
    let text = String::from_utf8_lossy(body);
    let start: String = text.trim().chars().take(SHOWN).collect();
    let message = format!("{name} of opencode's server: {status} {start}").trim_end().to_owned();
    let kind = match status {
        200..=299 => FailureKind::UnreadableOutput,
        status => FailureKind::of_http_status(status).unwrap_or(FailureKind::Unavailable),
    };
    Err(Failure::new(kind, message))
}

/// Writes a text so that it stands for itself in a path or a query.
pub(super) fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            result.push(char::from(byte));
        } else {
            result.push_str(&format!("%{byte:02X}"));
        }
    }
    result
}
