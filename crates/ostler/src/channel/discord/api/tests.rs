//! What is sent, and what comes of every way to answer it.

mod crowd;
mod limits;

use serde_json::{Value, json};

use super::{
    super::testing::{Asked, Server},
    *,
};
use crate::channel::{
    Next, SendError,
    chat::{Attachment, Changed, Chat as _, Content, Post, Posting},
    discord::{heard::Ticket, slash},
};

const SHORT: Duration = Duration::from_millis(500);

fn api(server: &Server, limit: Duration) -> Api {
    Api::with_limit("very-secret", Some(&server.url), limit).unwrap()
}

fn post(text: &str) -> Post {
    Post { text: text.to_owned(), ..Post::default() }
}

/// Sends a message to a server that treats every attempt like this.
async fn send(limit: Duration, treat: impl AsyncFn(Asked)) -> Result<String, SendError> {
    let mut server = Server::start().await;
    let api = api(&server, limit);
    let post = post("hello");
    let posting = Posting { post: &post, nonce: "n", answers: None };
    let treated = async {
        loop {
            treat(server.next().await).await;
        }
    };
    let sent = tokio::select! {
        sent = api.send("50", posting) => sent,
        () = treated => unreachable!(),
    };
    if let Err(error) = &sent {
        assert!(!error.reason.contains("secret") && !error.reason.contains("127.0"), "{error}");
    }
    sent.map(|stands| stands.message)
}

#[tokio::test]
async fn a_message_is_sent_with_its_nonce_and_the_token() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let post = post("hello");
    let posting =
        Posting { post: &post, nonce: "a nonce that is far too long", answers: Some("9") };
    let (sent, ()) = tokio::join!(api.send("50", posting), async {
        let asked = server.next().await;
        assert_eq!(asked.what, "POST /channels/50/messages");
        assert_eq!(asked.headers["authorization"], "Bot very-secret");
        let body = asked.json();
        assert_eq!(body["nonce"].as_str().unwrap().len(), 25);
        assert_eq!(body["enforce_nonce"], true);
        assert_eq!(body["message_reference"]["message_id"], "9");
        assert_eq!(body["allowed_mentions"], json!({"parse": [], "replied_user": true}));
        asked.answer(200, &json!({"id": "101", "something": "of tomorrow"}));
    });
    assert_eq!(sent.unwrap().message, "101");
    assert!(api.clock_skew().unwrap().abs() < SignedDuration::from_secs(60));
    assert!(!format!("{api:?}").contains("secret"));
}

#[tokio::test]
async fn a_message_that_stood_there_before_is_told_from_one_that_was_sent_now() {
    for (content, is_as_sent) in
        [(json!("hello "), true), (json!("hel"), false), (json!(null), true)]
    {
        let mut server = Server::start().await;
        let api = api(&server, LIMIT);
        let post = post("hello");
        let posting = Posting { post: &post, nonce: "n", answers: None };
        let (sent, ()) = tokio::join!(api.send("50", posting), async {
            server.next().await.answer(200, &json!({"id": "101", "content": content}));
        });
        assert_eq!(sent.unwrap().is_as_sent, is_as_sent, "{content}");
    }
}

