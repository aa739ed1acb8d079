//! Many calls at once, and what they wait for.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::*;

#[tokio::test]
async fn fifty_buttons_are_answered_beside_each_other_and_beside_whatever_hangs() {
    let mut server = Server::start().await;
    let api = Arc::new(api(&server, LIMIT));
    let mut calls = JoinSet::new();
    let asking = Arc::clone(&api);
    calls.spawn(async move { asking.application().await.map(drop) });
    let hanging = server.next().await;
    for number in 0..50 {
        let (api, id) = (Arc::clone(&api), (300 + number).to_string());
        let ticket = Ticket { application: "800".into(), id, token: "tick-et".into() };
        calls.spawn(async move { api.respond(&ticket, &Response::Nothing).await.map(drop) });
    }
    // None of them is answered before all are there.
    let mut asked = Vec::new();
    for _ in 0..50 {
        asked.push(server.next().await);
    }
    for one in asked {
        assert!(one.what.starts_with("POST /interactions/"), "{}", one.what);
        one.answer(204, &Value::Null);
    }
    hanging.answer(200, &json!({"id": "800"}));
    assert!(calls.join_all().await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_call_that_waited_for_its_turn_does_not_leave_in_a_pause_of_all_calls() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT).with_rate(1);
    let (both, waited) = tokio::join!(
        async { tokio::join!(api.typing("50", None), api.typing("51", None)) },
        async {
            let asked = server.next().await;
            let start = Instant::now();
            let body = json!({"message": "slow down", "retry_after": 2.0, "global": true});
            asked.answer_with(429, &[("x-ratelimit-scope", "global")], body.to_string());
            let next = server.next().await;
            let waited = start.elapsed();
            next.answer(204, &Value::Null);
            server.next().await.answer(204, &Value::Null);
            waited
        }
    );
    assert_eq!(both, (Ok(()), Ok(())));
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
}

#[tokio::test]
async fn what_was_answered_before_is_no_failure_and_says_whether_it_was_put_off() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let ticket = Ticket { application: "800".into(), id: "300".into(), token: "tick-et".into() };
    let later = Response::Later { is_private: true };
    let before = json!({"code": 40060, "message": "Interaction has already been acknowledged."});
    let asked = server.expect("POST /interactions/300/tick-et/callback", 400, &before);
    let (answered, ()) = tokio::join!(api.respond(&ticket, &later), asked);
    assert_eq!(answered, Ok(Given::Before));
    let path = "GET /webhooks/800/tick-et/messages/@original";
    for (flags, is_awaited) in [(64 | 128, true), (64, false)] {
        let message = json!({"id": "1", "flags": flags});
        let asked = server.expect(path, 200, &message);
        let (awaited, ()) = tokio::join!(api.is_awaited(&ticket), asked);
        assert_eq!(awaited, Ok(is_awaited));
    }
}
