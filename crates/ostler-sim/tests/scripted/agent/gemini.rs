//! Gemini CLI, played.

use serde_json::{Value, json};

use super::{Home, UNKNOWN, command, outline};
use crate::play;

fn said(lines: &[Value]) -> String {
    let deltas = lines.iter().filter(|line| line["role"] == "assistant");
    deltas.filter_map(|line| line["content"].as_str()).collect()
}

#[test]
fn it_streams_a_tool_and_an_answer_in_the_order_of_the_real_cli() {
    let played = Home::new().gemini(&["-m", "g"], "sim:tool");
    assert_eq!((played.code(), played.stderr()), (Some(0), ""));
    let lines = played.lines();
    assert_eq!(outline(&lines), "init message tool_use tool_result message result");
    assert_eq!((&lines[0]["model"], &lines[1]["content"]), (&json!("g"), &json!("sim:tool")));
    assert_eq!(lines[2]["parameters"]["command"], "echo hi");
    assert_eq!(lines[2]["tool_id"], lines[3]["tool_id"]);
    assert_eq!(lines[3]["output"], "hi");
    let result = lines.last().unwrap();
    assert_eq!(result["status"], "success");
    assert_eq!(result["stats"]["total_tokens"], 860);
    assert_eq!(result["stats"]["models"]["g"]["input_tokens"], 800);
    assert!(said(&lines).contains("scripted agent"), "{}", said(&lines));
}

#[test]
fn it_remembers_a_session_of_its_folder_by_the_id_that_was_chosen() {
    let home = Home::new();
    let first = home.gemini(&["--session-id", UNKNOWN], "one").lines();
    assert_eq!(first[0]["session_id"], UNKNOWN);
    let second = home.gemini(&["--resume", UNKNOWN], "sim:history").lines();
    assert_eq!(second[0]["session_id"], UNKNOWN);
    assert!(said(&second).contains("so far: 2."), "{}", said(&second));
    assert_eq!(second.last().unwrap()["stats"]["input_tokens"], 400, "of this run only");
    let again = home.gemini(&["--session-id", UNKNOWN], "one");
    assert_eq!((again.code(), again.stdout()), (Some(42), ""));
    assert!(again.stderr().contains("already exists"), "{}", again.stderr());
    let mut command = command("gemini", home.0.path(), &["--resume", UNKNOWN]);
    command.current_dir("/");
    let elsewhere = play(command, "hello");
    assert_eq!(elsewhere.code(), Some(42));
    assert!(elsewhere.stderr().contains("No previous sessions"), "{}", elsewhere.stderr());
}

#[test]
fn it_does_not_find_an_unknown_session() {
    let home = Home::new();
    let first = home.gemini(&["--resume", UNKNOWN], "hello");
    assert_eq!((first.code(), first.stdout()), (Some(42), ""));
    assert_eq!(
        first.stderr(),
        "Error resuming session: No previous sessions found for this project.\n"
    );
    home.gemini(&[], "one");
    let second = home.gemini(&["--resume", UNKNOWN], "hello");
    let start = format!("Error resuming session: Invalid session identifier \"{UNKNOWN}\".\n");
    assert!(second.stderr().starts_with(&start), "{}", second.stderr());
    assert_eq!(second.code(), Some(42));
}

#[test]
fn it_takes_a_prompt_from_an_argument_standard_input_or_both() {
    let home = Home::new();
    for (args, stdin, prompt) in [
        (&["--prompt=--help"][..], "", "--help"),
        (&[], " - x\n", " - x\n"),
        (&["-p", "sum up"], "the text", "the text\n\nsum up"),
    ] {
        assert_eq!(home.gemini(args, stdin).lines()[1]["content"], prompt);
    }
    let empty = home.gemini(&[], "");
    assert_eq!((empty.code(), empty.stdout()), (Some(42), ""));
    assert!(empty.stderr().starts_with("No input provided via stdin."), "{}", empty.stderr());
}

#[test]
fn it_prints_one_object_or_plain_text() {
    let home = Home::new();
    let json = play(command("gemini", home.0.path(), &["-o", "json", "-m", "g"]), "hello");
    let object: Value = serde_json::from_str(json.stdout()).unwrap();
    assert_eq!(object["stats"]["models"]["g"]["tokens"]["thoughts"], 9);
    let text = play(command("gemini", home.0.path(), &[]), "hello");
    assert_eq!(text.stdout(), format!("{}\n", object["response"].as_str().unwrap()));
}