#[tokio::test]
async fn what_may_have_been_sent_is_found_by_its_text_or_by_what_it_answers() {
    let message = |id: u32, author: u32, content: &str, answers: Value| {
        json!({
            "id": id.to_string(), "channel_id": "50", "type": 0, "content": content,
            "author": {"id": author.to_string(), "username": "x", "discriminator": "0",
                "avatar": null},
            "message_reference": answers, "attachments": [], "components": [],
            "edited_timestamp": null, "embeds": [], "mention_everyone": false,
            "mention_roles": [], "mentions": [], "pinned": false, "tts": false,
            "timestamp": "2026-11-18T01:00:00.000000+00:00",
        })
    };
    let answers = |id: &str| json!({"message_id": id});
    let found = json!([
        message(105, 900, "something else", answers("8")),
        message(104, 900, "hel", answers("9")),
        message(103, 900, "hello", json!(null)),
        message(102, 7, "hello", answers("9")),
    ]);
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let post = post("hello");
    let posting = Posting { post: &post, nonce: "n", answers: Some("9") };
    let since = crate::clock::Millis(1_794_816_000_000);
    let (stands, ()) = tokio::join!(api.find("50", posting, since), async {
        let asked = server.next().await;
        assert_eq!(asked.what, "GET /users/@me");
        asked.answer(200, &json!({"id": "900", "username": "ostler", "bot": true}));
        let asked = server.next().await;
        assert!(asked.what.starts_with("GET /channels/50/messages"), "{}", asked.what);
        asked.answer(200, &found);
    });
    let stands = stands.unwrap().into_iter().map(|it| (it.message, it.is_as_sent));
    let expected = [("103".to_owned(), true), ("104".to_owned(), false)];
    assert_eq!(stands.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn files_go_along_under_harmless_names() {
    let file = |name: &str, content| Attachment { name: name.to_owned(), content };
    let files = vec![
        file("../a/log.txt", Content::Bytes(b"from the disk"[..].into())),
        file("plan.md", Content::Text("from memory".to_owned())),
    ];
    let post = Post { files, ..post("two files") };
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let posting = Posting { post: &post, nonce: "n", answers: None };
    let (sent, ()) = tokio::join!(api.send("50", posting), async {
        let asked = server.next().await;
        let kind = asked.headers["content-type"].to_str().unwrap();
        assert!(kind.starts_with("multipart/form-data"), "{kind}");
        let body = String::from_utf8(asked.body.to_vec()).unwrap();
        for part in [
            "name=\"payload_json\"",
            "\"attachments\":[{\"id\":0,\"filename\":\"log.txt\"},{\"id\":1,",
            "name=\"files[0]\"; filename=\"log.txt\"",
            "from the disk",
            "name=\"files[1]\"; filename=\"plan.md\"",
            "from memory",
        ] {
            assert!(body.contains(part), "{part} is not in {body}");
        }
        asked.answer(200, &json!({"id": "101"}));
    });
    assert_eq!(sent.unwrap().message, "101");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_given_up_before_anything_is_sent() {
    let length = usize::try_from(chat::LIMITS.file_bytes).unwrap() + 1;
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let content = Content::Bytes(vec![0; length].into());
    let files = vec![Attachment { name: "x".to_owned(), content }];
    let post = Post { files, ..Post::default() };
    let error = api.edit("50", "100", &post).await.unwrap_err();
    assert_eq!(error.next, Next::GiveUp);
    assert!(error.reason.contains("larger than 10 MB"), "{error}");
    assert!(server.try_next().is_none());
}

#[tokio::test]
async fn refusals_and_silence_have_their_verdicts() {
    let soon = Next::Retry { after: None };
    let refusal = |code: u64| json!({"code": code, "message": "no"}).to_string();
    for (status, body, next, is_unsure) in [
        (404, refusal(10003), Next::GiveUp, false),
        (403, refusal(50013), Next::GiveUp, false),
        (401, refusal(0), Next::Retry { after: Some(Duration::from_secs(60)) }, false),
        (500, refusal(0), soon, true),
        (502, "<html>bad gateway</html>".to_owned(), soon, true),
        (200, "what?".to_owned(), soon, true),
    ] {
        let sent = send(LIMIT, async |asked| asked.answer_with(status, &[], body.clone()));
        let error = sent.await.unwrap_err();
        assert_eq!((error.next, error.is_unsure), (next, is_unsure), "{status}");
    }
    let error = send(LIMIT, async |asked| drop(asked)).await.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (soon, true), "{error}");
    let error = send(SHORT, async |asked| asked.hold().await).await.unwrap_err();
    assert_eq!((error.next, error.is_unsure), (soon, true), "{error}");
    assert_eq!(error.reason, "Discord did not answer in time");
}

#[test]
fn files_have_their_time_up_to_a_limit() {
    for (bytes, seconds) in [(0, 0), (1, 1), (100_000, 1), (2_500_000, 25), (u64::MAX, 300)] {
        assert_eq!(time_of(bytes), Duration::from_secs(seconds), "{bytes}");
    }
    // All that a message can have has the time that it takes.
    assert!(time_of(chat::LIMITS.together_bytes) < LONGEST);
}

#[tokio::test]
async fn a_call_that_carries_files_is_waited_for_longer() {
    let content = Content::Bytes(vec![0; 100_000].into());
    let files = vec![Attachment { name: "x".to_owned(), content }];
    let post = Post { files, ..Post::default() };
    let mut server = Server::start().await;
    let api = api(&server, SHORT);
    let start = Instant::now();
    let posting = Posting { post: &post, nonce: "n", answers: None };
    let (sent, ()) = tokio::join!(api.send("50", posting), async {
        server.next().await.hold().await;
    });
    assert_eq!(sent.unwrap_err().reason, "Discord did not answer in time");
    assert!(start.elapsed() >= SHORT + Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn an_old_message_that_discord_does_not_change_any_more_makes_way_for_a_new_one() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let post = post("done");
    let refusal = json!({"message": "too many edits", "code": 30046, "retry_after": 900.0});
    let (changed, ()) = tokio::join!(api.edit("50", "100", &post), async {
        server.expect("PATCH /channels/50/messages/100", 429, &refusal).await;
        server.expect("DELETE /channels/50/messages/100", 204, &Value::Null).await;
    });
    assert_eq!(changed, Ok(Changed::Gone));
    // Nobody else has to wait for that.
    assert!(api.has_room());
}

#[tokio::test]
async fn a_new_message_is_changed_after_a_while_if_discord_has_no_time() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let post = post("done");
    let message = crate::channel::discord::snowflake::of_time(Timestamp::now()).to_string();
    let path = format!("PATCH /channels/50/messages/{message}");
    let refusal = json!({"message": "slow down", "retry_after": 0.2, "global": true});
    let (changed, ()) = tokio::join!(api.edit("50", &message, &post), async {
        server.expect(&path, 429, &refusal).await;
        server.expect(&path, 200, &json!({"id": message})).await;
    });
    assert_eq!(changed, Ok(Changed::Done));
}

#[tokio::test]
async fn what_nobody_takes_was_certainly_not_sent() {
    // Nobody listens there.
    let api = Api::new("token", Some("http://127.0.0.1:1")).unwrap();
    let error = SendError::from(api.me().await.unwrap_err());
    assert_eq!((error.next, error.is_unsure), (Next::Retry { after: None }, false));
    for place in ["0", "", "general", "-1"] {
        let error = api.typing(place, None).await.unwrap_err();
        assert_eq!(error.next, Next::GiveUp, "{place}");
    }
}

#[tokio::test]
async fn a_message_is_changed_deleted_or_found_gone() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let post = post("done");
    let (changed, ()) = tokio::join!(api.edit("50", "100", &post), async {
        let asked = server.next().await;
        assert_eq!(asked.what, "PATCH /channels/50/messages/100");
        assert_eq!(asked.json()["attachments"], json!([]));
        asked.answer(200, &json!({"id": "100"}));
    });
    assert_eq!(changed, Ok(Changed::Done));
    let gone = json!({"code": 10008, "message": "Unknown Message"});
    let asked = server.expect("PATCH /channels/50/messages/100", 404, &gone);
    let (changed, ()) = tokio::join!(api.edit("50", "100", &post), asked);
    assert_eq!(changed, Ok(Changed::Gone));
    let asked = server.expect("DELETE /channels/50/messages/100", 204, &Value::Null);
    let (deleted, ()) = tokio::join!(api.delete("50", "100"), asked);
    assert_eq!(deleted, Ok(Changed::Done));
    let asked = server.expect("POST /channels/50/typing", 204, &Value::Null);
    let (typed, ()) = tokio::join!(api.typing("50", None), asked);
    assert_eq!(typed, Ok(()));
}

#[tokio::test]
async fn commands_are_written_once_and_only_if_they_differ() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let commands = slash::commands(&["codex".to_owned()]);
    let application = json!({"id": "800"});
    let (changed, told) = tokio::join!(api.register(&commands), async {
        server.expect("GET /applications/@me", 200, &application).await;
        server.expect("GET /applications/800/commands", 200, &json!([])).await;
        let asked = server.next().await;
        assert_eq!(asked.what, "PUT /applications/800/commands");
        let mut told = asked.json();
        asked.answer(200, &told);
        // Discord has an order of its own, and says more than it was told.
        told.as_array_mut().unwrap().reverse();
        told[0]["version"] = "5".into();
        told
    });
    assert_eq!(changed, Ok(true));
    let (changed, ()) = tokio::join!(api.register(&commands), async {
        server.expect("GET /applications/@me", 200, &application).await;
        server.expect("GET /applications/800/commands", 200, &told).await;
    });
    assert_eq!(changed, Ok(false));
    assert!(server.try_next().is_none());
}

