//! Shapes and order of OpenAI's Chat Completions.

use ostler_sim::model::{CHAT_USAGE, HELLO, huge};
use serde_json::{Value, json};

use crate::client;
use crate::{Mode, chat, chat_body, gathered, start};

const CONTENT: &str = "/choices/0/delta/content";

/// Returns the names of the fields of all deltas without repetitions in a row.
fn order(chunks: &[Value]) -> Vec<String> {
    let mut order: Vec<String> = chunks
        .iter()
        .map(|chunk| match chunk.pointer("/choices/0") {
            Some(choice) if choice["finish_reason"].is_string() => "finish".to_owned(),
            Some(choice) => {
                let delta = choice["delta"].as_object().expect("a delta");
                delta.keys().cloned().collect::<Vec<_>>().join("+")
            }
            None => "usage".to_owned(),
        })
        .collect();
    order.dedup();
    order
}

#[tokio::test]
async fn thinking_and_text_stream_in_the_order_of_the_api() {
    let sim = start().await;
    let response = chat(&sim, "sim:thinking", Mode::Stream).await;
    let (chunks, rest) = response.chunks();
    assert!(response.complete);
    assert_eq!(rest, "data: [DONE]\n\n");
    assert_eq!(
        order(&chunks),
        ["content+refusal+role", "reasoning_content", "content", "finish", "usage"]
    );
    assert_eq!(gathered(&chunks, CONTENT), "I have thought about it.");
    let thinking = gathered(&chunks, "/choices/0/delta/reasoning_content");
    assert!(thinking.contains("see me think"), "{thinking}");
    assert_eq!(gathered(&chunks, "/choices/0/finish_reason"), "stop");
    let last = chunks.last().expect("chunks");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["prompt_tokens"], CHAT_USAGE.input);
    assert_eq!(last["usage"]["completion_tokens"], CHAT_USAGE.output);
    for chunk in &chunks {
        assert_eq!(chunk["id"], "chatcmpl-sim000001");
        assert_eq!(chunk["object"], "chat.completion.chunk");
    }
    sim.stop().await;
}

#[tokio::test]
async fn usage_streams_only_when_it_is_asked_for() {
    let sim = start().await;
    let mut body = chat_body("hello", Mode::Stream);
    body["stream_options"] = json!(null);
    let key = [("authorization", "Bearer k")];
    let path = "/chat/completions";
    let response = client::send(sim.addr(), "POST", path, &key, &body.to_string()).await;
    let (chunks, rest) = response.chunks();
    assert_eq!(order(&chunks).last().map(String::as_str), Some("finish"));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    assert_eq!(rest, "data: [DONE]\n\n");
    sim.stop().await;
}

#[tokio::test]
async fn a_plain_completion_is_one_object() {
    let sim = start().await;
    let completion = chat(&sim, "hello", Mode::Plain).await.json();
    assert_eq!(
        completion,
        json!({
            "id": "chatcmpl-sim000001",
            "object": "chat.completion",
            "created": 1_767_225_600,
            "model": "sim-1",
            "system_fingerprint": "fp_sim",
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": HELLO, "refusal": null },
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": {
                "prompt_tokens": 1100,
                "completion_tokens": 28,
                "total_tokens": 1128,
                "prompt_tokens_details": { "cached_tokens": 900 },
                "completion_tokens_details": { "reasoning_tokens": 8 },
            },
        })
    );
    sim.stop().await;
}

#[tokio::test]
async fn several_tool_calls_stream_one_after_the_other() {
    let sim = start().await;
    let plain = chat(&sim, "sim:tools", Mode::Plain).await.json();
    let calls = plain["choices"][0]["message"]["tool_calls"].as_array().expect("calls").clone();
    let names: Vec<&Value> = calls.iter().map(|call| &call["function"]["name"]).collect();
    assert_eq!(names, ["bash", "bash", "no_such_tool"]);
    assert_eq!(plain["choices"][0]["message"]["content"], Value::Null);

    let response = chat(&sim, "sim:tools", Mode::Stream).await;
    let (chunks, _) = response.chunks();
    let pieces: Vec<&Value> =
        chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0")).collect();
    for (index, call) in calls.iter().enumerate() {
        let of_call: Vec<&&Value> =
            pieces.iter().filter(|piece| piece["index"] == json!(index)).collect();
        assert_eq!(of_call[0]["function"]["name"], call["function"]["name"]);
        assert_eq!(of_call[0]["id"], format!("call_sim000002_{index}"));
        assert!(of_call[1..].iter().all(|piece| piece.get("id").is_none()));
        let arguments: String =
            of_call.iter().filter_map(|piece| piece["function"]["arguments"].as_str()).collect();
        assert_eq!(call["function"]["arguments"], arguments);
    }
    assert_eq!(gathered(&chunks, "/choices/0/finish_reason"), "tool_calls");
    sim.stop().await;
}

