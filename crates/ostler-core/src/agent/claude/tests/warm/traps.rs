//! What a kept process does that would mislead a careless client, one test a trap.

use super::*;
use crate::{agent::testing::has_stopped, event::Stream};

#[test]
fn nothing_but_the_answer_to_the_greeting_makes_it_ready() {
    let mut talk = Talk::start(options(), &Open::New);
    assert_eq!(request_ids(&talk.actions, "initialize").len(), 1);
    let other = json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": "other", "response": {}}});
    assert!(talk.say(&other).is_empty());
    assert!(matches!(talk.confirm("initialize")[..], [Action::Ready]));
    assert!(talk.confirm("initialize").is_empty(), "once");
}

#[test]
fn a_greeting_that_is_refused_ends_the_process_and_tells_why() {
    let mut talk = Talk::start(options(), &Open::New);
    let refused = talk.respond("initialize", &json!({"subtype": "error", "error": "too old"}));
    assert!(has_stopped(&refused));
    let out = talk.exit(&exit(1, ""));
    let [Action::OpenFailed { failure, .. }] = &out[..] else { panic!("{out:?}") };
    assert_eq!((failure.kind.code(), failure.message.as_str()), ("spawn_failed", "too old"));
}

#[test]
fn a_start_that_fails_is_classified_where_its_words_are_known() {
    for (stderr, kind) in [
        ("No conversation found with session ID: x", Some("session_lost")),
        ("--dangerously-skip-permissions cannot be used with root/sudo privileges", Some("denied")),
        ("Segmentation fault", None),
    ] {
        let mut talk = Talk::start(options(), &resume("x"));
        let out = talk.exit(&exit(1, stderr));
        let failed = out.iter().find_map(|action| {
            let Action::OpenFailed { failure, .. } = action else { return None };
            Some(failure.kind.code())
        });
        assert_eq!(failed, kind, "{stderr}");
    }
}

#[test]
fn each_prompt_has_an_id_and_its_result_ends_it() {
    let mut talk = Talk::ready();
    talk.prompt(0, "one");
    let first = talk.message_id();
    talk.begin();
    assert_eq!(outcomes(&talk.finish("1")), [(0, "1")]);
    talk.prompt(1, "two");
    assert_ne!(talk.message_id(), first);
    let late = result(&[&first], "late");
    assert!(talk.say(&late).is_empty(), "a result of another message is not this one's");
    talk.begin();
    assert_eq!(outcomes(&talk.finish("2")), [(1, "2")]);
}

#[test]
fn a_version_that_names_no_messages_ends_the_prompt_by_the_next_result_without_origin() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    let init = json!({"type": "system", "subtype": "init", "session_id": NEW_ID});
    talk.say(&init);
    let mut unasked = result(&[], "late");
    unasked["origin"] = json!({"kind": "task-notification"});
    assert!(ends(&talk.say(&unasked)).is_empty());
    talk.say(&init);
    assert_eq!(outcomes(&talk.say(&result(&[], "mine"))), [(0, "mine")]);
    talk.say(&init);
    assert_eq!(talk.say(&says("by itself")).len(), 1);
    assert_eq!(super::unasked(&talk.actions), [TurnKey::unasked(0)]);
}

#[test]
fn a_turn_that_nobody_asked_for_is_told_as_such() {
    let mut talk = Talk::ready();
    talk.say(&init(&[]));
    let turn = TurnKey::unasked(0);
    assert_eq!(unasked(&talk.actions), [turn]);
    assert_eq!(told(&talk.say(&says("the build is done"))), [(turn.0, "the build is done")]);
    let mut end = result(&[], "the build is done");
    end["origin"] = json!({"kind": "task-notification"});
    assert_eq!(outcomes(&talk.say(&end)), [(turn.0, "the build is done")]);
    talk.say(&init(&[]));
    assert_eq!(unasked(&talk.actions).len(), 2);
}

#[test]
fn a_prompt_behind_an_unasked_turn_gets_its_own_answer() {
    let mut talk = Talk::ready();
    talk.say(&init(&[]));
    talk.prompt(0, "hi");
    let unasked = TurnKey::unasked(0).0;
    assert_eq!(told(&talk.say(&says("by itself"))), [(unasked, "by itself")]);
    assert_eq!(outcomes(&talk.say(&result(&[], "by itself"))), [(unasked, "by itself")]);
    talk.begin();
    assert_eq!(told(&talk.say(&says("hello"))), [(0, "hello")]);
    assert_eq!(outcomes(&talk.finish("hello")), [(0, "hello")]);
}

#[test]
fn a_prompt_that_the_cli_takes_into_an_unasked_turn_is_answered_all_the_same() {
    let mut talk = Talk::ready();
    talk.say(&init(&[]));
    talk.say(&says("by itself"));
    talk.prompt(0, "hi");
    let id = talk.message_id();
    let taken = talk.say(&lifecycle(&id, "started"));
    assert_eq!(outcomes(&taken), [(TurnKey::unasked(0).0, "by itself")]);
    assert_eq!(told(&talk.say(&says("hello"))), [(0, "hello")]);
    assert!(talk.say(&lifecycle(&id, "completed")).is_empty(), "the result comes later");
    let mut end = result(&[&id], "hello");
    end["origin"] = json!({"kind": "task-notification"});
    assert_eq!(outcomes(&talk.say(&end)), [(0, "hello")]);
}

