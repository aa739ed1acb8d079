//! What is posted, and what comes of every way to answer it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::{
        Channels, Next, WEBHOOK,
        testing::{Receiver, Request, sending},
    },
    *,
};

const SHORT: Limits = Limits {
    connect: Duration::from_secs(5),
    whole: Duration::from_secs(1),
    body: Duration::from_millis(50),
};

/// Sends a message to a receiver that treats it like this.
async fn post(limits: Limits, treat: impl AsyncFnOnce(Request)) -> Result<Sent, SendError> {
    let mut receiver = Receiver::start().await;
    let sending = sending(WEBHOOK, &format!("{}/in?key=very-secret", receiver.url));
    let channels = Channels::with_limits(limits);
    let treated = async { treat(receiver.next().await).await };
    let (sent, ()) = tokio::join!(channels.send(&sending), treated);
    if let Err(error) = &sent {
        assert!(!error.reason.contains("secret"), "{error}");
    }
    sent
}

#[tokio::test]
async fn a_reply_is_posted_with_its_id_as_the_key() {
    let mut receiver = Receiver::start().await;
    let mut sending = sending(WEBHOOK, &format!("{}/in?key=1", receiver.url));
    sending.is_unsure = true;
    let channels = Channels::new();
    let (sent, request) = tokio::join!(channels.send(&sending), async {
        let request = receiver.next().await;
        let seen = (request.path.clone(), request.headers.clone(), request.body.clone());
        request.answer(204);
        seen
    });
    assert_eq!(sent, Ok(Sent { message: None }));
    let (path, headers, body) = request;
    assert_eq!(path, "/in?key=1");
    assert_eq!(headers["idempotency-key"], sending.id.to_string());
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["user-agent"], format!("ostler/{}", env!("CARGO_PKG_VERSION")));
    let stored: Value = serde_json::from_str(&sending.message.body).unwrap();
    let expected = json!({
        "id": sending.id, "conversation": stored["conversation"], "job": stored["job"],
        "turn": stored["turn"], "text": "hello", "error": null, "is_unsure": true,
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_refusal_is_told_in_the_words_of_the_receiver() {
    let sent = post(LIMITS, async |request| request.answer_with(410, "", "it is\ngone")).await;
    let error = sent.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (Next::GiveUp, false));
    assert_eq!(error.reason, "410 Gone: it is gone");
}

#[tokio::test]
async fn a_receiver_that_is_busy_says_when_to_come_again() {
    let sent = post(LIMITS, async |request| request.answer_with(429, "Retry-After: 9", "")).await;
    let after = Some(Duration::from_secs(9));
    assert_eq!(sent.unwrap_err().next, Next::Retry { after });
}

#[tokio::test]
async fn a_receiver_that_hangs_is_left_and_may_have_the_reply() {
    let sent = post(SHORT, async |request| request.hold().await);
    let error = sent.await.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (Next::Retry { after: None }, true));
    assert_eq!(error.reason, "no answer within 1s");
}

#[tokio::test]
async fn a_receiver_that_closes_half_way_may_have_the_reply() {
    for head in ["", "HTTP/1.1 20", "nonsense\r\n\r\n"] {
        let sent = post(LIMITS, async |request| request.answer_raw(head.to_owned())).await;
        let error = sent.unwrap_err();
        assert_eq!((error.next, error.is_unsure), (Next::Retry { after: None }, true), "{error}");
    }
    // Once it said yes, it may say the rest or not.
    let yes = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_owned();
    assert!(post(LIMITS, async |request| request.answer_raw(yes)).await.is_ok());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut other = Receiver::start().await;
    let to = format!("Location: {}/other", other.url);
    let sent = post(LIMITS, async |request| request.answer_with(307, &to, "")).await;
    let error = sent.unwrap_err();
    assert_eq!(error.next, Next::GiveUp);
    assert!(error.reason.contains("redirects are not followed"), "{error}");
    assert!(other.try_next().is_none());
}

#[tokio::test]
async fn of_a_huge_answer_only_the_start_is_read() {
    let huge = "x".repeat(64 * 1024 * 1024);
    let sent = post(LIMITS, async |request| request.answer_with(500, "", &huge)).await;
    assert!(sent.unwrap_err().reason.len() < 400);
    let sent = post(LIMITS, async |request| request.answer_with(200, "", &huge)).await;
    assert!(sent.is_ok());
}

#[tokio::test]
async fn a_receiver_that_is_not_there_certainly_has_nothing() {
    // A port that was free a moment ago, on which nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sending = sending(WEBHOOK, &format!("http://127.0.0.1:{port}/very-secret"));
    let error = Channels::new().send(&sending).await.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (Next::Retry { after: None }, false));
    assert!(error.reason.contains("refused") && !error.reason.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_receiver_that_does_not_speak_tls_certainly_has_nothing() {
    let receiver = Receiver::start().await;
    let url = receiver.url.replace("http://", "https://");
    let error = Channels::new().send(&sending(WEBHOOK, &url)).await.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (Next::Retry { after: None }, false), "{error}");
}

#[tokio::test]
async fn a_stored_reply_of_a_later_version_waits_for_a_later_gateway() {
    let mut sending = sending(WEBHOOK, "http://127.0.0.1:9/");
    for (body, next) in [("{\"v\":2}", Next::Retry { after: None }), ("{\"v\":1}", Next::GiveUp)] {
        sending.message.body = body.to_owned();
        let error = Channels::new().send(&sending).await.unwrap_err();
        assert_eq!((error.next, error.is_unsure), (next, false), "{error}");
    }
}

#[test]
fn an_address_is_a_url_without_a_login() {
    for fine in ["http://127.0.0.1:80/x", "https://example.org", "http://[::1]/a?b=c", "HTTP://a/"]
    {
        assert_eq!(check(fine), Ok(()), "{fine}");
    }
    let long = format!("http://a/{}", "x".repeat(LONGEST));
    for (wrong, says) in [
        ("", "not a URL"),
        ("example.org/x", "not a URL"),
        ("http://", "not a URL"),
        ("ftp://a/", "http://"),
        ("file:///etc/passwd", "http://"),
        ("localhost:80", "http://"),
        ("http://me:very-secret@a/", "user name"),
        ("http://me@a/", "user name"),
        ("http://a/ b", "space"),
        ("http://a/\tb", "space"),
        ("\nhttp://a/", "space"),
        (&long, "longer"),
    ] {
        let error = check(wrong).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("very-secret"), "{wrong}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_check_panic(text in ".{0,60}", tail in ".{0,60}") {
        check(&text).ok();
        check(&format!("http://{tail}")).ok();
        origin(&tail);
    }
}
