//! What holds whatever the server says, whatever is ordered, in any order.

use proptest::{collection::vec, prelude::*};

use super::server::Codex;
use crate::protocol::testing::{World, any_story, survives_before_the_start};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_turn_ends_once_and_every_request_is_answered(
        story in any_story::<Codex>(),
        code in 0..3,
    ) {
        World::<Codex>::new().live(story, code);
    }

    #[test]
    fn nothing_that_is_said_before_the_start_is_over_does_harm(
        lines in vec(any::<Vec<u8>>(), 0..20),
        line in any::<usize>(),
    ) {
        survives_before_the_start::<Codex>(&lines, line);
    }
}
