//! OpenCode, played.

use serde_json::Value;

use super::{Home, command};
use crate::play;

fn outline(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

fn text(lines: &[Value]) -> &str {
    let last = lines.iter().rfind(|line| line["type"] == "text").unwrap();
    last.pointer("/part/text").and_then(Value::as_str).unwrap()
}

#[test]
fn it_tells_of_steps_as_the_real_cli_does() {
    let played = Home::new().opencode(&[], "sim:tool");
    assert_eq!((played.code(), played.stderr()), (Some(0), ""));
    let lines = played.lines();
    assert_eq!(
        outline(&lines),
        ["step_start", "tool_use", "step_finish", "step_start", "text", "step_finish"]
    );
    let session = lines[0]["sessionID"].as_str().unwrap();
    assert!(session.starts_with("ses_") && session.len() == 30, "{session}");
    assert!(lines.iter().all(|line| line["sessionID"] == session));
    assert_eq!(lines[1]["part"]["state"]["output"], "hi\n");
    assert_eq!(lines[2]["part"]["reason"], "tool-calls");
    assert_eq!(lines[5]["part"]["reason"], "stop");
    assert_eq!(lines[5]["part"]["tokens"]["cache"]["read"], 900);
    // The answer is what the last step says.
    assert_eq!(lines[4]["part"]["messageID"], lines[5]["part"]["messageID"]);
    assert_ne!(lines[1]["part"]["messageID"], lines[5]["part"]["messageID"]);
}

#[test]
fn it_remembers_a_session() {
    let home = Home::new();
    let first = home.opencode(&[], "one").lines();
    let id = first[0]["sessionID"].as_str().unwrap();
    let second = home.opencode(&["--session", id], "sim:history").lines();
    assert_eq!(second[0]["sessionID"], id);
    assert!(text(&second).contains("so far: 2."), "{}", text(&second));
    let fork = home.opencode(&["-s", id, "--fork"], "sim:history").lines();
    assert_ne!(fork[0]["sessionID"], id);
    assert!(text(&fork).contains("so far: 3."), "{}", text(&fork));
}

#[test]
fn it_does_not_find_an_unknown_session() {
    for id in ["ses_doesnotexist0000000000000", "not-an-id", "../../etc/passwd"] {
        let played = Home::new().opencode(&["--session", id], "hello");
        assert_eq!((played.code(), played.stdout()), (Some(1), ""));
        assert_eq!(played.stderr(), "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found\n");
    }
}

#[test]
fn it_quotes_an_argument_with_a_space_and_adds_standard_input() {
    let home = Home::new();
    let lines = home.opencode(&["--", "say \"hi\" now"], "more").lines();
    let id = lines[0]["sessionID"].as_str().unwrap();
    let path = home.0.path().join("opencode").join(format!("{id}.json"));
    let session: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(session["prompts"][0], "\"say \\\"hi\\\" now\"\nmore");
    let empty = home.opencode(&[], "");
    assert_eq!((empty.code(), empty.stdout()), (Some(1), ""));
    assert!(empty.stderr().contains("You must provide a message"), "{}", empty.stderr());
}

#[test]
fn it_prints_text_by_default_and_plays_nothing_but_run_and_serve() {
    let home = Home::new();
    let text = play(command("opencode", home.0.path(), &["run", "hello"]), "");
    assert!(text.stdout().starts_with("This is Ostler's scripted agent"), "{}", text.stdout());
    for words in [&["acp"][..], &["serve", "more"]] {
        let other = play(command("opencode", home.0.path(), words), "");
        assert_eq!((other.code(), other.stdout()), (Some(1), ""));
    }
}
