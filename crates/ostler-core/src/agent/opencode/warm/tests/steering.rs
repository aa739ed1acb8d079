//! Further texts for a turn that waits, runs, ends or is stopped.

use super::*;
use crate::agent::{ONLY_SESSION, Order};

const TEXT: &str = "and in French";

fn steer(talk: &mut Talk, text: &str) -> Vec<Action> {
    talk.order(Order::Steer { turn: FIRST, text })
}

fn n_prompts(talk: &Talk) -> usize {
    talk.urls().iter().filter(|url| url.contains("/prompt_async")).count()
}

fn warnings(talk: &Talk) -> Vec<&str> {
    let all = statuses(&talk.actions, "warning");
    all.into_iter().filter(|text| text.starts_with("not taken into account")).collect()
}

#[test]
fn a_turn_does_not_end_while_a_further_text_is_on_its_way() {
    let mut talk = Talk::running(&options());
    steer(&mut talk, TEXT);
    talk.complete("1", "stop");
    talk.idle();
    for _ in 0..3 {
        let out = talk.ring();
        assert!(matches!(out.as_slice(), [Action::Arm { .. }]), "{out:?}");
    }
    talk.reply("/prompt_async", 204, &Value::Null);
    talk.begin("2");
    talk.text("msg_a2", "prt_2", "Bonjour", true);
    assert!(talk.ring().is_empty(), "it goes on");
    talk.complete("2", "stop");
    talk.idle();
    assert_eq!(end_of(&talk.actions, FIRST).text.as_deref(), Some("Bonjour"));
}

#[test]
fn a_further_text_that_was_taken_at_the_end_has_a_moment_to_be_taken_up() {
    let mut talk = Talk::running(&options());
    steer(&mut talk, TEXT);
    talk.complete("1", "stop");
    talk.idle();
    let before = talk.actions.iter().rev().find_map(|action| {
        let Action::Arm { timer, .. } = action else { return None };
        Some(*timer)
    });
    talk.reply("/prompt_async", 204, &Value::Null);
    talk.step(crate::agent::Input::Timer(before.unwrap()));
    assert!(!has_ended(&talk.actions, FIRST), "it was taken just now");
    talk.ring();
    assert!(has_ended(&talk.actions, FIRST), "nothing came of it");
}

#[test]
fn a_further_text_that_is_not_taken_at_the_end_does_not_hold_the_turn() {
    let mut talk = Talk::running(&options());
    steer(&mut talk, TEXT);
    talk.complete("1", "stop");
    talk.idle();
    talk.reply("/prompt_async", 500, &json!("no"));
    talk.ring();
    assert!(end_of(&talk.actions, FIRST).failure.is_none());
    assert_eq!(warnings(&talk).len(), 1);
}

#[test]
fn too_many_further_texts_are_refused_with_a_word() {
    let mut talk = Talk::running(&options());
    for _ in 0..101 {
        steer(&mut talk, TEXT);
    }
    assert_eq!(n_prompts(&talk), 100);
    let [warning] = warnings(&talk)[..] else { panic!("{:?}", warnings(&talk)) };
    assert!(warning.ends_with(TEXT), "{warning}");
    talk.reply("/prompt_async", 204, &Value::Null);
    steer(&mut talk, TEXT);
    assert_eq!((n_prompts(&talk), warnings(&talk).len()), (100, 1), "there is room again");
}

#[test]
fn too_many_further_texts_for_a_turn_that_waits_are_refused_too() {
    let mut talk = Talk::ready();
    let open = crate::request::Open::New;
    talk.order(Order::Open { session: ONLY_SESSION, open: &open, options: &options() });
    talk.prompt(FIRST, "hi", &options());
    for _ in 0..102 {
        steer(&mut talk, TEXT);
    }
    assert_eq!(warnings(&talk).len(), 2);
    talk.reply("/session?", 200, &json!({ "id": SESSION, "directory": "/workspace" }));
    assert_eq!(n_prompts(&talk), 101, "the prompt and what waited with it");
}

#[test]
fn a_further_text_for_a_turn_that_is_being_stopped_is_said_to_be_lost() {
    let mut talk = Talk::running(&options());
    talk.cancel(FIRST);
    steer(&mut talk, TEXT);
    assert_eq!(n_prompts(&talk), 0);
    let [warning] = warnings(&talk)[..] else { panic!("{:?}", warnings(&talk)) };
    assert!(warning.ends_with(TEXT), "{warning}");
}
