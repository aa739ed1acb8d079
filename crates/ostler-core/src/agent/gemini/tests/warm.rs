//! Gemini kept running: against what the real CLI said, and against its traps.

mod command_line;
mod properties;
mod talk;
mod transcripts;
mod traps;

use serde_json::{Value, json};

use self::talk::Talk;
use super::{super::warm::WARM, *};
use crate::agent::{
    TurnKey,
    testing::{end_of_turn, written},
};

const TURN: TurnKey = TurnKey(7);

fn asking() -> Options {
    Options { permissions: Permissions::Ask, ..options() }
}

/// The kind and the words of the turn's failure.
fn failure(actions: &[Action]) -> (&str, &str) {
    testing::failure_of_turn(actions, TURN)
}
