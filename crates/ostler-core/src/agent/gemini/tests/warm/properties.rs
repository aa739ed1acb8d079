//! What holds whatever the agent says, whatever is ordered, in any order.

use proptest::{collection::vec, prelude::*};

use super::talk::Gemini;
use crate::protocol::testing::{World, any_story, survives_before_the_start};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_turn_ends_once_and_every_request_is_answered(
        story in any_story::<Gemini>(),
        code in 0..3,
    ) {
        World::<Gemini>::new().live(story, code);
    }

    #[test]
    fn nothing_that_is_said_before_the_start_is_over_does_harm(
        lines in vec(any::<Vec<u8>>(), 0..20),
        line in any::<usize>(),
    ) {
        survives_before_the_start::<Gemini>(&lines, line);
    }
}
