//! What becomes of every conversation that was recorded with a kept process.

use super::{player::Player, *};

#[test]
fn every_recorded_conversation_gives_the_actions_that_were_reviewed() {
    insta::glob!("../../../../../../../fixtures/claude", "*/warm-*.jsonl", |path| {
        let player = Player::play(path);
        let turns =
            (0..player.n_prompts()).chain(unasked(player.actions()).into_iter().map(|key| key.0));
        for turn in turns {
            let n_ends = ends(player.actions()).iter().filter(|(ended, _)| *ended == turn).count();
            assert_eq!(n_ends, 1, "turn {turn} of {}", path.display());
        }
        insta::with_settings!({
            omit_expression => true,
            prepend_module_to_snapshot => false,
        }, {
            insta::assert_snapshot!("warm", player.notes);
        });
    });
}
