//! Keys, the request log, broken requests, timing, start and stop.

use std::net::{Ipv4Addr, SocketAddr};

use ostler_sim::model::{HELLO, Options, Sim};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client;
use crate::{
    Mode, chat_body, gemini_body, gemini_path, joined, messages, messages_body, responses,
    responses_body, start,
};

#[tokio::test]
async fn any_key_will_do_except_a_wrong_one_or_none() {
    let sim = start().await;
    for (path, body, good, wrong) in [
        (
            "/v1/messages",
            messages_body("hi", Mode::Plain),
            ("x-api-key", "sk-ant-1"),
            ("x-api-key", "sk-wrong"),
        ),
        (
            "/responses",
            responses_body("hi", Mode::Plain),
            ("authorization", "Bearer sk-1"),
            ("authorization", "Bearer sk-wrong"),
        ),
        (
            "/v1/chat/completions",
            chat_body("hi", Mode::Plain),
            ("authorization", "Bearer sk-2"),
            ("authorization", "Bearer sk-wrong"),
        ),
    ] {
        let body = body.to_string();
        let post = async |headers: &[(&str, &str)]| {
            client::send(sim.addr(), "POST", path, headers, &body).await
        };
        assert_eq!(post(&[good]).await.status, 200);
        let refused = post(&[wrong]).await;
        assert_eq!(refused.status, 401);
        assert!(refused.json()["error"]["message"].is_string());
        assert_eq!(post(&[]).await.status, 401);
    }
    let keys: Vec<Option<String>> =
        sim.requests().iter().map(|request| request.key.clone()).collect();
    let key = |text: &str| Some(text.to_owned());
    let wrong = || key("sk-wrong");
    assert_eq!(
        keys,
        [key("sk-ant-1"), wrong(), None, key("sk-1"), wrong(), None, key("sk-2"), wrong(), None]
    );
    sim.stop().await;
}

#[tokio::test]
async fn google_takes_its_key_in_a_header_or_in_the_address() {
    let sim = start().await;
    let path = gemini_path(Mode::Plain);
    for (query, headers, status, reason) in [
        ("", &[("x-goog-api-key", "AIza-1")][..], 200, None),
        ("?key=AIza-2", &[], 200, None),
        // A wrong key is a wrong argument to Google, and none is no permission.
        ("?alt=json&key=wrong", &[], 400, Some("API_KEY_INVALID")),
        ("", &[], 403, None),
    ] {
        let body = gemini_body("hi").to_string();
        let path = format!("{path}{query}");
        let response = client::send(sim.addr(), "POST", &path, headers, &body).await;
        assert_eq!(response.status, status, "{query}");
        let json = response.json();
        assert_eq!(json.pointer("/error/details/0/reason").and_then(Value::as_str), reason);
    }
    sim.stop().await;
}

#[tokio::test]
async fn the_log_holds_what_was_sent_in_the_order_of_arrival() {
    let sim = start().await;
    messages(&sim, "first sim:echo", Mode::Stream).await;
    responses(&sim, "second sim:500", Mode::Plain).await;
    let requests = sim.requests();
    let [first, second] = &requests[..] else { panic!("two requests, not {requests:?}") };
    assert_eq!((first.number, second.number), (1, 2));
    assert_eq!(first.method, "POST");
    assert_eq!(first.path, "/v1/messages?beta=true");
    assert_eq!(first.headers.get("x-api-key").map(String::as_str), Some("k"));
    assert_eq!(first.body, messages_body("first sim:echo", Mode::Stream));
    assert_eq!(first.prompt.as_deref(), Some("first sim:echo"));
    assert_eq!((first.word.as_deref(), first.status), (Some("echo"), 200));
    assert_eq!((second.word.as_deref(), second.status), (Some("500"), 500));
    sim.stop().await;
}

#[tokio::test]
async fn the_log_can_be_read_over_http() {
    let sim = start().await;
    messages(&sim, "one", Mode::Plain).await;
    messages(&sim, "two", Mode::Plain).await;
    let get = async |path| client::send(sim.addr(), "GET", path, &[], "").await.json();
    let all = get("/sim/requests").await;
    let prompts: Vec<&Value> =
        all["requests"].as_array().expect("a list").iter().map(|one| &one["prompt"]).collect();
    assert_eq!(prompts, ["one", "two"]);
    let newest = get("/sim/requests?since=1").await;
    assert_eq!(newest["requests"][0]["prompt"], "two");
    assert_eq!(sim.requests().len(), 2, "reading the log is not recorded");
    sim.stop().await;
}

#[tokio::test]
async fn an_error_that_comes_once_is_followed_by_an_answer() {
    let sim = start().await;
    let statuses = [
        messages(&sim, "sim:once-529", Mode::Stream).await.status,
        messages(&sim, "sim:once-529", Mode::Stream).await.status,
    ];
    assert_eq!(statuses, [529, 200]);
    sim.stop().await;
}

