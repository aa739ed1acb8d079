//! The server against what the real one said, and against its known traps.

mod asking;
mod attached;
mod calls;
mod draining;
mod flat;
mod properties;
mod races;
mod resyncing;
mod rules;
mod steering;
mod talk;
mod transcripts;
mod traps;

use serde_json::{Value, json};

use self::talk::{SESSION, Talk};
use crate::{
    agent::{
        Action, TurnKey,
        testing::{end_of_turn as end_of, failure_of_turn as failure_of, statuses},
    },
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

fn has_ended(actions: &[Action], wanted: TurnKey) -> bool {
    actions.iter().any(|action| matches!(action, Action::EndTurn { turn, .. } if *turn == wanted))
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
