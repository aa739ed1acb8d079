//! Shapes and order of Google's Gemini API.

use ostler_sim::model::{GEMINI_USAGE, HELLO};
use serde_json::{Value, json};

use crate::client;
use crate::{Mode, gathered, gemini, gemini_body, gemini_path, start};

const TEXT: &str = "/candidates/0/content/parts/0/text";

fn kinds(chunks: &[Value]) -> Vec<&'static str> {
    let mut kinds: Vec<&str> = chunks
        .iter()
        .map(|chunk| {
            let candidate = &chunk["candidates"][0];
            let part = &candidate["content"]["parts"][0];
            if candidate["finishReason"].is_string() {
                "finish"
            } else if part["functionCall"].is_object() {
                "call"
            } else if part["thought"] == true {
                "thought"
            } else {
                "text"
            }
        })
        .collect();
    kinds.dedup();
    kinds
}

#[tokio::test]
async fn thoughts_and_text_stream_in_the_order_of_the_api() {
    let sim = start().await;
    let response = gemini(&sim, "sim:thinking", Mode::Stream).await;
    let (chunks, rest) = response.chunks();
    assert!(response.complete);
    assert_eq!(rest, "");
    assert_eq!(kinds(&chunks), ["thought", "text", "finish"]);
    let text = gathered(&chunks, TEXT);
    assert!(text.ends_with("see me think.I have thought about it."), "{text}");
    for chunk in &chunks {
        assert_eq!(chunk["modelVersion"], "gemini-2.5-flash");
        let usage = &chunk["usageMetadata"];
        assert_eq!(usage["promptTokenCount"], GEMINI_USAGE.input);
        assert_eq!(usage["cachedContentTokenCount"], GEMINI_USAGE.cache_read);
        assert_eq!(usage["candidatesTokenCount"], GEMINI_USAGE.output);
        assert_eq!(usage["thoughtsTokenCount"], GEMINI_USAGE.reasoning);
        assert_eq!(usage["totalTokenCount"], 430);
    }
    sim.stop().await;
}

#[tokio::test]
async fn a_plain_answer_is_one_object() {
    let sim = start().await;
    let answer = gemini(&sim, "hello", Mode::Plain).await.json();
    assert_eq!(
        answer,
        json!({
            "candidates": [{
                "content": { "role": "model", "parts": [{ "text": HELLO }] },
                "finishReason": "STOP",
                "index": 0,
            }],
            "usageMetadata": {
                "promptTokenCount": 400,
                "cachedContentTokenCount": 150,
                "candidatesTokenCount": 21,
                "thoughtsTokenCount": 9,
                "totalTokenCount": 430,
                "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": 400 }],
            },
            "modelVersion": "gemini-2.5-flash",
            "responseId": "sim000001",
        })
    );
    sim.stop().await;
}

#[tokio::test]
async fn a_call_of_a_function_comes_whole_and_its_response_is_answered() {
    let sim = start().await;
    let response = gemini(&sim, "sim:tool", Mode::Stream).await;
    let (chunks, _) = response.chunks();
    assert_eq!(kinds(&chunks), ["text", "call", "finish"]);
    let call = chunks
        .iter()
        .find_map(|chunk| chunk.pointer("/candidates/0/content/parts/0/functionCall"))
        .expect("a call");
    assert_eq!(call["name"], "run_shell_command");
    assert_eq!(call["args"]["command"], "echo hi");

    let mut body = gemini_body("sim:tool");
    let function = json!({ "name": "run_shell_command", "response": { "output": "Output: hi" } });
    let contents = body["contents"].as_array_mut().expect("contents");
    contents.push(json!({ "role": "model", "parts": [{ "functionCall": call }] }));
    contents.push(json!({ "role": "user", "parts": [{ "functionResponse": function }] }));
    let key = [("x-goog-api-key", "k")];
    let path = gemini_path(Mode::Plain);
    let answer = client::send(sim.addr(), "POST", path, &key, &body.to_string()).await.json();
    assert_eq!(answer.pointer(TEXT), Some(&json!("The tool said: Output: hi")));
    sim.stop().await;
}

#[tokio::test]
async fn files_are_read_and_written_with_its_own_tools() {
    let sim = start().await;
    let call = async |prompt: &str| {
        let answer = gemini(&sim, prompt, Mode::Plain).await.json();
        let parts = answer["candidates"][0]["content"]["parts"].as_array().expect("parts").clone();
        parts.last().expect("a part")["functionCall"].clone()
    };
    assert_eq!(
        call("sim:read=/a.txt").await,
        json!({ "name": "read_file", "args": { "file_path": "/a.txt" } })
    );
    let write = call("sim:write=/b.txt").await;
    assert_eq!(
        (&write["name"], &write["args"]["file_path"]),
        (&json!("write_file"), &json!("/b.txt"))
    );
    sim.stop().await;
}

