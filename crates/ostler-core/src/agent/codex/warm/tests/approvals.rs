//! What the server asks, and what it is told.

use super::*;
use crate::permission::{Permission, PermissionKind, Ruling};

const FIRST: TurnKey = TurnKey(0);

fn ask(talk: &mut Talk, id: Value, method: &str, mut params: Value) -> Vec<Action> {
    params["threadId"] = THREAD.into();
    params["turnId"] = TURN.into();
    talk.say(&json!({ "id": id, "method": method, "params": params }))
}

fn asked(actions: &[Action]) -> &Permission {
    let [Action::Ask { turn: FIRST, permission }] = actions else { panic!("{actions:?}") };
    permission
}

fn allow() -> Ruling {
    Ruling::Allow { text: None }
}

fn deny() -> Ruling {
    Ruling::Deny { why: "no".to_owned() }
}

#[test]
fn a_command_is_shown_whole_and_answered_once() {
    let mut talk = Talk::running(&asking(), FIRST);
    let params = json!({ "kind": "command", "itemId": "c", "command": "touch /tmp/x", "cwd": "/w",
        "reason": "Need it", "availableDecisions": ["accept", "cancel"] });
    let then = ask(&mut talk, json!(0), "item/commandExecution/requestApproval", params);
    let permission = asked(&then).clone();
    assert_eq!(permission.kind, PermissionKind::Command);
    assert_eq!(permission.title, "touch /tmp/x — Need it");
    assert_eq!(permission.input, Some(json!({ "command": "touch /tmp/x", "cwd": "/w" })));
    assert_eq!(permission.options, Permission::decisions());
    let then = talk.decide(FIRST, &permission.request, &allow());
    assert_eq!(written(&then), [json!({ "id": 0, "result": { "decision": "accept" } })]);
    assert!(talk.decide(FIRST, &permission.request, &allow()).is_empty());
}

#[test]
fn a_change_of_files_is_shown_with_the_paths_of_its_item() {
    let mut talk = Talk::running(&asking(), FIRST);
    let change = json!({ "path": "/w/a", "kind": { "type": "add" }, "diff": "hello\n" });
    let item =
        json!({ "type": "fileChange", "id": "f", "changes": [change], "status": "inProgress" });
    talk.tell_turn("item/started", json!({ "item": item }));
    let params = json!({ "itemId": "f", "reason": null, "grantRoot": null });
    let then = ask(&mut talk, json!("r1"), "item/fileChange/requestApproval", params);
    let permission = asked(&then).clone();
    assert_eq!((permission.kind, permission.title.as_str()), (PermissionKind::Edit, "add /w/a"));
    assert_eq!(permission.input.as_ref().unwrap()["changes"][0]["diff"], "hello\n");
    let then = talk.decide(FIRST, &permission.request, &deny());
    assert_eq!(written(&then), [json!({ "id": "r1", "result": { "decision": "decline" } })]);
}

#[test]
fn a_host_is_a_matter_of_the_network() {
    let mut talk = Talk::running(&asking(), FIRST);
    let context = json!({ "host": "example.com", "protocol": "https" });
    let params = json!({ "itemId": "c", "networkApprovalContext": context });
    let then = ask(&mut talk, json!(0), "item/commandExecution/requestApproval", params);
    let permission = asked(&then);
    assert_eq!((permission.kind, &*permission.title), (PermissionKind::Network, "example.com"));
}

#[test]
fn further_permissions_are_granted_for_the_turn_or_not_at_all() {
    let wanted = json!({ "network": null, "fileSystem": { "write": ["/w"] } });
    for (ruling, granted) in
        [(allow(), json!({ "fileSystem": { "write": ["/w"] } })), (deny(), json!({}))]
    {
        let mut talk = Talk::running(&asking(), FIRST);
        let params = json!({ "itemId": "p", "permissions": wanted, "cwd": "/w", "reason": "x" });
        let then = ask(&mut talk, json!(7), "item/permissions/requestApproval", params);
        let request = asked(&then).request.clone();
        let then = talk.decide(FIRST, &request, &ruling);
        let result = json!({ "permissions": granted, "scope": "turn" });
        assert_eq!(written(&then), [json!({ "id": 7, "result": result })]);
    }
}