#[test]
fn a_model_is_set_before_the_prompt_and_only_when_it_is_another() {
    let mut talk = Talk::ready();
    talk.played.options.model = Some("opus".into());
    assert_eq!(request_ids(&talk.prompt(0, "hi"), "set_model").len(), 1);
    let sent = talk.confirm("set_model");
    assert_eq!(written(&sent)[0]["message"]["content"], "hi");
    talk.begin();
    talk.finish("1");
    assert_eq!(written(&talk.prompt(1, "again"))[0]["type"], "user");
    talk.begin();
    talk.finish("2");
    talk.played.options.model = None;
    assert_eq!(written(&talk.prompt(2, "and again"))[0]["type"], "user", "it stays as it is");
}

#[test]
fn a_model_that_is_refused_fails_the_turn_and_not_the_process() {
    let mut talk = Talk::ready();
    talk.played.options.model = Some("none".into());
    talk.prompt(0, "hi");
    let refused = talk.respond("set_model", &json!({"subtype": "error", "error": "no such model"}));
    assert_eq!(outcomes(&refused), [(0, "invalid_request")]);
    talk.played.options.model = None;
    assert_eq!(written(&talk.prompt(1, "hi"))[0]["type"], "user");
}

#[test]
fn a_model_that_is_refused_for_a_cancelled_prompt_does_not_fail_the_next_one() {
    let mut talk = Talk::ready();
    talk.played.options.model = Some("none".into());
    talk.prompt(0, "hi");
    talk.cancel(0);
    talk.played.options.model = None;
    assert!(written(&talk.prompt(1, "next")).is_empty(), "it waits");
    let out = talk.respond("set_model", &json!({"subtype": "error", "error": "no such model"}));
    assert!(ends(&out).is_empty());
    assert_eq!(written(&out)[0]["message"]["content"], "next");
}

#[test]
fn a_slash_is_text_unless_commands_are_on() {
    let mut talk = Talk::ready();
    assert_eq!(written(&talk.prompt(0, "/clear"))[0]["client_composed"], true);
    talk.begin();
    talk.finish("");
    talk.played.options.prompt_commands = crate::request::PromptCommands::On;
    assert!(written(&talk.prompt(1, "/clear"))[0]["client_composed"].is_null());
}

#[test]
fn a_cleared_conversation_has_another_id_and_counts_anew() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.finish("1");
    talk.prompt(1, "/clear");
    talk.say(&lifecycle(&talk.message_id(), "started"));
    talk.say(&json!({"type": "conversation_reset", "new_conversation_id": "not this one"}));
    let mut cleared = init(&[&talk.message_id()]);
    cleared["session_id"] = json!("cleared");
    let opened = talk.say(&cleared);
    assert!(matches!(&opened[..], [Action::Opened { id, .. }] if id == "cleared"));
    let mut end = result(&[&talk.message_id()], "");
    end["total_cost_usd"] = json!(0.125);
    let out = talk.say(&end);
    assert_eq!(ends(&out)[0].1.usage.cost_usd, Some(0.125));
    assert_eq!(ends(&out)[0].1.totals.unwrap().cost_usd, 0.125);
}

#[test]
fn the_cost_is_that_of_the_turn_although_the_process_adds_up() {
    let mut talk = Talk::ready();
    for (turn, (total, cost)) in [(0.5, 0.5), (0.75, 0.25), (0.75, 0.0)].into_iter().enumerate() {
        talk.prompt(u32::try_from(turn).unwrap(), "hi");
        talk.begin();
        let mut end = result(&[&talk.message_id()], "");
        end["total_cost_usd"] = json!(total);
        let out = talk.say(&end);
        assert_eq!(ends(&out)[0].1.usage.cost_usd, Some(cost));
        assert_eq!(ends(&out)[0].1.totals.unwrap().cost_usd, total);
    }
}

#[test]
fn text_of_a_broken_connection_is_withdrawn() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    let event = |event: Value| json!({"type": "stream_event", "event": event});
    talk.say(&event(json!({"type": "message_start", "message": {"id": "m"}})));
    talk.say(&event(json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": "half"}})));
    let mut stop = event(json!({"type": "message_stop"}));
    stop["abandoned_blocks"] = json!({"api_message_id": "m", "from_block_index": 0});
    assert_eq!(statuses(&talk.say(&stop), "retracted").len(), 1);
}

#[test]
fn a_result_that_was_too_long_to_read_does_not_keep_the_turn_open() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.step(Input::Line { from: Stream::Stdout, bytes: b"{\"type\":\"res", cut: true });
    let out = talk.say(&lifecycle(&talk.message_id(), "completed"));
    assert_eq!(outcomes(&out), [(0, "unreadable_output")]);
}

#[test]
fn lines_that_cannot_be_read_are_passed_on_while_a_turn_runs() {
    let mut talk = Talk::ready();
    assert!(talk.step(stdout_line(b"banner")).is_empty());
    talk.prompt(0, "hi");
    assert_eq!(talk.step(stdout_line(b"before it began")).len(), 1);
    talk.begin();
    assert_eq!(talk.step(stdout_line(b"[1]")).len(), 1);
    assert_eq!(talk.say(&json!({"type": "news"})).len(), 1);
    assert_eq!(talk.say(&json!({"kind": "news"})).len(), 1);
}