#[tokio::test]
async fn reasons_to_finish_are_those_of_the_api() {
    let sim = start().await;
    for (word, reason, has_parts) in [
        ("text", "STOP", true),
        ("tool", "STOP", true),
        ("refusal", "STOP", true),
        ("length", "MAX_TOKENS", true),
        ("filter", "SAFETY", false),
        ("empty", "STOP", false),
    ] {
        for mode in crate::MODES {
            let response = gemini(&sim, &format!("sim:{word}"), mode).await;
            let chunks = match mode {
                Mode::Stream => response.chunks().0,
                Mode::Plain => vec![response.json()],
            };
            let last = &chunks.last().expect("a chunk")["candidates"][0];
            assert_eq!(last["finishReason"], reason, "{word}");
            let parts = "/candidates/0/content/parts/0";
            assert_eq!(chunks.iter().any(|chunk| chunk.pointer(parts).is_some()), has_parts);
        }
    }
    sim.stop().await;
}

#[tokio::test]
async fn errors_have_the_words_of_the_provider() {
    let sim = start().await;
    for (word, status, kind) in [
        ("400", 400, "INVALID_ARGUMENT"),
        ("context", 400, "INVALID_ARGUMENT"),
        ("401", 401, "UNAUTHENTICATED"),
        ("403", 403, "PERMISSION_DENIED"),
        ("404", 404, "NOT_FOUND"),
        ("413", 413, "INVALID_ARGUMENT"),
        ("429", 429, "RESOURCE_EXHAUSTED"),
        ("quota", 429, "RESOURCE_EXHAUSTED"),
        ("500", 500, "INTERNAL"),
        ("503", 503, "UNAVAILABLE"),
        ("529", 529, "UNAVAILABLE"),
    ] {
        let response = gemini(&sim, &format!("sim:{word}"), Mode::Stream).await;
        let error = &response.json()["error"];
        assert_eq!((response.status, error["status"].as_str()), (status, Some(kind)), "{word}");
        assert_eq!(error["code"], status, "{word}");
        assert!(error["message"].is_string());
    }
    sim.stop().await;
}

#[tokio::test]
async fn limits_say_what_was_exceeded_and_for_how_long() {
    let sim = start().await;
    let detail = async |word: &str| {
        let body = gemini(&sim, &format!("sim:{word}"), Mode::Plain).await.json();
        body["error"]["details"][0].clone()
    };
    assert_eq!(detail("429").await, Value::Null);
    assert_eq!(detail("429=7").await["retryDelay"], "7s");
    let quota = detail("quota").await;
    let id = quota["violations"][0]["quotaId"].as_str().expect("an id");
    assert!(id.contains("PerDay"), "{id}");
    sim.stop().await;
}

#[tokio::test]
async fn an_error_in_the_stream_is_no_event() {
    let sim = start().await;
    let response = gemini(&sim, "sim:stream-error", Mode::Stream).await;
    let (chunks, rest) = response.chunks();
    let text = gathered(&chunks, TEXT);
    assert!(text.starts_with("This answer") && !text.contains("complete"), "{text}");
    let error: Value = serde_json::from_str(rest).expect("JSON");
    assert_eq!(error["error"]["status"], "UNAVAILABLE");
    sim.stop().await;
}

#[tokio::test]
async fn an_answer_fits_the_schema_whatever_the_prompt_says() {
    let sim = start().await;
    let mut body = gemini_body("sim:once-500");
    body["generationConfig"] = json!({
        "responseMimeType": "application/json",
        "responseJsonSchema": {
            "type": "OBJECT",
            "properties": {
                "complexity_reasoning": { "type": "STRING" },
                "complexity_score": { "type": "INTEGER" },
            },
            "required": ["complexity_reasoning", "complexity_score"],
        },
    });
    let key = [("x-goog-api-key", "k")];
    let path = gemini_path(Mode::Plain);
    let answer = client::send(sim.addr(), "POST", path, &key, &body.to_string()).await.json();
    let text = answer.pointer(TEXT).and_then(Value::as_str).expect("a text");
    let value: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(value, json!({ "complexity_reasoning": "simulated", "complexity_score": 1 }));
    // It was beside the turn, so the turn itself still has its one failure.
    assert_eq!(gemini(&sim, "sim:once-500", Mode::Stream).await.status, 500);
    assert_eq!(gemini(&sim, "sim:once-500", Mode::Stream).await.status, 200);
    let words: Vec<Option<String>> = sim.requests().iter().map(|one| one.word.clone()).collect();
    assert_eq!(words, [None, Some("once-500".to_owned()), Some("once-500".to_owned())]);
    sim.stop().await;
}
