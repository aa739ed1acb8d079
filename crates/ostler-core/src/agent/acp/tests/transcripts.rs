//! Recorded conversations with real agents, and what came of them.

use std::fs;

use super::*;
use crate::{agent::play, protocol::acp::testing::Player};

#[test]
fn every_transcript_reads_as_its_snapshot_and_ends_every_turn_once() {
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../fixtures/acp", "*/warm-*.jsonl", |path| {
            let mut player = Player::new(Own, asking(), str::to_owned);
            player.play(&fs::read_to_string(path).unwrap());
            player.talk.exit(&testing::exit(0, ""));
            for turn in 0..player.n_turns {
                end_of_turn(&player.talk.actions, TurnKey(turn));
            }
            let program = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
            insta::with_settings!({snapshot_suffix => format!("{program}-{}", path.file_stem().unwrap().to_str().unwrap())}, {
                insta::assert_snapshot!("warm", play::transcript(&player.talk.actions));
            });
        });
    });
}
