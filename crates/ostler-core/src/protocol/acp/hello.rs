//! The first words: who we are, and who the agent is.

use serde_json::{Value, json};

use super::session::Reopening;
use crate::{
    handshake::Introduction,
    protocol::jsonrpc::{Form, Incoming, Peer},
};

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// What is said of an agent that speaks another one only.
pub(super) const OTHER_VERSION: &str =
    "the agent does not speak version 1 of the Agent Client Protocol";

/// Returns what the agent is told about us.
pub(super) fn params() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let client = json!({ "name": "ostler", "title": "Ostler", "version": version });
    // The agent works on its own files and in its own terminals.
    let files = json!({ "readTextFile": false, "writeTextFile": false });
    let can = json!({ "fs": files, "terminal": false });
    json!({ "protocolVersion": VERSION, "clientInfo": client, "clientCapabilities": can })
}

/// What an agent says about itself.
pub(super) struct About {
    pub(super) speaks_ours: bool,
    /// The name by which programs know it.
    pub(super) name: Option<String>,
    title: Option<String>,
    pub(super) version: Option<String>,
    /// How sessions can be gone on with, if they can.
    pub(super) reopening: Option<Reopening>,
    /// Whether it wants to know that a session is not needed any more.
    pub(super) can_close: bool,
    /// What somebody could do to log in.
    pub(super) logins: Vec<String>,
}

impl About {
    pub(super) fn read(about: &Value) -> Self {
        let can = about.get("agentCapabilities");
        let can_load = can.and_then(|can| can.get("loadSession")?.as_bool()) == Some(true);
        let can_do = |name: &str| {
            let can = can.and_then(|can| can.get("sessionCapabilities")?.get(name));
            can.is_some_and(|can| can.is_object() || can.as_bool() == Some(true))
        };
        let info = about.get("agentInfo");
        let text = |name: &str| info.and_then(|info| Some(info.get(name)?.as_str()?.to_owned()));
        Self {
            speaks_ours: about.get("protocolVersion").and_then(Value::as_u64) == Some(VERSION),
            name: text("name"),
            title: text("title"),
            version: text("version"),
            reopening: match (can_do("resume"), can_load) {
                (true, _) => Some(Reopening::Resume),
                (false, true) => Some(Reopening::Load),
                (false, false) => None,
            },
            can_close: can_do("close"),
            logins: logins(about),
        }
    }
}

fn logins(about: &Value) -> Vec<String> {
    let methods = about.get("authMethods").and_then(Value::as_array).into_iter().flatten();
    let way = |method: &Value| {
        let text = |name: &str| method.get(name)?.as_str().filter(|text| !text.is_empty());
        match (text("name"), text("description")) {
            (Some(name), Some(more)) => Some(format!("{name} ({more})")),
            (name, more) => name.or(more).map(str::to_owned),
        }
    };
    methods.filter_map(way).collect()
}

/// Returns the line by which an agent is asked who it is.
pub(crate) fn hello() -> Vec<u8> {
    Peer::new(Form::Marked).request((), "initialize", params())
}

/// Reads the answer to that; `None` when the line is something else.
pub(crate) fn introduction(line: &[u8]) -> Option<Result<Introduction, String>> {
    let mut peer = Peer::new(Form::Marked);
    peer.request((), "initialize", Value::Null);
    let Incoming::Reply { result, .. } = peer.read(line) else { return None };
    let about = match result {
        Ok(about) => About::read(&about),
        Err(error) => return Some(Err(error.message)),
    };
    if !about.speaks_ours {
        return Some(Err(OTHER_VERSION.to_owned()));
    }
    Some(Ok(Introduction {
        name: about.title.or(about.name),
        version: about.version,
        can_continue: about.reopening.is_some(),
        logins: about.logins,
    }))
}
