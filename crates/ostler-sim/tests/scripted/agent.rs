//! The agents that can be played, called as Ostler calls the real ones.

mod gemini;
mod opencode;
mod pi;
mod serve;
mod warm;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PROGRAM, Played, play};

const UNKNOWN: &str = "11111111-2222-4333-8444-555555555555";

fn command(agent: &str, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["--as", agent, "--home"]).arg(home).args(args);
    command.env_clear();
    command
}

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn claude(&self, args: &[&str], prompt: &str) -> Played {
        play(command("claude", self.0.path(), args), prompt)
    }

    fn claude_stream(&self, args: &[&str], prompt: &str) -> Played {
        let mut all =
            vec!["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];
        all.extend(args);
        self.claude(&all, prompt)
    }

    fn codex(&self, args: &[&str], prompt: &str) -> Played {
        let mut all = vec!["exec", "--json", "--skip-git-repo-check"];
        all.extend(args);
        play(command("codex", self.0.path(), &all), prompt)
    }

    fn gemini(&self, args: &[&str], prompt: &str) -> Played {
        let mut all = vec!["-o", "stream-json", "--skip-trust", "--approval-mode", "yolo"];
        all.extend(args);
        play(command("gemini", self.0.path(), &all), prompt)
    }

    fn opencode(&self, args: &[&str], prompt: &str) -> Played {
        let mut all = vec!["run", "--format", "json", "--title", "a title", "--auto"];
        all.extend(args);
        play(command("opencode", self.0.path(), &all), prompt)
    }

    fn pi(&self, args: &[&str], prompt: &str) -> Played {
        let mut all = vec!["-p", "--mode", "json", "--provider", "o", "--model", "m"];
        all.extend(args);
        play(command("pi", self.0.path(), &all), prompt)
    }
}

/// The kinds of lines, with runs of the same kind told once.
fn outline(lines: &[Value]) -> String {
    let mut kinds: Vec<String> = lines
        .iter()
        .map(|line| {
            let detail = ["/subtype", "/event/type", "/message/content/0/type", "/item/type"]
                .iter()
                .find_map(|path| line.pointer(path)?.as_str());
            [line["type"].as_str(), detail].iter().flatten().copied().collect::<Vec<_>>().join(":")
        })
        .collect();
    kinds.dedup();
    kinds.join(" ")
}

fn deltas(lines: &[Value]) -> String {
    lines.iter().filter_map(|line| line.pointer("/event/delta/text")?.as_str()).collect()
}

#[test]
fn versions_say_that_they_are_scripted() {
    for (agent, version) in [
        ("claude", "0.0.0 (scripted claude)\n"),
        ("codex", "codex-cli 0.0.0 (scripted codex)\n"),
        ("gemini", "0.0.0 (scripted gemini)\n"),
        ("opencode", "0.0.0 (scripted opencode)\n"),
        ("pi", "0.0.0 (scripted pi)\n"),
    ] {
        let home = Home::new();
        let played = play(command(agent, home.0.path(), &["--version"]), "");
        assert_eq!((played.stdout(), played.code()), (version, Some(0)));
    }
}

#[test]
fn claude_streams_a_text_in_the_order_of_the_real_cli() {
    let lines = Home::new().claude_stream(&[], "hello").lines();
    assert_eq!(
        outline(&lines),
        "system:init system:status stream_event:message_start stream_event:content_block_start \
         stream_event:content_block_delta assistant:text stream_event:content_block_stop \
         stream_event:message_delta stream_event:message_stop result:success"
    );
    let text = lines.last().unwrap()["result"].as_str().unwrap();
    assert!(text.contains("scripted agent"), "{text}");
    assert_eq!(deltas(&lines), text);
    let session = &lines[0]["session_id"];
    assert!(lines.iter().all(|line| line["session_id"] == *session && line["uuid"].is_string()));
}

#[test]
fn claude_shows_a_tool_and_its_result() {
    let lines =
        Home::new().claude(&["-p", "--output-format", "stream-json", "--verbose", "sim:tool"], "");
    let lines = lines.lines();
    assert_eq!(
        outline(&lines),
        "system:init assistant:tool_use user:tool_result assistant:text result:success"
    );
    let tool = &lines[1]["message"]["content"][0];
    let result = &lines[2]["message"]["content"][0];
    assert_eq!(tool["input"]["command"], "echo hi");
    assert_eq!(tool["id"], result["tool_use_id"]);
    assert_eq!(result["content"], "hi");
    assert_eq!(lines[4]["num_turns"], 2);
}

