//! What holds whatever the server says, whatever is ordered, in any order.

use proptest::{collection::vec, prelude::*};

use super::{
    world::{RECORDED, World, happens},
    *,
};
use crate::agent::{
    Input, Order,
    testing::{exit, stdout_line},
};

const CASES: u32 = 400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn every_turn_ends_once_and_every_request_is_answered(
        story in vec(happens(), 0..60),
        code in 0..3,
    ) {
        let mut world = World::new();
        for what in story {
            world.happens(what);
        }
        prop_assert!(!world.replied_twice, "a request was answered twice");
        // What has no reply waits for a person, in a turn that goes on.
        prop_assert!(
            world.open_requests.len() <= world.asked.len(),
            "unanswered {:?}, asked {:?}", world.open_requests, world.asked
        );
        world.give(Input::Exited(&exit(code, "")));
        for turn in &world.begun {
            prop_assert_eq!(world.ended.get(turn), Some(&1), "turn {}", turn);
        }
    }

    #[test]
    fn nothing_that_is_said_before_the_start_is_over_does_harm(
        lines in vec(any::<Vec<u8>>(), 0..20),
        number in any::<usize>(),
    ) {
        let mut talk = Talk::new();
        talk.order(Order::Start);
        for line in &lines {
            talk.step(stdout_line(line));
        }
        talk.say(&RECORDED[number % RECORDED.len()]);
        talk.exit(&exit(1, ""));
        let n_failed = talk.actions.iter().filter(|a| matches!(a, Action::OpenFailed { .. })).count();
        prop_assert_eq!(n_failed, 1);
    }
}
