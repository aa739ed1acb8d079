//! What the CLI asks for, and that every request gets its answer.

use super::*;
use crate::permission::PermissionKind;

fn allow(text: Option<&str>) -> Ruling {
    Ruling::Allow { text: text.map(str::to_owned) }
}

#[test]
fn requests_are_passed_on_with_their_kind_and_what_they_are_about() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    for (tool, input, kind, title) in [
        ("Bash", json!({"command": "a &&\nb"}), PermissionKind::Command, "a &&\nb"),
        ("Edit", json!({"file_path": "/a"}), PermissionKind::Edit, "/a"),
        ("Write", json!({"file_path": "/a"}), PermissionKind::Edit, "/a"),
        ("NotebookEdit", json!({"notebook_path": "/n"}), PermissionKind::Edit, "/n"),
        ("Read", json!({"file_path": "/a"}), PermissionKind::Read, "/a"),
        ("Glob", json!({"pattern": "*"}), PermissionKind::Read, "*"),
        ("Grep", json!({"pattern": "x"}), PermissionKind::Read, "x"),
        ("WebFetch", json!({"url": "http://a"}), PermissionKind::Network, "http://a"),
        ("WebSearch", json!({"query": "q"}), PermissionKind::Network, "q"),
        ("mcp__db__drop", json!({}), PermissionKind::Other, "mcp__db__drop"),
    ] {
        let out = talk.say(&asks(tool, tool, &input));
        let [permission] = asked(&out)[..] else { panic!("{out:?}") };
        assert_eq!((permission.kind, permission.title.as_str()), (kind, title), "{tool}");
        assert_eq!(permission.options, Permission::decisions());
        assert_eq!(permission.input.as_ref(), Some(&input));
        let out = talk.answer(0, tool, &allow(None));
        let response = written(&out)[0]["response"].clone();
        assert_eq!(response["request_id"], tool);
        assert_eq!(response["response"], json!({"behavior": "allow", "updatedInput": input}));
        assert!(talk.answer(0, tool, &allow(None)).is_empty(), "once");
    }
}

#[test]
fn a_denial_tells_the_model_why() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.say(&asks("r", "Bash", &json!({"command": "rm -r /"})));
    let out = talk.answer(0, "r", &Ruling::Deny { why: "never".into() });
    let response = &written(&out)[0]["response"]["response"];
    assert_eq!(*response, json!({"behavior": "deny", "message": "never"}));
}

#[test]
fn several_questions_are_asked_one_by_one_and_answered_together() {
    let question =
        |text: &str| json!({"question": text, "options": [{"label": "Yes"}, {"label": "No"}]});
    let input = json!({"questions": [question("Sure?"), question("Really?"), question("Why?")]});
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.say(&asks("r", "AskUserQuestion", &input));
    talk.answer(0, "r", &allow(Some("yes")));
    talk.answer(0, "r.2", &allow(None));
    let out = talk.answer(0, "r.3", &allow(Some("because")));
    let all = asked(&talk.actions);
    let titles: Vec<_> = all.iter().map(|permission| permission.title.as_str()).collect();
    assert_eq!(titles, ["Sure?", "Really?", "Why?"]);
    assert!(all.iter().all(|permission| permission.kind == PermissionKind::Question));
    assert_eq!(all[0].options, ["Yes", "No"]);
    let updated = &written(&out)[0]["response"]["response"]["updatedInput"];
    assert_eq!(updated["questions"], input["questions"]);
    assert_eq!(updated["answers"], json!({"Sure?": "Yes", "Why?": "because"}));
}

#[test]
fn a_request_that_the_cli_takes_back_needs_no_answer() {
    let mut talk = Talk::ready();
    talk.prompt(0, "hi");
    talk.begin();
    talk.say(&asks("r", "Bash", &json!({})));
    let out = talk.say(&json!({"type": "control_cancel_request", "request_id": "r"}));
    assert!(matches!(&out[..], [Action::Withdraw { request, .. }] if request == "r"));
    assert!(talk.answer(0, "r", &allow(None)).is_empty());
}

#[test]
fn no_request_is_left_without_an_answer() {
    let mut talk = Talk::ready();
    let out = talk.say(&asks("between turns", "Bash", &json!({})));
    assert_eq!(written(&out)[0]["response"]["response"]["behavior"], "deny");
    let other = json!({"type": "control_request", "request_id": "hook",
        "request": {"subtype": "hook_callback"}});
    let out = talk.say(&other);
    assert_eq!(written(&out)[0]["response"]["subtype"], "error");
    assert_eq!(written(&out)[0]["response"]["request_id"], "hook");
    talk.prompt(0, "hi");
    talk.begin();
    talk.say(&asks("left open", "Bash", &json!({})));
    let out = talk.finish("done");
    assert_eq!(written(&out)[0]["response"]["request_id"], "left open");
    assert_eq!(written(&out)[0]["response"]["response"]["behavior"], "deny");
    assert!(matches!(out.last(), Some(Action::EndTurn { .. })), "before the turn is over");
}