#[test]
fn claude_prints_one_object_an_array_or_plain_text() {
    let home = Home::new();
    let object = home.claude(&["-p", "--output-format", "json"], "hello").lines();
    assert_eq!(outline(&object), "result:success");
    let array = home.claude(&["-p", "--output-format", "json", "--verbose"], "hello").lines();
    assert_eq!(outline(array[0].as_array().unwrap()), "system:init assistant:text result:success");
    let text = home.claude(&["-p"], "hello");
    assert_eq!(text.stdout(), format!("{}\n", object[0]["result"].as_str().unwrap()));
}

#[test]
fn claude_remembers_a_session_and_adds_up_its_cost() {
    let home = Home::new();
    let first = home.claude_stream(&["--session-id", UNKNOWN, "--model", "m"], "one").lines();
    let second = home.claude_stream(&["--resume", UNKNOWN], "sim:history").lines();
    let [first, second] = [first.last().unwrap(), second.last().unwrap()];
    assert_eq!((&first["session_id"], &second["session_id"]), (&json!(UNKNOWN), &json!(UNKNOWN)));
    assert!(second["result"].as_str().unwrap().contains("so far: 2."), "{second}");
    assert_eq!(first["total_cost_usd"], 0.000646);
    assert_eq!(second["total_cost_usd"], 0.001292);
    assert_eq!(second["usage"]["input_tokens"], 100);
    assert_eq!(second["modelUsage"]["m"]["inputTokens"], 200);
    assert_eq!(second["model_usage_since_last_result"]["m"]["inputTokens"], 100);
    let again = home.claude(&["-p", "--session-id", UNKNOWN], "one");
    assert_eq!(again.code(), Some(1));
    assert_eq!(again.stderr(), format!("Error: Session ID {UNKNOWN} is already in use.\n"));
}

#[test]
fn claude_does_not_find_an_unknown_session() {
    let home = Home::new();
    let message = format!("No conversation found with session ID: {UNKNOWN}");
    let plain = home.claude(&["-p", "--output-format", "json", "--resume", UNKNOWN], "hello");
    assert_eq!((plain.code(), plain.stdout()), (Some(1), ""));
    assert_eq!(plain.stderr(), format!("{message}\n"));
    let stream = home.claude_stream(&["--resume", UNKNOWN], "hello");
    assert_eq!((stream.code(), stream.stderr()), (Some(1), format!("{message}\n").as_str()));
    let lines = stream.lines();
    assert_eq!(outline(&lines), "result:error_during_execution");
    assert_eq!(lines[0]["errors"], json!([message]));
    assert_eq!(lines[0]["usage"]["input_tokens"], 0);
}

#[test]
fn claude_forgets_a_session_that_is_not_to_persist() {
    let home = Home::new();
    home.claude(&["-p", "--session-id", UNKNOWN, "--no-session-persistence"], "hello");
    assert_eq!(home.claude(&["-p", "--resume", UNKNOWN], "hello").code(), Some(1));
}

#[test]
fn claude_refuses_a_blank_prompt() {
    let played = Home::new().claude(&["-p"], " \n");
    assert_eq!(played.code(), Some(1));
    assert!(played.stderr().starts_with("Error: Input must be provided"), "{}", played.stderr());
}

