//! What the server asks, what people see of it, and what it is told.

use super::*;
use crate::permission::{Permission, PermissionKind, Ruling};

const ALLOW: Ruling = Ruling::Allow { text: None };
/// The message and the id of the first call.
const OF_FIRST: (&str, &str) = ("msg_a1", "c1");

/// A command runs.
fn runs(talk: &mut Talk, (id, message, call): (&str, &str, &str), command: &str) {
    let state =
        json!({ "status": "running", "input": { "command": command, "description": "A word" } });
    let part = json!({ "id": id, "messageID": message, "type": "tool", "tool": "bash", "callID": call, "state": state });
    talk.tell("message.part.updated", json!({ "part": part }));
}

fn asks(id: &str, what: &str, (message, call): (&str, &str)) -> Value {
    let tool = json!({ "messageID": message, "callID": call });
    json!({ "id": id, "permission": what, "patterns": ["/*"], "metadata": {}, "tool": tool })
}

fn two_questions() -> Value {
    let question = |text: &str| json!({ "question": text, "options": [{ "label": "Red" }, { "label": "Blue" }] });
    json!({ "id": "que_1", "questions": [question("Which?"), question("And?")] })
}

fn is_asked(out: &[Action]) -> bool {
    out.iter().any(|action| matches!(action, Action::Ask { .. }))
}

/// What somebody is asked.
fn asked(out: &[Action]) -> &Permission {
    let Some(Action::Ask { permission, .. }) = out.last() else { panic!("{out:?}") };
    permission
}

#[test]
fn one_call_is_asked_about_once_although_the_server_asks_twice() {
    let mut talk = Talk::running(&asking());
    runs(&mut talk, ("prt_1", "msg_a1", "c1"), "touch /x");
    let out = talk.tell("permission.asked", asks("per_1", "external_directory", OF_FIRST));
    let permission = asked(&out);
    assert_eq!((permission.kind, permission.tool.as_str()), (PermissionKind::Command, "bash"));
    assert!(permission.title.starts_with("touch /x"), "{}", permission.title);
    assert_eq!(permission.input, Some(json!({ "command": "touch /x" })));
    talk.decide("per_1", &ALLOW);
    assert_eq!(*talk.body("/permission/per_1/reply"), json!({ "reply": "once" }));
    let out = talk.tell("permission.asked", asks("per_2", "bash", OF_FIRST));
    assert!(!is_asked(&out), "{out:?}");
    assert_eq!(*talk.body("/permission/per_2/reply"), json!({ "reply": "once" }));
}

#[test]
fn another_call_with_the_id_of_one_that_was_allowed_is_asked_about_as_what_it_is() {
    let mut talk = Talk::running(&asking());
    runs(&mut talk, ("prt_1", "msg_a1", "c1"), "touch /x");
    talk.tell("permission.asked", asks("per_1", "bash", OF_FIRST));
    talk.decide("per_1", &ALLOW);
    talk.assistant("msg_a2", "msg_u1", json!({}));
    runs(&mut talk, ("prt_2", "msg_a2", "c1"), "rm -r /x");
    let out = talk.tell("permission.asked", asks("per_2", "bash", ("msg_a2", "c1")));
    assert_eq!(asked(&out).title, "rm -r /x");
    assert_eq!(asked(&out).input, Some(json!({ "command": "rm -r /x" })));
}

#[test]
fn a_call_that_became_another_one_is_asked_about_again() {
    let mut talk = Talk::running(&asking());
    runs(&mut talk, ("prt_1", "msg_a1", "c1"), "touch /x");
    talk.tell("permission.asked", asks("per_1", "bash", OF_FIRST));
    talk.decide("per_1", &ALLOW);
    runs(&mut talk, ("prt_1", "msg_a1", "c1"), "rm -r /x");
    let out = talk.tell("permission.asked", asks("per_2", "bash", OF_FIRST));
    assert_eq!(asked(&out).title, "rm -r /x");
}

#[test]
fn a_call_of_a_helper_with_the_id_of_one_that_was_allowed_is_asked_about() {
    let mut talk = Talk::running(&asking());
    runs(&mut talk, ("prt_1", "msg_a1", "c1"), "touch /x");
    talk.tell("permission.asked", asks("per_1", "bash", OF_FIRST));
    talk.decide("per_1", &ALLOW);
    let info = json!({ "id": "ses_child", "parentID": SESSION });
    talk.tell("session.created", json!({ "sessionID": "ses_child", "info": info }));
    let state = json!({ "status": "running", "input": { "command": "rm -r /x" } });
    let part = json!({ "id": "prt_c", "messageID": "msg_c", "type": "tool", "tool": "bash", "callID": "c1", "state": state });
    talk.tell("message.part.updated", json!({ "sessionID": "ses_child", "part": part }));
    let mut request = asks("per_2", "bash", ("msg_c", "c1"));
    request["sessionID"] = "ses_child".into();
    let out = talk.tell("permission.asked", request);
    assert_eq!(asked(&out).title, "rm -r /x");
}

