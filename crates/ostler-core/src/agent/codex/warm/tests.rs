//! The server against what the real one said, and against its known traps.

mod approvals;
mod command_line;
mod errors;
mod interrupting;
mod properties;
mod server;
mod sessions;
mod talk;
mod transcripts;
mod turns;

use serde_json::{Value, json};

use self::talk::Talk;
use crate::{
    agent::{
        Action, TurnKey,
        testing::{end_of_turn as end_of, failure_of_turn as failure_of, statuses, written},
    },
    event::EventBody,
    memo::Memo,
    protocol::testing::methods,
    request::{Open, Options, Permissions},
};

const THREAD: &str = "01a1e08f-eb0e-76c1-b501-a59796bde639";
const TURN: &str = "01a1e08f-eb31-7d11-857c-43f036836fb7";

fn options() -> Options {
    Options::new("/workspace/ws")
}

fn asking() -> Options {
    Options { permissions: Permissions::Ask, ..options() }
}

fn resume() -> Open {
    Open::Resume(Box::new(Memo::of_id("codex", THREAD)))
}
