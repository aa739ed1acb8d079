//! The server against what the real one said, and against its known traps.

mod approvals;
mod command_line;
mod errors;
mod interrupting;
mod properties;
mod sessions;
mod talk;
mod transcripts;
mod turns;
mod world;

use serde_json::{Value, json};

use self::talk::Talk;
use crate::{
    agent::{Action, TurnEnd, TurnKey, testing::statuses},
    event::EventBody,
    memo::Memo,
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

/// The end of a turn.
fn end_of(actions: &[Action], wanted: TurnKey) -> &TurnEnd {
    let mut ends = actions.iter().filter_map(|action| {
        let Action::EndTurn { turn, end } = action else { return None };
        (*turn == wanted).then_some(end.as_ref())
    });
    let end = ends.next().expect("the turn ends");
    assert!(ends.next().is_none(), "the turn ends once");
    end
}

/// The kind and the words of a turn's failure.
fn failure_of(actions: &[Action], turn: TurnKey) -> (&str, &str) {
    let failure = end_of(actions, turn).failure.as_ref().expect("a failure");
    (failure.kind.code(), &failure.message)
}
