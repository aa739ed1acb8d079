//! What holds for every request.

mod matrix;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    health::Phase,
    testing::{LIMIT, Rig, answer},
};
use crate::{config::Api, gateway::testing::Knobs, key::Scope, store::testing::on_both};

/// Sends bytes, and returns everything that comes until the connection ends.
async fn say(rig: &Rig, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    // The other side may have enough before it has everything.
    stream.write_all(bytes).await.ok();
    let (mut heard, mut buffer) = (Vec::new(), [0; 1024]);
    let listened = tokio::time::timeout(LIMIT, async {
        while let Ok(n_read @ 1..) = stream.read(&mut buffer).await {
            heard.extend_from_slice(&buffer[..n_read]);
        }
    });
    listened.await.expect("the connection ends");
    String::from_utf8(heard).unwrap()
}

on_both! {
    async fn anybody_may_ask_whether_it_lives_and_is_ready(store: Store) {
        let rig = Rig::new(store).await;
        let health = answer(rig.request("GET", "/health").send().await.unwrap()).await;
        assert_eq!(health.body, json!({ "status": "healthy", "agents": { "pi": "available" } }));
        for (phase, status, word) in [
            (Phase::Starting, 503, "starting"),
            (Phase::Ready, 200, "ready"),
            (Phase::Stopping, 503, "stopping"),
        ] {
            rig.phase.send_replace(phase);
            let ready = answer(rig.request("GET", "/ready").send().await.unwrap()).await;
            assert_eq!((ready.status, ready.body), (status, json!({ "status": word })));
        }
        rig.stop().await;
    }

    async fn without_its_store_it_lives_but_is_not_ready(store: Store) {
        let rig = Rig::new(store.clone()).await;
        store.close().await;
        let health = answer(rig.request("GET", "/health").send().await.unwrap()).await;
        assert_eq!(health.status, 200);
        let ready = answer(rig.request("GET", "/ready").send().await.unwrap()).await;
        assert_eq!((ready.status, ready.body), (503, json!({ "status": "store_unreachable" })));
        rig.stop().await;
    }

    async fn what_is_not_there_is_an_error_in_the_envelope(store: Store) {
        let rig = Rig::new(store).await;
        for (method, path, status, code) in [
            ("GET", "/", 404, "NOT_FOUND"),
            ("POST", "/v1/chat/completions", 404, "NOT_FOUND"),
            ("POST", "/health", 405, "BAD_REQUEST"),
        ] {
            let answer = rig.call(method, path, None).await;
            assert_eq!((answer.status, answer.code()), (status, code), "{path}");
            assert!(answer.body["error"]["message"].is_string());
        }
        rig.stop().await;
    }

    async fn a_request_has_the_name_that_it_came_with_if_that_can_be_one(store: Store) {
        let rig = Rig::new(store).await;
        let long = "x".repeat(129);
        for (given, is_kept) in
            [("my-1.2:3_4", true), ("", false), ("with space", false), (long.as_str(), false)]
        {
            let request = rig.request("GET", "/nothing").header("X-Request-Id", given);
            let answer = answer(request.send().await.unwrap()).await;
            let named = answer.headers["x-request-id"].to_str().unwrap();
            assert_eq!(answer.body["meta"]["request_id"], named);
            assert_eq!(named == given, is_kept, "{given}");
            assert!(is_kept || named.starts_with("req_"), "{named}");
        }
        rig.stop().await;
    }

    async fn a_body_that_is_too_long_is_refused_however_it_comes(store: Store) {
        let api = Api { max_body: 2048, ..Knobs::default().api };
        let rig = Rig::with(store, Knobs { api, ..Knobs::default() }).await;
        let head = format!(
            "POST /keys HTTP/1.1\r\nHost: ostler\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nConnection: close\r\n",
            rig.admin
        );
        let long = "x".repeat(2049);
        let chunk = format!("{:x}\r\n{}\r\n", 1000, "x".repeat(1000));
        for body in [
            format!("Content-Length: {}\r\n\r\n{long}", long.len()),
            // Nobody waits for the rest of it.
            format!("Content-Length: 999999999999\r\n\r\n{long}"),
            format!("Transfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(3)),
        ] {
            let answer = say(&rig, format!("{head}{body}").as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
            assert!(answer.contains("BAD_REQUEST") && answer.contains("2048"), "{answer}");
        }
        let body = r#"{"name":"a","scopes":["keys:read"]}"#;
        let (start, end) = body.split_at(10);
        let chunked = format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{start}\r\n{:x}\r\n{end}\r\n0\r\n\r\n",
            start.len(),
            end.len()
        );
        let answer = say(&rig, chunked.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        for (broken, status) in [
            (format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), "400"),
            (format!("{head}Content-Length: 5\r\n\r\nnull!"), "400"),
            (format!("{head}Content-Length: 0\r\n\r\n"), "400"),
        ] {
            let answer = say(&rig, broken.as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            assert!(answer.contains("BAD_REQUEST"), "{answer}");
        }
        rig.stop().await;
    }

    async fn who_may_not_is_told_so_whatever_he_sends(store: Store) {
        let rig = Rig::new(store).await;
        let key = rig.key(&[Scope::ProjectsRead]).await;
        for path in ["/keys", "/webhooks", "/projects"] {
            for (sort, body) in [("application/json", "{"), ("text/plain", "{}")] {
                let request = rig.request("POST", path).bearer_auth(&key);
                let request = request.header("Content-Type", sort).body(body);
                let answer = answer(request.send().await.unwrap()).await;
                assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"), "{path} {sort}");
            }
        }
        rig.stop().await;
    }

    async fn no_answer_is_guessed_at_or_kept_and_no_page_may_call(store: Store) {
        let rig = Rig::new(store).await;
        for path in ["/keys", "/nothing", "/health"] {
            let request = rig.request("GET", path).header("Origin", "https://example.org");
            let answer = answer(request.bearer_auth(&rig.admin).send().await.unwrap()).await;
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
            assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
            assert!(!answer.headers.contains_key("access-control-allow-origin"), "{path}");
        }
        let asked = rig.request("OPTIONS", "/keys").header("Origin", "https://example.org");
        let asked = asked.header("Access-Control-Request-Method", "GET");
        assert_eq!(asked.send().await.unwrap().status(), 405);
        rig.stop().await;
    }

    async fn pages_of_the_origins_that_are_named_may_call(store: Store) {
        let cors_origins = vec!["https://example.org".to_owned()];
        let api = Api { cors_origins, ..Knobs::default().api };
        let rig = Rig::with(store, Knobs { api, ..Knobs::default() }).await;
        for (origin, is_allowed) in
            [("https://example.org", true), ("https://example.com", false), ("null", false)]
        {
            let asked = rig.request("OPTIONS", "/keys").header("Origin", origin);
            let asked = asked.header("Access-Control-Request-Method", "POST");
            let asked = asked.header("Access-Control-Request-Headers", "authorization");
            let headers = asked.send().await.unwrap().headers().clone();
            let called = rig.request("GET", "/keys").header("Origin", origin);
            let called = answer(called.send().await.unwrap()).await;
            // The page may also read why it was refused.
            assert_eq!(called.status, 401);
            for headers in [&headers, &called.headers] {
                let allowed = headers.get("access-control-allow-origin");
                assert_eq!(allowed.is_some_and(|allowed| allowed == origin), is_allowed, "{origin}");
                assert!(!headers.contains_key("access-control-allow-credentials"));
            }
            let shown = &called.headers["access-control-expose-headers"];
            assert_eq!(shown, "retry-after,x-request-id,idempotency-replayed");
        }
        rig.stop().await;
    }
}