#[tokio::test]
async fn buttons_and_commands_are_answered_by_their_ticket() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let ticket = Ticket { application: "800".into(), id: "300".into(), token: "tick-et".into() };
    let nothing = Response::Nothing;
    let (answered, ()) = tokio::join!(api.respond(&ticket, &nothing), async {
        let asked = server.next().await;
        assert_eq!(asked.what, "POST /interactions/300/tick-et/callback");
        assert!(!asked.headers.contains_key("authorization"));
        assert_eq!(asked.json(), json!({"type": 6}));
        asked.answer(204, &Value::Null);
    });
    assert_eq!(answered, Ok(Given::Now));
    let (followed, ()) = tokio::join!(api.whisper(&ticket, "more"), async {
        let asked = server.next().await;
        assert_eq!(asked.what, "POST /webhooks/800/tick-et");
        assert_eq!(
            (&asked.json()["content"], &asked.json()["flags"]),
            (&"more".into(), &64.into())
        );
        asked.answer(200, &json!({"id": "1"}));
    });
    assert_eq!(followed, Ok(()));
    let path = "PATCH /webhooks/800/tick-et/messages/@original";
    let message = json!({"id": "1"});
    let asked = server.expect(path, 200, &message);
    let (edited, ()) = tokio::join!(api.edit_response(&ticket, "done"), asked);
    assert_eq!(edited, Ok(()));
    let strange = Ticket { token: "../../users/@me".to_owned(), ..ticket };
    let refused = api.respond(&strange, &nothing).await.unwrap_err();
    assert_eq!(SendError::from(refused).next, Next::GiveUp);
}

