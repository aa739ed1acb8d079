//! Requests that the real CLIs sent (Claude 2.1.325, Codex 0.166.0, Gemini
//! 0.61.0, OpenCode 1.18.33, Pi 0.87.1), with long texts and schemas cut short:
//! what counts as the newest prompt in them.

use ostler_sim::model::{HELLO, Sim};
use serde_json::Value;

use crate::client::{self, Response};
use crate::start;

async fn replay(sim: &Sim, recorded: &str) -> Response {
    let request: Value = serde_json::from_str(recorded).expect("JSON");
    let headers: Vec<(&str, &str)> = request["headers"]
        .as_object()
        .expect("headers")
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().expect("text")))
        .collect();
    let path = request["path"].as_str().expect("a path");
    client::send(sim.addr(), "POST", path, &headers, &request["body"].to_string()).await
}

/// Replays a request and returns the prompt and the word that were found.
async fn found(recorded: &str) -> (String, String) {
    let sim = start().await;
    let response = replay(&sim, recorded).await;
    assert_eq!(response.status, 200);
    let requests = sim.requests();
    let request = requests.last().expect("a request");
    let found = (request.prompt.clone(), request.word.clone());
    sim.stop().await;
    (found.0.expect("a prompt"), found.1.expect("a word"))
}

fn pair(prompt: &str, word: &str) -> (String, String) {
    (prompt.to_owned(), word.to_owned())
}

const TYPED: &str = "run it: sim:tool 🎉\nthanks\n";

#[tokio::test]
async fn the_prompt_of_a_new_conversation_is_found_as_typed() {
    let claude = found(include_str!("requests/claude-new.json")).await;
    assert_eq!(claude, pair(TYPED, "tool"));
    let codex = found(include_str!("requests/codex-new.json")).await;
    assert_eq!(codex, pair(TYPED, "tool"));
    let gemini = found(include_str!("requests/gemini-new.json")).await;
    assert_eq!(gemini, pair(TYPED, "tool"));
    let opencode = found(include_str!("requests/opencode-new.json")).await;
    assert_eq!(opencode, pair(TYPED, "tool"));
    // Pi trims what it reads from standard input.
    let pi = found(include_str!("requests/pi-new.json")).await;
    assert_eq!(pi, pair(TYPED.trim_end(), "tool"));
}

/// Replays a request with another prompt in it and returns the first call of a
/// tool in the answer, its arguments read.
async fn called(recorded: &str, typed: &str, asking: &str) -> (String, Value) {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    assert!(recorded.contains(&quoted(typed)), "the fixture holds the prompt");
    let sim = start().await;
    let response = replay(&sim, &recorded.replace(&quoted(typed), &quoted(asking))).await;
    let (chunks, _) = response.chunks();
    sim.stop().await;
    let find = |pointer: &str| chunks.iter().find_map(|chunk| chunk.pointer(pointer));
    if let Some(call) = find("/candidates/0/content/parts/0/functionCall") {
        return (call["name"].as_str().expect("a name").to_owned(), call["args"].clone());
    }
    let function = "/choices/0/delta/tool_calls/0/function";
    let name = find(&format!("{function}/name")).and_then(Value::as_str).expect("a call");
    let arguments = crate::gathered(&chunks, &format!("{function}/arguments"));
    (name.to_owned(), serde_json::from_str(&arguments).expect("JSON"))
}

#[tokio::test]
async fn each_cli_is_asked_for_its_own_tools_with_its_own_parameters() {
    let gemini = include_str!("requests/gemini-new.json");
    let opencode = include_str!("requests/opencode-new.json");
    let pi = include_str!("requests/pi-new.json");
    for (recorded, typed, shell, reader, takes, writer) in [
        (gemini, TYPED, "run_shell_command", "read_file", "file_path", "write_file"),
        (opencode, TYPED, "bash", "read", "filePath", "write"),
        (pi, TYPED.trim_end(), "bash", "read", "path", "write"),
    ] {
        let (name, arguments) = called(recorded, typed, "sim:tool").await;
        assert_eq!((name.as_str(), &arguments["command"]), (shell, &Value::from("echo hi")));
        // The path is made absolute with the directory that the CLI names.
        let (name, arguments) = called(recorded, typed, "sim:read").await;
        let path = Value::from("/project/notes.txt");
        assert_eq!((name.as_str(), arguments.get(takes)), (reader, Some(&path)));
        let (name, arguments) = called(recorded, typed, "sim:write=a.txt").await;
        let path = Value::from("/project/a.txt");
        assert_eq!((name.as_str(), arguments.get(takes)), (writer, Some(&path)));
    }
}

#[tokio::test]
async fn the_content_of_a_file_that_a_prompt_refers_to_is_no_prompt() {
    let recorded = include_str!("requests/gemini-with-a-file.json");
    let recorded = recorded.replace("sim:500 fails", "sim:echo this");
    assert_eq!(found(&recorded).await, pair("sim:echo this @notes.txt", "echo"));
}

#[tokio::test]
async fn what_a_cli_asks_for_itself_is_answered_and_is_no_prompt() {
    for (recorded, answer) in [
        (include_str!("requests/gemini-router.json"), "complexity_score"),
        (include_str!("requests/opencode-title.json"), "A simula"),
    ] {
        let sim = start().await;
        let response = replay(&sim, recorded).await;
        assert_eq!(response.status, 200);
        assert!(response.body.contains(answer), "{}", response.body);
        let requests = sim.requests();
        let request = requests.last().expect("a request");
        assert_eq!((&request.prompt, &request.word), (&None, &None));
        sim.stop().await;
    }
}

