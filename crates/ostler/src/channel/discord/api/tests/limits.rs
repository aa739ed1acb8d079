//! What Discord has no time for, and how long that is waited for.

use std::sync::atomic::AtomicU32;

use super::*;

/// Sends a message to a server that refuses it like this until it was asked three
/// times, and returns how long it waited each time.
async fn waits(headers: &[(&str, &str)], body: &Value) -> Vec<Duration> {
    let times = Mutex::new(Vec::new());
    let sent = send(LIMIT, async |asked| {
        let n_asked = {
            let mut times = times.lock().unwrap();
            times.push(Instant::now());
            times.len()
        };
        match n_asked {
            3 => asked.answer(200, &json!({"id": "101"})),
            _ => asked.answer_with(429, headers, body.to_string()),
        }
    });
    assert_eq!(sent.await, Ok("101".to_owned()));
    let times = times.into_inner().unwrap();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test]
async fn a_message_waits_as_long_as_discord_says() {
    let headers = [
        ("x-ratelimit-scope", "user"),
        ("x-ratelimit-bucket", "b"),
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset-after", "0.2"),
        ("retry-after", "1"),
    ];
    let body = json!({"message": "slow down", "retry_after": 0.9, "global": false});
    let waits = waits(&headers, &body).await;
    assert!(waits.iter().all(|wait| *wait >= Duration::from_millis(900)), "{waits:?}");
}

#[tokio::test]
async fn a_limit_of_all_calls_is_waited_for_as_long_as_discord_says() {
    let headers =
        [("x-ratelimit-scope", "global"), ("x-ratelimit-global", "true"), ("retry-after", "2")];
    let body = json!({"message": "slow down", "retry_after": 1.2, "global": true});
    let waits = waits(&headers, &body).await;
    assert!(waits.iter().all(|wait| *wait >= Duration::from_millis(1200)), "{waits:?}");
}

#[tokio::test]
async fn a_refusal_that_is_not_discords_own_is_waited_for_by_its_header() {
    let waits = waits(&[("retry-after", "1")], &json!("error code: 1015")).await;
    assert!(waits.iter().all(|wait| *wait >= Duration::from_secs(1)), "{waits:?}");
}

#[tokio::test]
async fn a_refusal_without_a_time_is_waited_for_longer_and_longer() {
    let waits = waits(&[], &json!({})).await;
    assert!(waits[0] >= lull::FIRST && waits[1] >= 2 * lull::FIRST, "{waits:?}");
}

#[tokio::test]
async fn a_limit_of_all_calls_holds_up_everything_but_buttons_and_commands() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let ticket = Ticket { application: "800".into(), id: "300".into(), token: "tick-et".into() };
    // Long enough for a machine that is busy.
    let told = Duration::from_secs(5);
    let (typed, ()) = tokio::join!(api.typing("50", None), async {
        let body = json!({"message": "slow down", "retry_after": 5, "global": true});
        server.next().await.answer(429, &body);
        let begun = Instant::now();
        let is_heard = async {
            while api.has_room() {
                tokio::task::yield_now().await;
            }
        };
        time::timeout(LIMIT, is_heard).await.unwrap();
        let answered = async {
            let asked = server.next().await;
            assert!(asked.what.starts_with("POST /interactions/"), "{}", asked.what);
            assert!(begun.elapsed() < told, "{:?}", begun.elapsed());
            asked.answer(204, &Value::Null);
            for _ in 0..2 {
                let asked = server.next().await;
                assert!(asked.what.ends_with("/typing"), "{}", asked.what);
                assert!(begun.elapsed() >= told, "{:?}", begun.elapsed());
                asked.answer(204, &Value::Null);
            }
        };
        let (other, pressed, ()) = tokio::join!(
            api.typing("51", None),
            api.respond(&ticket, &Response::Nothing),
            answered
        );
        other.unwrap();
        pressed.unwrap();
    });
    typed.unwrap();
}