#[test]
fn a_request_that_names_no_message_is_about_the_only_running_call_with_its_id() {
    let mut talk = Talk::running(&asking());
    let nameless = |id: &str| json!({ "id": id, "permission": "bash", "patterns": ["rm *"], "metadata": {}, "tool": { "callID": "c1" } });
    runs(&mut talk, ("prt_1", "msg_a1", "c1"), "touch /x");
    let out = talk.tell("permission.asked", nameless("per_1"));
    assert_eq!(asked(&out).title, "touch /x");
    talk.decide("per_1", &ALLOW);
    let state = json!({ "status": "completed", "input": { "command": "touch /x" }, "output": "" });
    let part = json!({ "id": "prt_1", "messageID": "msg_a1", "type": "tool", "tool": "bash", "callID": "c1", "state": state });
    talk.tell("message.part.updated", json!({ "part": part }));
    let out = talk.tell("permission.asked", nameless("per_2"));
    assert_eq!(asked(&out).title, "rm *", "the one that is known is over");
    runs(&mut talk, ("prt_2", "msg_a1", "c1"), "touch /y");
    let out = talk.tell("permission.asked", nameless("per_3"));
    assert_eq!(asked(&out).title, "rm *", "it may be either");
}

#[test]
fn a_request_that_comes_before_its_call_shows_what_is_asked_and_opens_nothing_else() {
    let mut talk = Talk::running(&asking());
    for metadata in [json!({}), Value::Null, json!({ "description": "Clean up" })] {
        let mut request = asks("per_1", "bash", OF_FIRST);
        request["metadata"] = metadata;
        request["patterns"] = json!(["rm -r /x", "ls"]);
        let out = talk.tell("permission.asked", request);
        assert_eq!(asked(&out).title, "rm -r /x, ls");
        let input = json!({ "permission": "bash", "patterns": ["rm -r /x", "ls"] });
        assert_eq!(asked(&out).input, Some(input));
        talk.tell("permission.replied", json!({ "requestID": "per_1" }));
    }
    talk.tell("permission.asked", asks("per_2", "external_directory", OF_FIRST));
    talk.decide("per_2", &ALLOW);
    runs(&mut talk, ("prt_1", "msg_a1", "c1"), "rm -r /x");
    let out = talk.tell("permission.asked", asks("per_3", "bash", OF_FIRST));
    assert_eq!(asked(&out).title, "rm -r /x", "nobody has seen it yet");
}

#[test]
fn a_request_that_says_nothing_of_itself_cannot_be_allowed_for_good() {
    let mut talk = Talk::running(&asking());
    let out = talk.tell("permission.asked", json!({ "id": "per_1", "permission": "bash" }));
    assert_eq!((asked(&out).title.as_str(), &asked(&out).input), ("bash", &None));
}

#[test]
fn a_denial_has_a_word_with_it_because_the_turn_would_end_without() {
    let mut talk = Talk::running(&asking());
    talk.tell(
        "permission.asked",
        json!({ "id": "per_1", "permission": "bash", "patterns": ["x"] }),
    );
    talk.decide("per_1", &Ruling::Deny { why: String::new() });
    let body = talk.body("/permission/per_1/reply");
    assert_eq!(*body, json!({ "reply": "reject", "message": "denied" }));
}

#[test]
fn what_is_asked_of_no_turn_is_denied_and_what_is_left_at_the_end_too() {
    let mut talk = Talk::running(&asking());
    talk.tell(
        "permission.asked",
        json!({ "id": "per_1", "permission": "bash", "patterns": ["x"] }),
    );
    talk.complete("1", "stop");
    talk.idle();
    assert_eq!(talk.body("/permission/per_1/reply")["reply"], "reject");
    talk.tell(
        "permission.asked",
        json!({ "id": "per_2", "permission": "bash", "patterns": ["x"] }),
    );
    assert_eq!(talk.body("/permission/per_2/reply")["reply"], "reject");
}

#[test]
fn questions_are_asked_one_after_the_other_and_answered_together() {
    let mut talk = Talk::running(&asking());
    talk.tell("question.asked", two_questions());
    let blue = Ruling::Allow { text: Some("Blue".to_owned()) };
    let out = talk.decide("que_1", &blue);
    assert!(matches!(&out[0], Action::Ask { permission, .. } if permission.title == "And?"));
    talk.decide("que_1-2", &Ruling::Allow { text: Some("Red".to_owned()) });
    assert_eq!(talk.body("/question/que_1/reply")["answers"], json!([["Blue"], ["Red"]]));
}

#[test]
fn a_question_that_is_allowed_without_a_text_is_left_unanswered() {
    let mut talk = Talk::running(&asking());
    talk.tell("question.asked", two_questions());
    talk.decide("que_1", &ALLOW);
    talk.decide("que_1-2", &Ruling::Allow { text: Some("Red".to_owned()) });
    assert_eq!(talk.body("/question/que_1/reply")["answers"], json!([[], ["Red"]]));
}
