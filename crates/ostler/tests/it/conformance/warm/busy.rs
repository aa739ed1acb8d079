//! A prompt that comes while a turn runs.

use std::fs;

use ostler_sim::model;
use serde_json::Value;

use super::for_every_warm_agent;
use crate::{
    conformance::{Facts, rig::Rig},
    support::until,
};

for_every_warm_agent! {
    a_steering_prompt_joins_the_turn_or_waits_and_says_which
    an_interrupting_prompt_ends_the_turn_and_is_answered
}

fn is_status(code: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == "status" && event["code"] == code
}

fn a_steering_prompt_joins_the_turn_or_waits_and_says_which(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&["--when-busy", "steer"]);
    let (begun, go) = (rig.place.path("begun"), rig.place.path("go"));
    let (begun_path, go_path) = (begun.display(), go.display());
    let wait = format!("touch {begun_path}; until [ -e {go_path} ]; do sleep 0.1; done");
    chat.prompt(&format!("sim:run={wait}"));
    until("the tool runs", || begun.exists().then_some(()));
    chat.prompt("hello");
    let warm = ostler_core::agent::find(facts.agent).unwrap().warm.unwrap();
    if warm.supports_steering {
        chat.wait_for(is_status("steered"));
        fs::write(&go, "").unwrap();
        assert_eq!(chat.finish().last()["response_text"], model::HELLO);
    } else {
        let queued = chat.wait_for(is_status("queued"));
        assert!(queued["text"].as_str().unwrap().contains("cannot be steered"), "{queued}");
        chat.forget_asides();
        fs::write(&go, "").unwrap();
        assert_ne!(chat.finish().last()["response_text"], model::HELLO);
        assert_eq!(chat.finish().last()["response_text"], model::HELLO);
    }
    let history = chat.answer_to("sim:history");
    assert!(history.starts_with("I remember 3 prompts"), "{history}");
    chat.end();
}

fn an_interrupting_prompt_ends_the_turn_and_is_answered(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut chat = rig.chat(&["--when-busy", "interrupt"]);
    chat.prompt("sim:slow=60000");
    chat.wait_for(|event| event["type"] == "output");
    chat.prompt("hello");
    chat.wait_for(is_status("queued"));
    chat.forget_asides();
    assert_eq!(chat.finish().last()["error"]["kind"], "cancelled");
    assert_eq!(chat.finish().last()["response_text"], model::HELLO);
    chat.end();
}