#[tokio::test]
async fn a_button_that_is_refused_waits_and_nothing_waits_for_it() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let ticket = Ticket { application: "800".into(), id: "300".into(), token: "tick-et".into() };
    let (answered, ()) = tokio::join!(api.whisper(&ticket, "more"), async {
        let body = json!({"message": "slow down", "retry_after": 0.7, "global": true});
        server.next().await.answer(429, &body);
        let begun = Instant::now();
        let asked = server.expect("POST /channels/50/typing", 204, &Value::Null);
        let (typed, ()) = tokio::join!(api.typing("50", None), asked);
        typed.unwrap();
        server.expect("POST /webhooks/800/tick-et", 200, &json!({"id": "1"})).await;
        assert!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
    });
    answered.unwrap();
}

#[tokio::test]
async fn the_last_call_that_is_left_is_not_followed_by_one_that_is_refused() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let post = post("hello");
    let posting = Posting { post: &post, nonce: "n", answers: None };
    let start = Instant::now();
    let both = async { tokio::join!(api.send("50", posting), api.send("50", posting)) };
    let ((one, other), took) = tokio::join!(both, async {
        let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "0.3")];
        server.next().await.answer_with(200, &headers, json!({"id": "101"}).to_string());
        let next = server.next().await;
        let took = start.elapsed();
        next.answer(200, &json!({"id": "102"}));
        took
    });
    assert_eq!((one.unwrap().message.as_str(), other.unwrap().message.as_str()), ("101", "102"));
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

#[tokio::test]
async fn a_place_that_rests_holds_up_no_other() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let (typed, ()) = tokio::join!(api.typing("50", None), async {
        let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "50")];
        server.next().await.answer_with(204, &headers, String::new());
    });
    typed.unwrap();
    let (typed, ()) = tokio::join!(api.typing("51", None), async {
        server.next().await.answer_with(204, &[], String::new());
    });
    typed.unwrap();
}

#[tokio::test]
async fn what_would_be_too_late_is_not_waited_for() {
    let mut server = Server::start().await;
    let api = api(&server, SHORT).with_rate(1);
    let (typed, ()) = tokio::join!(api.typing("50", None), async {
        server.next().await.answer_with(204, &[], String::new());
    });
    typed.unwrap();
    assert!(!api.has_room());
    let error = api.typing("51", None).await.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (Next::Retry { after: None }, false));
    assert!(server.try_next().is_none());
}

#[tokio::test]
async fn a_limit_that_ends_too_late_is_left_to_whoever_tries_again() {
    for is_global in [true, false] {
        let n_asked = AtomicU32::new(0);
        let sent = send(LIMIT, async |asked| {
            n_asked.fetch_add(1, Ordering::Relaxed);
            asked.answer(429, &json!({"message": "no", "retry_after": 60.0, "global": is_global}));
        });
        let error = sent.await.unwrap_err();
        let next = Next::Retry { after: Some(Duration::from_secs(60)) };
        assert_eq!((error.next, error.is_unsure), (next, false), "{error}");
        assert_eq!(n_asked.into_inner(), 1);
    }
}

#[tokio::test]
async fn what_was_refused_for_want_of_time_was_certainly_not_sent() {
    let n_asked = AtomicU32::new(0);
    let refusal = json!({"message": "no", "retry_after": 0.3, "global": false});
    let sent = send(SHORT, async |asked| {
        n_asked.fetch_add(1, Ordering::Relaxed);
        asked.answer(429, &refusal);
    });
    let error = sent.await.unwrap_err();
    assert!(!error.is_unsure, "{error}");
    // Who sends it again and hears nothing does not know.
    let n_asked = AtomicU32::new(0);
    let sent =
        send(Duration::from_secs(2), async |asked| match n_asked.fetch_add(1, Ordering::Relaxed) {
            0 => asked.answer(429, &refusal),
            _ => asked.hold().await,
        });
    let error = sent.await.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (Next::Retry { after: None }, true), "{error}");
}

#[tokio::test]
async fn a_limit_without_an_end_is_not_run_against_for_long() {
    let n_asked = AtomicU32::new(0);
    let sent = send(LIMIT, async |asked| {
        n_asked.fetch_add(1, Ordering::Relaxed);
        asked.answer(429, &json!({"message": "no", "retry_after": 0.01, "global": true}));
    });
    let error = sent.await.unwrap_err();
    let next = Next::Retry { after: Some(Duration::from_millis(10)) };
    assert_eq!((error.next, error.is_unsure), (next, false), "{error}");
    assert_eq!(n_asked.into_inner(), TRIES);
}