#[tokio::test]
async fn a_result_of_a_tool_is_answered() {
    let sim = start().await;
    let mut body = chat_body("sim:tool", Mode::Plain);
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [] }));
    messages.push(json!({ "role": "tool", "tool_call_id": "c", "content": "hi\n" }));
    let key = [("authorization", "Bearer k")];
    let path = "/v1/chat/completions";
    let response = client::send(sim.addr(), "POST", path, &key, &body.to_string()).await.json();
    assert_eq!(response["choices"][0]["message"]["content"], "The tool said: hi\n");
    sim.stop().await;
}

#[tokio::test]
async fn reasons_to_finish_are_those_of_the_api() {
    let sim = start().await;
    for (word, field, reason) in [
        ("text", "content", "stop"),
        ("length", "content", "length"),
        ("filter", "content", "content_filter"),
        ("refusal", "refusal", "stop"),
        ("tool", "tool_calls", "tool_calls"),
    ] {
        let completion = chat(&sim, &format!("sim:{word}"), Mode::Plain).await.json();
        let choice = &completion["choices"][0];
        assert_eq!(choice["finish_reason"], reason, "{word}");
        assert!(!choice["message"][field].is_null(), "{word}");
    }
    let empty = chat(&sim, "sim:empty", Mode::Plain).await.json();
    assert_eq!(empty["choices"][0]["message"]["content"], Value::Null);
    sim.stop().await;
}

#[tokio::test]
async fn errors_have_the_words_of_the_provider() {
    let sim = start().await;
    let invalid = "invalid_request_error";
    for (word, status, kind, code) in [
        ("400", 400, invalid, Some("invalid_value")),
        ("401", 401, invalid, Some("invalid_api_key")),
        ("404", 404, invalid, Some("model_not_found")),
        ("429", 429, "tokens", Some("rate_limit_exceeded")),
        ("quota", 429, "insufficient_quota", Some("insufficient_quota")),
        ("500", 500, "server_error", None),
        // Unlike in the newer API, it is an error before the stream begins.
        ("context", 400, invalid, Some("context_length_exceeded")),
    ] {
        let response = chat(&sim, &format!("sim:{word}"), Mode::Stream).await;
        let error = &response.json()["error"];
        assert_eq!((response.status, error["type"].as_str()), (status, Some(kind)), "{word}");
        assert_eq!(error["code"].as_str(), code, "{word}");
    }
    sim.stop().await;
}

#[tokio::test]
async fn an_error_in_the_stream_comes_after_half_of_the_text() {
    let sim = start().await;
    let response = chat(&sim, "sim:stream-error", Mode::Stream).await;
    let (chunks, rest) = response.chunks();
    assert_eq!(rest, "", "nothing comes after the error");
    assert_eq!(chunks.last().expect("chunks")["error"]["type"], "server_error");
    let text = gathered(&chunks, CONTENT);
    assert!(text.starts_with("This answer") && !text.contains("complete"), "{text}");
    sim.stop().await;
}

#[tokio::test]
async fn a_huge_answer_arrives_whole_and_never_repeats_a_line() {
    let sim = start().await;
    let response = chat(&sim, "sim:huge=123456", Mode::Stream).await;
    let text = gathered(&response.chunks().0, CONTENT);
    assert_eq!(text, huge(123_456));
    let mut lines: Vec<&str> = text.lines().collect();
    let n_lines = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), n_lines);
    sim.stop().await;
}
