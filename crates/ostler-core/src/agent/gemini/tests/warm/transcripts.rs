//! Every recorded conversation with the real CLI, and what came of it.

use std::fs;

use super::{talk::Gemini, *};
use crate::protocol::acp::testing::Player;

#[test]
fn every_transcript_reads_as_its_snapshot_and_ends_every_turn_once() {
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../../fixtures/gemini", "*/warm-*.jsonl", |path| {
            let gemini = Gemini { session: SESSION.to_owned() };
            let mut player = Player::new(gemini, asking(), |id| format!(" {id}"));
            player.play(&fs::read_to_string(path).unwrap());
            for turn in 0..player.n_turns {
                end_of_turn(&player.talk.actions, TurnKey(turn));
            }
            insta::assert_snapshot!("warm", play::transcript(&player.talk.actions));
        });
    });
}
