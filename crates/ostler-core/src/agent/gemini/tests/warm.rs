//! Gemini kept running: against what the real CLI said, and against its traps.

mod command_line;
mod properties;
mod talk;
mod transcripts;
mod traps;

use serde_json::{Value, json};

use self::talk::Talk;
use super::{super::warm::WARM, *};
use crate::agent::{TurnEnd, TurnKey};

const TURN: TurnKey = TurnKey(7);

fn asking() -> Options {
    Options { permissions: Permissions::Ask, ..options() }
}

/// The end of a turn.
fn end_of_turn(actions: &[Action], wanted: TurnKey) -> &TurnEnd {
    let mut ends = actions.iter().filter_map(|action| {
        let Action::EndTurn { turn, end } = action else { return None };
        (*turn == wanted).then_some(end.as_ref())
    });
    let end = ends.next().expect("the turn ends");
    assert!(ends.next().is_none(), "the turn ends once");
    end
}

/// The kind and the words of a turn's failure.
fn failure_of_turn(actions: &[Action]) -> (&str, &str) {
    let failure = end_of_turn(actions, TURN).failure.as_ref().expect("a failure");
    (failure.kind.code(), &failure.message)
}
