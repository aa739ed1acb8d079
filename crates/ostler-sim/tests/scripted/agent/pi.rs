//! Pi, played.

use serde_json::{Value, json};

use super::{Home, UNKNOWN, command};
use crate::play;

/// The types of lines, of updates what they update, and of messages whose they
/// are, with runs of the same told once.
fn outline(lines: &[Value]) -> String {
    let mut kinds: Vec<String> = lines
        .iter()
        .map(|line| {
            let detail = ["/assistantMessageEvent/type", "/message/role"]
                .iter()
                .find_map(|path| line.pointer(path)?.as_str());
            [line["type"].as_str(), detail].iter().flatten().copied().collect::<Vec<_>>().join(":")
        })
        .collect();
    kinds.dedup();
    kinds.join(" ")
}

fn answer(lines: &[Value]) -> &str {
    let is_assistants = |line: &&Value| {
        line["type"] == "message_end" && line.pointer("/message/role") == Some(&json!("assistant"))
    };
    let last = lines.iter().rfind(is_assistants).unwrap();
    last.pointer("/message/content/0/text").and_then(Value::as_str).unwrap()
}

#[test]
fn it_streams_a_text_in_the_order_of_the_real_cli() {
    let played = Home::new().pi(&[], "hello");
    assert_eq!((played.code(), played.stderr()), (Some(0), ""));
    let lines = played.lines();
    assert_eq!(
        outline(&lines),
        "session agent_start turn_start message_start:system message_end:system \
         message_start:user message_end:user message_start:assistant message_update:text_start \
         message_update:text_delta message_update:text_end message_end:assistant \
         turn_end:assistant agent_end agent_settled"
    );
    let deltas: String = lines
        .iter()
        .filter_map(|line| line.pointer("/assistantMessageEvent/delta")?.as_str())
        .collect();
    assert_eq!(deltas, answer(&lines));
}

#[test]
fn it_runs_a_tool_in_a_turn_of_its_own() {
    let lines = Home::new().pi(&[], "sim:tool").lines();
    let outline = outline(&lines);
    let tool = "message_update:toolcall_end message_end:assistant tool_execution_start \
                tool_execution_update tool_execution_end message_start:toolResult \
                message_end:toolResult turn_end:assistant turn_start message_start:assistant";
    assert!(outline.contains(tool), "{outline}");
    let end = lines.iter().find(|line| line["type"] == "tool_execution_end").unwrap();
    assert_eq!(end["result"]["content"][0]["text"], "hi\n");
    let reasons: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "turn_end")
        .map(|line| &line["message"]["stopReason"])
        .collect();
    assert_eq!(reasons, ["toolUse", "stop"]);
}

#[test]
fn it_remembers_a_session_by_its_own_or_a_chosen_id() {
    let home = Home::new();
    let first = home.pi(&[], "one").lines();
    let id = first[0]["id"].as_str().unwrap();
    let second = home.pi(&["--session", id, "--continue"], "sim:history").lines();
    assert_eq!(second[0]["id"], id);
    assert!(answer(&second).contains("so far: 2."), "{}", answer(&second));
    assert!(second.iter().all(|line| line["message"]["role"] != "system"), "only when new");

    let chosen = home.pi(&["--session-id", "gw-own.id_42"], "one");
    assert!(chosen.stderr().starts_with("Warning: No project session found"));
    let again = home.pi(&["--session-id", "gw-own.id_42"], "sim:history");
    assert_eq!(again.stderr(), "");
    assert!(answer(&again.lines()).contains("so far: 2."));
    let bad = home.pi(&["--session-id", "a/b"], "one");
    assert_eq!((bad.code(), bad.stdout()), (Some(1), ""));
}

#[test]
fn it_does_not_find_an_unknown_session_and_leaves_a_foreign_one_alone() {
    let home = Home::new();
    let unknown = home.pi(&["--session", UNKNOWN], "hello");
    assert_eq!((unknown.code(), unknown.stdout()), (Some(1), ""));
    assert_eq!(unknown.stderr(), format!("No session found matching '{UNKNOWN}'\n"));
    home.pi(&["--session-id", UNKNOWN], "one");
    let mut command = command("pi", home.0.path(), &["--mode", "json", "--session", UNKNOWN]);
    command.current_dir("/");
    let foreign = play(command, "hello");
    assert_eq!((foreign.code(), foreign.stdout()), (Some(0), ""));
    assert!(foreign.stderr().ends_with("[y/N] "), "{}", foreign.stderr());
}

#[test]
fn it_trims_standard_input_and_does_nothing_without_a_prompt() {
    let home = Home::new();
    let lines = home.pi(&["--", "--ARG"], " one \n").lines();
    let user = lines.iter().find(|line| line["message"]["role"] == "user").unwrap();
    assert_eq!(user["message"]["content"], json!([{ "type": "text", "text": "one--ARG" }]));
    let nothing = home.pi(&[], " \n");
    assert_eq!((nothing.code(), outline(&nothing.lines()).as_str()), (Some(0), "session"));
    let text = play(command("pi", home.0.path(), &["-p"]), "hello");
    assert!(text.stdout().starts_with("This is Ostler's scripted agent"), "{}", text.stdout());
}
