//! Requests that the real CLIs sent (Claude 2.1.325, Codex 0.166.0), with long
//! texts and schemas cut short: what counts as the newest prompt in them.

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
}

#[tokio::test]
async fn a_tool_loop_keeps_the_prompt_that_began_it() {
    for (recorded, output) in [
        (include_str!("requests/claude-tool-loop.json"), "The tool said: hi"),
        (include_str!("requests/codex-tool-loop.json"), "Output:\\nhi\\n"),
    ] {
        let sim = start().await;
        let response = replay(&sim, recorded).await;
        let requests = sim.requests();
        assert_eq!(requests.last().expect("a request").prompt.as_deref(), Some(TYPED));
        // The whole text stands in the last events of Codex; for Claude the
        // deltas are put together first.
        let text = match response.events().last() {
            Some(last) if last["type"] == "response.completed" => last.to_string(),
            Some(_) | None => {
                crate::joined(&response.events(), "content_block_delta", "/delta/text")
            }
        };
        assert!(text.contains(output), "{text}");
        sim.stop().await;
    }
}

#[tokio::test]
async fn a_resumed_prompt_without_a_word_gets_the_default_answer() {
    for recorded in [
        include_str!("requests/claude-resumed-after-failure.json"),
        include_str!("requests/codex-resumed-after-failure.json"),
    ] {
        let (prompt, word) = found(recorded).await;
        assert_eq!(prompt.trim_end(), "and no word now");
        assert_eq!(word, "text");
    }
    let sim = start().await;
    let response = replay(&sim, include_str!("requests/claude-resumed-after-failure.json")).await;
    let text = crate::joined(&response.events(), "content_block_delta", "/delta/text");
    assert_eq!(text, HELLO);
    sim.stop().await;
}

#[tokio::test]
async fn a_text_that_asks_to_go_on_is_no_prompt() {
    let found = found(include_str!("requests/claude-asked-to-go-on.json")).await;
    assert_eq!(found, pair("sim:length", "length"));
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
