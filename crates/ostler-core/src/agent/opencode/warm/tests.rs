//! The server against what the real one said, and against its known traps.

mod calls;
mod properties;
mod resyncing;
mod talk;
mod transcripts;
mod traps;

use serde_json::{Value, json};

use self::talk::{SESSION, Talk};
use crate::{
    agent::{Action, TurnEnd, TurnKey, testing::statuses},
    event::{EventBody, Status},
    request::{Options, Permissions},
};

const FIRST: TurnKey = TurnKey(1);
const SECOND: TurnKey = TurnKey(2);

fn options() -> Options {
    Options { permissions: Permissions::Bypass, ..Options::new("/workspace") }
}

fn asking() -> Options {
    Options { permissions: Permissions::Ask, ..options() }
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

fn has_ended(actions: &[Action], wanted: TurnKey) -> bool {
    actions.iter().any(|action| matches!(action, Action::EndTurn { turn, .. } if *turn == wanted))
}

/// The kind and the words of a turn's failure.
fn failure_of(actions: &[Action], turn: TurnKey) -> (&str, &str) {
    let failure = end_of(actions, turn).failure.as_ref().expect("a failure");
    (failure.kind.code(), &failure.message)
}

/// The text that a reader of the events is left with.
fn shown(actions: &[Action]) -> String {
    let mut blocks: Vec<(&str, &str)> = Vec::new();
    for action in actions {
        let Action::Emit { event, .. } = action else { continue };
        if let EventBody::Output { text, block } = event {
            blocks.push((block, text));
        }
        if let EventBody::Status(Status::Retracted { block }) = event {
            blocks.retain(|(name, _)| name != block);
        }
    }
    blocks.into_iter().map(|(_, text)| text).collect()
}
