//! A prompt is text in a conversation, too.

use ostler_sim::model;

use super::for_every_warm_agent;
use crate::{
    conformance::{Facts, rig::Rig},
    support::Model,
};

for_every_warm_agent! {
    a_prompt_of_200_kb_arrives_whole
    prompts_that_look_like_something_else_arrive_as_typed
    emoji_and_newlines_arrive_as_typed
}

fn check(facts: &'static Facts, prompts: &[&str]) {
    let Some(rig) = Rig::with_model(facts, Model::with_fallback("echo")) else {
        return;
    };
    let mut chat = rig.chat(&[]);
    for prompt in prompts {
        let start: String = prompt.chars().take(40).collect();
        let arrives = (facts.kept.arrives)(prompt);
        assert_eq!(chat.answer_to(prompt), model::echo(&arrives), "{start:?}");
    }
    let asked: Vec<_> = rig.model.requests().iter().filter_map(|r| r.prompt.clone()).collect();
    let arrived: Vec<_> = prompts.iter().map(|prompt| (facts.kept.arrives)(prompt)).collect();
    assert_eq!(asked, arrived, "one request each");
    chat.end();
}

fn a_prompt_of_200_kb_arrives_whole(facts: &'static Facts) {
    let prompt: String = (0..).map(|n| format!("line {n} \u{1f40e}\n")).take(16_000).collect();
    check(facts, &[&prompt]);
}

fn prompts_that_look_like_something_else_arrive_as_typed(facts: &'static Facts) {
    check(
        facts,
        &["--help", "-x", "@/etc/hostname", "/help", "/cost", "resume", "!ls", "#note", "$HOME"],
    );
}

fn emoji_and_newlines_arrive_as_typed(facts: &'static Facts) {
    check(
        facts,
        &["a\n\n  b\tc \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \"q\" 'q' $HOME `x` \\n"],
    );
}
