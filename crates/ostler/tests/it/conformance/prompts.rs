//! A prompt is text: whatever it looks like, it arrives as it was typed.

use ostler_sim::model;

use super::{Facts, for_every_agent, rig::Rig};
use crate::support::Model;

for_every_agent! {
    a_prompt_of_200_kb_arrives_whole
    prompts_that_look_like_options_arrive_as_typed
    prompts_that_look_like_files_and_commands_arrive_as_typed
    emoji_and_newlines_arrive_as_typed
    the_literal_line_passes_prompts_it_could_misread_on_standard_input
    an_empty_prompt_is_refused
}

/// Asserts that the model got exactly this prompt, and got it once.
fn check(facts: &'static Facts, prompts: &[&str], args: &[&str]) {
    let Some(rig) = Rig::with_model(facts, Model::with_fallback("echo")) else {
        return;
    };
    for prompt in prompts {
        let (code, events) = rig.ask(prompt, args);
        let start: String = prompt.chars().take(40).collect();
        assert_eq!(code, Some(0), "{start:?}: {}", events.last());
        let arrives = (facts.arrives)(prompt);
        assert_eq!(events.last()["response_text"], model::echo(&arrives), "{start:?}");
    }
    let asked: Vec<_> = rig.model.requests().iter().filter_map(|r| r.prompt.clone()).collect();
    let arrived: Vec<_> = prompts.iter().map(|prompt| (facts.arrives)(prompt)).collect();
    assert_eq!(asked, arrived, "one request each");
}

fn a_prompt_of_200_kb_arrives_whole(facts: &'static Facts) {
    let prompt: String = (0..).map(|n| format!("line {n} \u{1f40e}\n")).take(16_000).collect();
    assert!(prompt.len() > 200_000);
    check(facts, &[&prompt], &[]);
}

fn prompts_that_look_like_options_arrive_as_typed(facts: &'static Facts) {
    check(facts, &["--help", "-", "--dangerously-skip-permissions"], &[]);
}

fn prompts_that_look_like_files_and_commands_arrive_as_typed(facts: &'static Facts) {
    check(facts, &["@/etc/hostname", "/help", "resume", "!ls"], &[]);
}

fn emoji_and_newlines_arrive_as_typed(facts: &'static Facts) {
    check(
        facts,
        &["a\n\n  b\tc \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \"q\" 'q' $HOME `x` \\n"],
        &[],
    );
}

fn the_literal_line_passes_prompts_it_could_misread_on_standard_input(facts: &'static Facts) {
    check(facts, &["-x", "@/etc/hostname"], &["--format", "json"]);
}

fn an_empty_prompt_is_refused(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    for prompt in ["", " \n"] {
        let outcome = rig.outcome(prompt, &[]);
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains("prompt required"), "{}", outcome.stderr);
    }
    assert!(rig.model.requests().is_empty());
}