#[test]
fn claude_answers_prompt_by_prompt_while_stdin_is_open() {
    let home = Home::new();
    let args =
        ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "-p"];
    let mut command = command("claude", home.0.path(), &args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |content: Value| {
        let message = json!({"role": "user", "content": content});
        writeln!(stdin, "{}", json!({"type": "user", "message": message, "uuid": "u"})).unwrap();
        let mut lines = Vec::<Value>::new();
        while lines.last().is_none_or(|line| line["type"] != "result") {
            lines.push(serde_json::from_str(&stdout.next().unwrap().unwrap()).unwrap());
        }
        lines
    };
    let first = ask(json!("one"));
    assert_eq!(outline(&first), "command_lifecycle system:init assistant:text result:success");
    let second = ask(json!([{"type": "text", "text": "sim:history"}]));
    let result = second.last().unwrap();
    assert!(result["result"].as_str().unwrap().contains("so far: 2."), "{result}");
    assert_eq!((&result["result_index"], &result["user_message_uuid"]), (&json!(1), &json!("u")));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn claude_dies_of_a_line_that_is_not_json() {
    let args = ["--input-format", "stream-json"];
    let played = Home::new().claude_stream(&args, "\n{\"type\":\"news\"}\n{not json\n");
    assert_eq!((played.code(), played.stdout()), (Some(1), ""));
    assert!(played.stderr().contains("parsing streaming input"), "{}", played.stderr());
}

#[test]
fn claude_answers_control_requests() {
    let request = |subtype: &str| {
        let request = json!({"subtype": subtype});
        json!({"type": "control_request", "request_id": "7", "request": request}).to_string()
    };
    let stdin = format!("{}\n{}\n", request("initialize"), request("dance"));
    let lines = Home::new().claude_stream(&["--input-format", "stream-json"], &stdin).lines();
    assert_eq!(lines[0]["response"]["subtype"], "success");
    assert_eq!(lines[1]["response"]["error_code"], "unsupported_request");
    assert!(lines.iter().all(|line| line["response"]["request_id"] == "7"));
}

#[test]
fn codex_tells_of_a_tool_and_an_answer() {
    let played = Home::new().codex(&["-"], "sim:tool");
    assert_eq!((played.code(), played.stderr()), (Some(0), ""));
    let lines = played.lines();
    assert_eq!(
        outline(&lines),
        "thread.started turn.started item.started:command_execution \
         item.completed:command_execution item.completed:agent_message turn.completed"
    );
    assert_eq!(lines[3]["item"]["aggregated_output"], "hi\n");
    assert_eq!(lines[3]["item"]["exit_code"], 0);
    assert_eq!(lines[5]["usage"]["input_tokens"], 2400);
}

#[test]
fn codex_remembers_a_thread_and_adds_up_its_usage() {
    let home = Home::new();
    let first = home.codex(&["-"], "one").lines();
    let id = first[0]["thread_id"].as_str().unwrap();
    let second = home.codex(&["resume", id, "-"], "sim:history").lines();
    assert_eq!(second[0]["thread_id"], id);
    assert!(second[2]["item"]["text"].as_str().unwrap().contains("so far: 2."), "{second:?}");
    assert_eq!(first[3]["usage"]["output_tokens"], 34);
    assert_eq!(second[3]["usage"]["output_tokens"], 68);
}

#[test]
fn codex_does_not_find_an_unknown_thread() {
    let played = Home::new().codex(&["resume", UNKNOWN, "-"], "hello");
    assert_eq!((played.code(), played.stdout()), (Some(1), ""));
    assert_eq!(
        played.stderr(),
        format!(
            "Error: thread/resume: thread/resume failed: no rollout found for thread id {UNKNOWN} \
             (code -32600)\n"
        )
    );
}

#[test]
fn codex_begins_a_new_thread_for_a_name_that_is_no_id() {
    let played = Home::new().codex(&["resume", "no-such-session", "-"], "hello");
    assert_eq!(played.code(), Some(0));
    assert_ne!(played.lines()[0]["thread_id"], "no-such-session");
}

#[test]
fn codex_forgets_an_ephemeral_thread() {
    let home = Home::new();
    let lines = home.codex(&["--ephemeral", "-"], "one").lines();
    let id = lines[0]["thread_id"].as_str().unwrap();
    assert_eq!(home.codex(&["resume", id, "-"], "two").code(), Some(1));
}

#[test]
fn codex_appends_standard_input_to_a_prompt_argument() {
    let home = Home::new();
    let lines = home.codex(&["sum up"], "the text").lines();
    let id = lines[0]["thread_id"].as_str().unwrap();
    let path = home.0.path().join("codex").join(format!("{id}.json"));
    let session: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(session["prompts"], json!(["sum up\n\n<stdin>\nthe text\n</stdin>"]));
}

#[test]
fn codex_refuses_what_it_cannot_take_as_a_prompt() {
    let home = Home::new();
    let blank = home.codex(&[], " \n");
    assert_eq!(blank.code(), Some(1));
    assert_eq!(blank.stderr(), "Reading prompt from stdin...\nNo prompt provided via stdin.\n");
    let long = home.codex(&["-"], &"x".repeat(1_048_577));
    assert_eq!((long.code(), outline(&long.lines()).as_str()), (Some(1), "thread.started"));
    assert!(long.stderr().contains("\"actual_chars\":1048577"), "{}", long.stderr());
    let nowhere = home.codex(&["--cd", "/no/such/folder", "-"], "hello");
    assert_eq!(nowhere.stderr(), "Error: No such file or directory (os error 2)\n");
}

#[test]
fn codex_prints_only_the_answer_in_text_mode() {
    let home = Home::new();
    let last = home.0.path().join("last.txt");
    let args = ["exec", "-o", last.to_str().unwrap(), "-"];
    let played = play(command("codex", home.0.path(), &args), "hello");
    assert!(played.stderr().contains("session id: "), "{}", played.stderr());
    assert_eq!(played.stdout(), format!("{}\n", std::fs::read_to_string(last).unwrap()));
}

#[test]
fn a_home_is_needed_for_sessions() {
    let mut command = Command::new(PROGRAM);
    command.args(["--as", "claude", "-p"]).env_clear();
    let played = play(command, "hello");
    assert_eq!(played.code(), Some(2));
    assert!(played.stderr().contains("OSTLER_SCRIPTED_HOME"), "{}", played.stderr());
}
