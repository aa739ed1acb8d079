//! An agent of somebody's own: what it is made of, and what becomes of what it says.

mod made;
mod once;
mod properties;
mod transcripts;
mod traps;

use serde_json::{Value, json};

use super::*;
use crate::{
    agent::{
        Action, Dialect, ONLY_SESSION, Order, TurnKey,
        testing::{
            self, end_of_turn, events, failure_of_turn, outputs, statuses, warm_launch_of, written,
        },
    },
    event::EventBody,
    protocol::{acp::testing::AcpAgent as Played, testing::methods},
    request::Permissions,
};

const TURN: TurnKey = TurnKey(7);
const SESSION: &str = "one";

fn named(name: &str) -> AcpAgent {
    let command = vec!["my-agent".to_owned(), "acp".to_owned()];
    AcpAgent { name: name.to_owned(), command, ..AcpAgent::default() }
}

fn asking() -> Options {
    Options { permissions: Permissions::Ask, ..Options::new("/workspace") }
}

/// Somebody's own agent.
struct Own;

impl Played for Own {
    const STDERR: &'static [&'static str] = &["[perf] something took long", "Error: no"];

    fn dialect() -> Box<dyn Dialect> {
        let spec = named("own").spec().unwrap();
        (WARM.dialect)(&warm_launch_of(&spec, &asking(), &Open::New))
    }

    fn session(&self) -> &str {
        SESSION
    }
}

type Talk = testing::Talk<Own>;

impl Talk {
    /// An agent of this name, with these capabilities, that is ready.
    fn ready(name: &str, can: Value) -> Self {
        let mut talk = Self::playing(Own);
        talk.order(Order::Start);
        let info = json!({ "name": name, "version": "1.2.3" });
        let logins = json!([{ "id": "x", "name": "Key", "description": "Set `KEY`" }]);
        let about = json!({ "protocolVersion": 1, "agentInfo": info,
                            "agentCapabilities": can, "authMethods": logins });
        talk.answer_ok("initialize", about);
        talk
    }

    /// One with a new session, of which it says this.
    fn open(name: &str, mut told: Value, options: &Options) -> Self {
        let mut talk = Self::ready(name, json!({}));
        talk.open_session(ONLY_SESSION, &Open::New, options);
        told["sessionId"] = SESSION.into();
        talk.answer_ok("session/new", told);
        talk
    }

    /// One with a turn that runs.
    fn running(name: &str, options: &Options) -> Self {
        let mut talk = Self::open(name, json!({}), options);
        talk.prompt(TURN, "hi", options);
        talk
    }
}