#[tokio::test]
async fn threads_and_direct_channels_are_made_or_found() {
    let mut server = Server::start().await;
    let api = api(&server, LIMIT);
    let name = "n".repeat(200);
    let (thread, ()) = tokio::join!(api.begin_thread("50", "100", &name), async {
        let asked = server.next().await;
        assert_eq!(asked.what, "POST /channels/50/messages/100/threads");
        assert_eq!(asked.json()["name"], "n".repeat(100));
        asked.answer(201, &json!({"id": "100", "type": 11}));
    });
    assert_eq!(thread, Ok("100".to_owned()));
    let there = json!({"code": 160_004, "message": "A thread has already been created"});
    let asked = server.expect("POST /channels/50/messages/100/threads", 400, &there);
    let (thread, ()) = tokio::join!(api.begin_thread("50", "100", "\n"), asked);
    assert_eq!(thread, Ok("100".to_owned()));
}

#[test]
fn an_address_is_a_host_and_perhaps_a_path() {
    for (url, expected) in [
        ("https://discord.com", Ok("https://discord.com/api/v10")),
        ("http://127.0.0.1:8080/", Ok("http://127.0.0.1:8080/api/v10")),
        ("http://proxy:80/discord/", Ok("http://proxy/discord/api/v10")),
        ("https://discord.com/api/v10", Ok("https://discord.com/api/v10")),
        ("http://[::1]:99", Ok("http://[::1]:99/api/v10")),
        ("ftp://discord.com", Err(ApiError::Url)),
        ("https://a:b@discord.com", Err(ApiError::Url)),
        ("https://discord.com?x", Err(ApiError::Url)),
        ("discord.com", Err(ApiError::Url)),
    ] {
        assert_eq!(base(url), expected.map(str::to_owned), "{url}");
    }
    for token in ["", "a b", "a\nb", "ä"] {
        assert_eq!(Api::new(token, None).unwrap_err(), ApiError::Token);
    }
}