#[tokio::test]
async fn a_summary_is_asked_for_with_the_newest_prompt_of_what_it_sums_up() {
    let recorded = include_str!("requests/opencode-summary.json");
    let recorded = recorded.replace("please sim:context", "sim:500\\n[User]: please sim:text");
    assert_eq!(found(&recorded).await, pair("please sim:text", "text"));
}

/// Returns the text of a streamed answer of any API. That of Codex stands in its
/// last event; the others are put together from their pieces.
fn said(response: &Response) -> String {
    if response.body.starts_with("data: ") {
        let (chunks, _) = response.chunks();
        let texts = ["/choices/0/delta/content", "/candidates/0/content/parts/0/text"];
        return texts.map(|pointer| crate::gathered(&chunks, pointer)).concat();
    }
    let events = response.events();
    match events.last() {
        Some(last) if last["type"] == "response.completed" => last.to_string(),
        Some(_) | None => crate::joined(&events, "content_block_delta", "/delta/text"),
    }
}

#[tokio::test]
async fn a_tool_loop_keeps_the_prompt_that_began_it() {
    for (recorded, output) in [
        (include_str!("requests/claude-tool-loop.json"), "The tool said: hi"),
        (include_str!("requests/codex-tool-loop.json"), "Output:\\nhi\\n"),
        (include_str!("requests/gemini-tool-loop.json"), "Output: hi"),
        (include_str!("requests/opencode-tool-loop.json"), "The tool said: hi"),
        (include_str!("requests/pi-tool-loop.json"), "The tool said: hi"),
    ] {
        let sim = start().await;
        let response = replay(&sim, recorded).await;
        let requests = sim.requests();
        let prompt = requests.last().expect("a request").prompt.clone().expect("a prompt");
        assert_eq!(prompt.trim_end(), TYPED.trim_end());
        let text = said(&response);
        assert!(text.contains(output), "{text}");
        sim.stop().await;
    }
}

#[tokio::test]
async fn a_resumed_prompt_without_a_word_gets_the_default_answer() {
    for recorded in [
        include_str!("requests/claude-resumed-after-failure.json"),
        include_str!("requests/codex-resumed-after-failure.json"),
        include_str!("requests/gemini-resumed-after-failure.json"),
        include_str!("requests/opencode-resumed-after-failure.json"),
        include_str!("requests/pi-resumed-after-failure.json"),
    ] {
        let (prompt, word) = found(recorded).await;
        assert_eq!(prompt.trim_end(), "and no word now");
        assert_eq!(word, "text");
        let sim = start().await;
        let text = said(&replay(&sim, recorded).await);
        assert!(text.contains(HELLO), "{text}");
        sim.stop().await;
    }
}

#[tokio::test]
async fn a_text_that_asks_to_go_on_is_no_prompt() {
    let claude = found(include_str!("requests/claude-asked-to-go-on.json")).await;
    assert_eq!(claude, pair("sim:length", "length"));
    let gemini = found(include_str!("requests/gemini-asked-to-go-on.json")).await;
    assert_eq!(gemini, pair("sim:empty", "empty"));
}

#[tokio::test]
async fn a_note_about_an_interrupted_turn_is_no_prompt() {
    let found = found(include_str!("requests/codex-resumed-after-interrupt.json")).await;
    assert_eq!(found, pair("after the interrupt", "text"));
}

#[tokio::test]
async fn a_prompt_that_was_steered_into_a_running_turn_is_the_newest() {
    let found = found(include_str!("requests/claude-steered.json")).await;
    assert_eq!(found, pair("steer: sim:echo-text\nline two", "echo-text"));
}

#[tokio::test]
async fn a_code_mode_model_calls_the_tool_that_takes_javascript() {
    let sim = start().await;
    let response = replay(&sim, include_str!("requests/codex-code-mode.json")).await;
    let events = response.events();
    let calls: Vec<(&str, &str)> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| {
            let item = &event["item"];
            (item["type"].as_str().expect("a type"), item["name"].as_str().expect("a name"))
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("custom_tool_call", "exec"),
            ("custom_tool_call", "exec"),
            ("function_call", "no_such_tool")
        ]
    );
    sim.stop().await;
}

#[tokio::test]
async fn system_texts_are_found_where_each_cli_puts_them() {
    for (recorded, typed) in [
        (include_str!("requests/claude-new.json"), TYPED),
        (include_str!("requests/codex-new.json"), TYPED),
    ] {
        let typed = Value::String(typed.to_owned()).to_string();
        let asking = Value::String("sim:system".to_owned()).to_string();
        assert!(recorded.contains(&typed), "the fixture holds the prompt");
        let sim = start().await;
        let response = replay(&sim, &recorded.replace(&typed, &asking)).await;
        let text: String = response
            .events()
            .iter()
            .filter_map(|event| {
                event
                    .pointer("/delta/text")
                    .or_else(|| event.get("delta"))?
                    .as_str()
                    .map(str::to_owned)
            })
            .collect();
        assert!(text.contains("APPENDED-XYZ"), "{text}");
        assert!(!text.contains("Notes mention"), "project notes are not system texts");
        sim.stop().await;
    }
}