#[test]
fn the_questions_of_one_request_are_asked_one_after_the_other() {
    let mut talk = Talk::running(&options(), FIRST);
    let option = |label: &str| json!({ "label": label, "description": "" });
    let questions = json!([
        { "id": "q1", "header": "Colour", "question": "Which colour?",
          "options": [option("red"), option("blue")] },
        { "id": "q2", "header": "Name", "question": "Which name?", "options": null },
    ]);
    let params = json!({ "itemId": "q", "questions": questions });
    let then = ask(&mut talk, json!(3), "item/tool/requestUserInput", params);
    let first = asked(&then).clone();
    assert_eq!((first.kind, &*first.title), (PermissionKind::Question, "Which colour?"));
    assert_eq!(first.options, ["red", "blue"]);
    let then = talk.decide(FIRST, &first.request, &Ruling::Allow { text: Some("blue".into()) });
    let second = asked(&then).clone();
    assert_eq!(second.title, "Which name?");
    assert_ne!(second.request, first.request, "an answer is to one question");
    let then = talk.decide(FIRST, &second.request, &Ruling::Allow { text: Some("Bo".into()) });
    let answers = json!({ "q1": { "answers": ["blue"] }, "q2": { "answers": ["Bo"] } });
    assert_eq!(written(&then), [json!({ "id": 3, "result": { "answers": answers } })]);
}

#[test]
fn a_question_without_an_answer_gets_none() {
    let mut talk = Talk::running(&options(), FIRST);
    let options = json!([{ "label": "delete everything" }, { "label": "keep" }]);
    let questions = json!([{ "id": "q", "question": "What now?", "options": options }]);
    let then =
        ask(&mut talk, json!(3), "item/tool/requestUserInput", json!({ "questions": questions }));
    let request = asked(&then).request.clone();
    let then = talk.decide(FIRST, &request, &allow());
    assert_eq!(written(&then)[0]["result"], json!({ "answers": { "q": { "answers": [] } } }));
}

#[test]
fn a_command_that_is_not_told_is_the_one_of_its_item_or_never_the_same() {
    let mut talk = Talk::running(&asking(), FIRST);
    let item =
        json!({ "type": "commandExecution", "id": "c", "command": "ls", "status": "inProgress" });
    talk.tell_turn("item/started", json!({ "item": item }));
    let method = "item/commandExecution/requestApproval";
    let then = ask(&mut talk, json!(0), method, json!({ "itemId": "c", "cwd": "/w" }));
    assert_eq!(asked(&then).input, Some(json!({ "command": "ls", "cwd": "/w" })));
    let then = ask(&mut talk, json!(1), method, json!({ "itemId": "other", "cwd": "/w" }));
    assert_eq!(asked(&then).input, None);
}

#[test]
fn a_tool_servers_yes_or_no_is_asked_and_its_forms_are_refused() {
    let mut talk = Talk::running(&asking(), FIRST);
    let method = "mcpServer/elicitation/request";
    let form = |properties: Value| {
        json!({ "serverName": "db", "mode": "form", "message": "Drop it?",
            "requestedSchema": { "type": "object", "properties": properties } })
    };
    let then = ask(&mut talk, json!(0), method, form(json!({})));
    let permission = asked(&then).clone();
    assert_eq!((&*permission.tool, &*permission.title), ("db", "Drop it?"));
    let then = talk.decide(FIRST, &permission.request, &deny());
    assert_eq!(written(&then)[0]["result"]["action"], "decline");
    let then = ask(&mut talk, json!(1), method, form(json!({ "name": { "type": "string" } })));
    assert_eq!(written(&then)[0]["error"]["code"], -32601);
}

#[test]
fn without_asking_everything_is_allowed_or_nothing() {
    for (permissions, decision) in
        [(Permissions::Bypass, "accept"), (Permissions::ReadOnly, "decline")]
    {
        let mut talk = Talk::running(&Options { permissions, ..options() }, FIRST);
        let params = json!({ "itemId": "c", "command": "ls" });
        let then = ask(&mut talk, json!(0), "item/commandExecution/requestApproval", params);
        assert_eq!(written(&then), [json!({ "id": 0, "result": { "decision": decision } })]);
    }
}