#[tokio::test]
async fn broken_requests_get_an_error_and_are_recorded() {
    let sim = start().await;
    let key = [("x-api-key", "k")];
    let response = client::send(sim.addr(), "POST", "/v1/messages", &key, "{not json").await;
    assert_eq!(response.status, 400);
    let response = client::send(sim.addr(), "POST", "/v1/nothing", &key, "{}").await;
    assert_eq!(response.status, 404);
    // A request without any message is answered all the same.
    let response = client::send(sim.addr(), "POST", "/v1/responses", &key, "[1]").await;
    assert_eq!(response.status, 200);
    let bodies: Vec<Value> = sim.requests().iter().map(|request| request.body.clone()).collect();
    assert_eq!(bodies, [json!("{not json"), json!({}), json!([1])]);
    sim.stop().await;
}

#[tokio::test]
async fn side_calls_are_answered() {
    let sim = start().await;
    let key = [("x-api-key", "k")];
    let path = "/v1/messages/count_tokens";
    let counted = client::send(sim.addr(), "POST", path, &key, "{}").await.json();
    assert_eq!(counted, json!({ "input_tokens": 100 }));
    let models = client::send(sim.addr(), "GET", "/v1/models", &key, "").await.json();
    assert_eq!(models["data"][0]["id"], "claude-opus-5-5");
    let path = "/v1beta/models/gemini-2.5-flash:countTokens";
    let counted = client::send(sim.addr(), "POST", path, &key, "{}").await.json();
    assert_eq!(counted, json!({ "totalTokens": 400 }));
    let models = client::send(sim.addr(), "GET", "/v1beta/models", &key, "").await.json();
    assert_eq!(models["models"][0]["name"], "models/gemini-2.5-flash");
    let path = "/v1beta/models/x:embedContent";
    let unknown = client::send(sim.addr(), "POST", path, &key, "{}").await;
    assert_eq!((unknown.status, &unknown.json()["error"]["status"]), (404, &json!("NOT_FOUND")));
    sim.stop().await;
}

#[tokio::test]
async fn a_cut_stream_delivers_its_first_half() {
    let sim = start().await;
    let response = messages(&sim, "sim:cut", Mode::Stream).await;
    assert!(!response.complete);
    let text = joined(&response.events(), "content_block_delta", "/delta/text");
    assert!(text.starts_with("This answer takes its time"), "{text}");
    assert!(!text.contains("complete"), "{text}");
    sim.stop().await;
}

#[tokio::test]
async fn stopping_ends_answers_that_would_never_end() {
    let sim = start().await;
    let key = [("x-api-key", "k")];
    let mut open = Vec::new();
    for (prompt, needle) in [("sim:silence", "\r\n\r\n"), ("sim:stall", "content_block_delta")] {
        for mode in [Mode::Stream, Mode::Plain] {
            let needle = if mode == Mode::Plain { "\r\n\r\n" } else { needle };
            let body = messages_body(prompt, mode).to_string();
            let mut stream = client::begin(sim.addr(), "POST", "/v1/messages", &key, &body).await;
            let received = client::read_until(&mut stream, needle).await;
            assert!(received.starts_with("HTTP/1.1 200 OK"), "{received}");
            open.push(stream);
        }
    }
    let address = sim.addr();
    sim.stop().await;
    for mut stream in open {
        let mut rest = Vec::new();
        // A reset is as good an end as a close.
        while let Ok(1..) = tokio::io::AsyncReadExt::read_buf(&mut stream, &mut rest).await {}
        assert!(
            !String::from_utf8_lossy(&rest).ends_with("0\r\n\r\n"),
            "an end, but not a regular one"
        );
    }
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn only_loopback_addresses_are_accepted() {
    let address: SocketAddr = (Ipv4Addr::UNSPECIFIED, 0).into();
    let options = Options { address, ..Options::default() };
    let error = Sim::start(options).await.expect_err("not loopback");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "the simulated model listens on loopback only, not on 0.0.0.0:0");
}

#[tokio::test]
async fn the_fallback_word_answers_prompts_that_cannot_hold_one() {
    let options = Options { fallback: "echo-text".to_owned(), ..Options::default() };
    let sim = Sim::start(options).await.expect("a free port");
    assert!(sim.base_url().starts_with("http://127.0.0.1:"));
    let message = messages(&sim, "--help", Mode::Plain).await.json();
    assert_eq!(message["content"][0]["text"], "--help");
    let message = messages(&sim, "sim:text", Mode::Plain).await.json();
    assert_eq!(message["content"][0]["text"], HELLO);
    sim.stop().await;
}
