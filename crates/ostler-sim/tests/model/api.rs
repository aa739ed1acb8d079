//! Shapes and order of what the APIs with named events send, and what holds
//! for all of them.

use ostler_sim::model::{ANTHROPIC_USAGE, BEHAVIOURS, HELLO, RESPONSES_USAGE, echo, huge};
use serde_json::{Value, json};

use crate::{MODES, Mode, chat, gemini, joined, messages, order, responses, start};

#[tokio::test]
async fn messages_stream_thinking_and_text_in_the_order_of_the_api() {
    let sim = start().await;
    let response = messages(&sim, "sim:thinking", Mode::Stream).await;
    let events = response.events();
    assert!(response.complete);
    assert_eq!(
        order(&events),
        [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    let text = joined(&events, "content_block_delta", "/delta/text");
    assert_eq!(text, "I have thought about it.");
    assert!(joined(&events, "content_block_delta", "/delta/thinking").contains("see me think"));
    let last_delta = &events[events.len() - 2];
    assert_eq!(last_delta["delta"]["stop_reason"], "end_turn");
    assert_eq!(last_delta["usage"]["output_tokens"], ANTHROPIC_USAGE.output);
    sim.stop().await;
}

#[tokio::test]
async fn responses_stream_thinking_and_text_in_the_order_of_the_api() {
    let sim = start().await;
    let response = responses(&sim, "sim:thinking", Mode::Stream).await;
    let events = response.events();
    assert!(response.complete);
    assert_eq!(
        order(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<Option<usize>> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().and_then(|n| usize::try_from(n).ok()))
        .collect();
    assert_eq!(numbers, (0..events.len()).map(Some).collect::<Vec<_>>());
    let text = joined(&events, "response.output_text.delta", "/delta");
    assert_eq!(text, "I have thought about it.");
    let usage = &events.last().expect("events")["response"]["usage"];
    assert_eq!(usage["input_tokens"], RESPONSES_USAGE.input);
    assert_eq!(usage["input_tokens_details"]["cached_tokens"], RESPONSES_USAGE.cache_read);
    assert_eq!(usage["output_tokens"], RESPONSES_USAGE.output);
    assert_eq!(usage["output_tokens_details"]["reasoning_tokens"], RESPONSES_USAGE.reasoning);
    sim.stop().await;
}

#[tokio::test]
async fn a_plain_message_is_one_object() {
    let sim = start().await;
    let message = messages(&sim, "hello", Mode::Plain).await.json();
    assert_eq!(
        message,
        json!({
            "id": "msg_sim000001",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [{ "type": "text", "text": HELLO }],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "usage": {
                "input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 30,
                "output_tokens": 7,
                "service_tier": "standard",
            },
        })
    );
    sim.stop().await;
}

#[tokio::test]
async fn a_plain_response_equals_what_the_stream_ends_with() {
    let sim = start().await;
    for prompt in ["hello", "sim:thinking", "sim:tools", "sim:length", "sim:refusal"] {
        let plain = responses(&sim, prompt, Mode::Plain).await.json().to_string();
        let stream = responses(&sim, prompt, Mode::Stream).await;
        let streamed = stream.events().last().expect("events")["response"].to_string();
        // Only the number of the request in the ids differs.
        let number = sim.requests().len();
        let plain = plain.replace(&format!("sim{:06}", number - 1), &format!("sim{number:06}"));
        assert_eq!(plain, streamed, "{prompt}");
    }
    sim.stop().await;
}

#[tokio::test]
async fn every_behaviour_speaks_every_api_in_both_modes() {
    let sim = start().await;
    // These end when the client leaves or take their time; they have tests of
    // their own.
    let endless = ["silence", "stall", "slow"];
    for behaviour in BEHAVIOURS.iter().filter(|behaviour| !endless.contains(&behaviour.word)) {
        let prompt = format!("sim:{}", behaviour.word);
        for mode in MODES {
            let responses = [
                (true, messages(&sim, &prompt, mode).await),
                (true, responses(&sim, &prompt, mode).await),
                (false, chat(&sim, &prompt, mode).await),
                (false, gemini(&sim, &prompt, mode).await),
            ];
            for (has_names, response) in responses {
                let whole = behaviour.word != "cut";
                assert_eq!(response.complete, whole, "{prompt} {mode:?}");
                match (mode, response.status) {
                    (Mode::Stream, 200) if has_names => {
                        assert!(!response.events().is_empty(), "{prompt}");
                    }
                    (Mode::Stream, 200) => assert!(!response.chunks().0.is_empty(), "{prompt}"),
                    (Mode::Plain, 200) if !whole => {}
                    (Mode::Stream | Mode::Plain, _) => assert!(response.json().is_object()),
                }
            }
        }
    }
    sim.stop().await;
}

#[tokio::test]
async fn stop_reasons_are_those_of_the_api() {
    let sim = start().await;
    for (word, reason) in [
        ("text", "end_turn"),
        ("empty", "end_turn"),
        ("tool", "tool_use"),
        ("length", "max_tokens"),
        ("refusal", "refusal"),
        ("filter", "refusal"),
    ] {
        let message = messages(&sim, &format!("sim:{word}"), Mode::Plain).await.json();
        assert_eq!(message["stop_reason"], reason, "{word}");
    }
    for (word, status, details) in [
        ("text", "completed", Value::Null),
        ("empty", "completed", Value::Null),
        ("tool", "completed", Value::Null),
        ("length", "incomplete", json!({ "reason": "max_output_tokens" })),
        ("filter", "incomplete", json!({ "reason": "content_filter" })),
        ("refusal", "completed", Value::Null),
    ] {
        let response = responses(&sim, &format!("sim:{word}"), Mode::Plain).await.json();
        assert_eq!(response["status"], status, "{word}");
        assert_eq!(response["incomplete_details"], details, "{word}");
    }
    sim.stop().await;
}

#[tokio::test]
async fn tool_calls_have_the_shape_of_each_api() {
    let sim = start().await;
    let message = messages(&sim, "sim:tool", Mode::Plain).await.json();
    let call = &message["content"][1];
    assert_eq!(call["type"], "tool_use");
    assert_eq!(call["name"], "Bash");
    assert_eq!(call["input"]["command"], "echo hi");

    let events = messages(&sim, "sim:tool", Mode::Stream).await.events();
    let input = joined(&events, "content_block_delta", "/delta/partial_json");
    assert_eq!(serde_json::from_str::<Value>(&input).expect("JSON"), call["input"]);

    let response = responses(&sim, "sim:tool", Mode::Plain).await.json();
    let call = &response["output"][1];
    assert_eq!(call["type"], "function_call");
    assert_eq!(call["name"], "exec_command");
    let arguments = call["arguments"].as_str().expect("arguments are text");
    let arguments: Value = serde_json::from_str(arguments).expect("JSON");
    assert_eq!(arguments["cmd"], "echo hi");

    let response = responses(&sim, "sim:write=a.txt", Mode::Plain).await.json();
    let call = &response["output"][0];
    assert_eq!(call["type"], "custom_tool_call");
    assert_eq!(call["name"], "apply_patch");
    assert!(call["input"].as_str().expect("text").contains("*** Add File: a.txt\n"));
    sim.stop().await;
}

#[tokio::test]
async fn every_error_has_the_words_of_its_provider() {
    let sim = start().await;
    // word, Anthropic's status and type, OpenAI's status, type and code
    let invalid = "invalid_request_error";
    for (word, (status, kind), (openai_status, openai_kind, code)) in [
        ("400", (400, invalid), (400, invalid, Some("invalid_value"))),
        ("401", (401, "authentication_error"), (401, invalid, Some("invalid_api_key"))),
        (
            "403",
            (403, "permission_error"),
            (403, "request_forbidden", Some("unsupported_country_region_territory")),
        ),
        ("404", (404, "not_found_error"), (404, invalid, Some("model_not_found"))),
        ("413", (413, "request_too_large"), (413, invalid, Some("request_too_large"))),
        ("429", (429, "rate_limit_error"), (429, "tokens", Some("rate_limit_exceeded"))),
        ("quota", (400, invalid), (429, "insufficient_quota", Some("insufficient_quota"))),
        ("context", (400, invalid), (400, invalid, Some("context_length_exceeded"))),
        ("500", (500, "api_error"), (500, "server_error", None)),
        (
            "503",
            (503, "api_error"),
            (503, "service_unavailable_error", Some("server_is_overloaded")),
        ),
        ("529", (529, "overloaded_error"), (529, "server_error", Some("server_is_overloaded"))),
    ] {
        let prompt = format!("sim:{word}");
        let response = messages(&sim, &prompt, Mode::Plain).await;
        let body = response.json();
        assert_eq!((response.status, body["error"]["type"].as_str()), (status, Some(kind)));
        assert_eq!(body["type"], "error");
        assert!(response.header("request-id").is_some());
        let response = responses(&sim, &prompt, Mode::Plain).await;
        let error = &response.json()["error"];
        assert_eq!((response.status, error["type"].as_str()), (openai_status, Some(openai_kind)));
        assert_eq!(error["code"].as_str(), code, "{word}");
        assert_eq!(response.header("retry-after"), None);
    }
    sim.stop().await;
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back_if_told_to() {
    let sim = start().await;
    let response = messages(&sim, "sim:429=7", Mode::Stream).await;
    assert_eq!(response.header("retry-after"), Some("7"));
    sim.stop().await;
}

#[tokio::test]
async fn a_context_that_is_too_long_is_an_event_in_a_stream_of_responses() {
    let sim = start().await;
    let response = responses(&sim, "sim:context", Mode::Stream).await;
    assert_eq!(response.status, 200);
    let events = response.events();
    assert_eq!(order(&events), ["response.failed"]);
    assert_eq!(events[0]["response"]["error"]["code"], "context_length_exceeded");
    sim.stop().await;
}

#[tokio::test]
async fn an_error_in_the_stream_comes_after_half_of_the_text() {
    let sim = start().await;
    let events = messages(&sim, "sim:stream-error", Mode::Stream).await.events();
    assert_eq!(events.last().expect("events")["error"]["type"], "overloaded_error");
    assert!(joined(&events, "content_block_delta", "/delta/text").starts_with("This answer"));
    let events = responses(&sim, "sim:stream-error", Mode::Stream).await.events();
    assert_eq!(order(&events).last(), Some(&"response.failed"));
    sim.stop().await;
}

#[tokio::test]
async fn an_echo_covers_every_byte_of_a_long_prompt() {
    let sim = start().await;
    let prompt = format!("sim:echo 🎉\n\"{}\"  \n", "x".repeat(200_000));
    let message = messages(&sim, &prompt, Mode::Plain).await.json();
    assert_eq!(message["content"][0]["text"], echo(&prompt));
    let known = "bytes=3 sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(echo("abc"), known);
    sim.stop().await;
}

#[tokio::test]
async fn a_huge_answer_has_the_length_that_was_asked_for() {
    let sim = start().await;
    let events = responses(&sim, "sim:huge=123456", Mode::Stream).await.events();
    let text = joined(&events, "response.output_text.delta", "/delta");
    assert_eq!(text.len(), 123_456);
    assert_eq!(text, huge(123_456));
    sim.stop().await;
}