#[test]
fn a_request_that_is_not_known_gets_an_error_at_once() {
    let mut talk = Talk::running(&asking(), FIRST);
    for method in ["item/tool/call", "attestation/generate", "brand/new"] {
        let then = ask(&mut talk, json!(9), method, json!({}));
        let reply = &written(&then)[0];
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(9), &json!(-32601)));
    }
    let then = talk.say(&json!({ "id": 1, "method": "brand/new" }));
    assert_eq!(written(&then).len(), 1);
}

#[test]
fn a_request_of_a_turn_that_is_over_or_unknown_is_denied() {
    let method = "item/commandExecution/requestApproval";
    let mut talk = Talk::running(&asking(), FIRST);
    let other = json!({ "threadId": THREAD, "turnId": "other", "command": "ls" });
    let then = talk.say(&json!({ "id": 0, "method": method, "params": other }));
    assert_eq!(written(&then)[0]["result"]["decision"], "decline");
    talk.cancel(FIRST);
    let then = ask(&mut talk, json!(1), method, json!({ "command": "ls" }));
    assert_eq!(written(&then)[0]["result"]["decision"], "decline");
    talk.over("interrupted", Value::Null);
    talk.ring();
    let then = ask(&mut talk, json!(2), method, json!({ "command": "ls" }));
    assert_eq!(written(&then)[0]["result"]["decision"], "decline");
}

#[test]
fn what_a_turn_that_ends_still_asks_is_denied() {
    let mut talk = Talk::running(&asking(), FIRST);
    ask(&mut talk, json!(5), "item/commandExecution/requestApproval", json!({ "command": "ls" }));
    let then = talk.over("failed", Value::Null);
    assert_eq!(written(&then), [json!({ "id": 5, "result": { "decision": "decline" } })]);
}

#[test]
fn a_request_that_the_server_resolves_itself_is_withdrawn() {
    let mut talk = Talk::running(&asking(), FIRST);
    let params = json!({ "command": "ls" });
    let then = ask(&mut talk, json!(5), "item/commandExecution/requestApproval", params);
    let request = asked(&then).request.clone();
    let resolved = json!({ "threadId": THREAD, "requestId": 5 });
    let then = talk.notify("serverRequest/resolved", resolved.clone());
    assert!(matches!(&then[..], [Action::Withdraw { request: known, .. }] if *known == request));
    assert!(talk.notify("serverRequest/resolved", resolved).is_empty());
    assert!(talk.decide(FIRST, &request, &allow()).is_empty());
}

#[test]
fn a_helper_of_the_agents_asks_in_the_agents_turn() {
    let mut talk = Talk::running(&asking(), FIRST);
    let child = json!({ "id": "child", "parentThreadId": THREAD });
    talk.notify("thread/started", json!({ "thread": child }));
    let params = json!({ "threadId": "child", "turnId": "its", "command": "ls" });
    let then = talk.say(&json!({
        "id": 0, "method": "item/commandExecution/requestApproval", "params": params
    }));
    assert_eq!(asked(&then).title, "ls");
}

#[test]
fn helpers_are_forgotten_when_they_or_their_turn_are_over() {
    let method = "item/commandExecution/requestApproval";
    let params = json!({ "threadId": "child", "turnId": "its", "command": "ls" });
    let request = json!({ "id": 0, "method": method, "params": params });
    let started = json!({ "thread": { "id": "child", "parentThreadId": THREAD } });
    let mut talk = Talk::running(&asking(), FIRST);
    talk.notify("thread/started", started.clone());
    talk.notify("thread/closed", json!({ "threadId": "child" }));
    assert_eq!(written(&talk.say(&request))[0]["result"]["decision"], "decline");
    talk.notify("thread/started", started);
    talk.over("completed", Value::Null);
    talk.prompt(TurnKey(1), "again", &asking());
    assert_eq!(written(&talk.say(&request))[0]["result"]["decision"], "decline");
}
