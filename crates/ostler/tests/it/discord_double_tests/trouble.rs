//! What a test lets go wrong.

use std::{sync::Arc, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::rig::{call, double, post, refusal};
use crate::{discord_double::Fault, support::LIMIT};

#[tokio::test]
async fn a_request_can_fail_before_it_is_done_or_after() {
    let (discord, channel, _) = double();
    let path = format!("/channels/{channel}/messages");
    let hello = json!({ "content": "hello" });
    discord.fail_next(1, 503);
    assert_eq!(refusal(post(&discord, &path, hello.clone()).await).await, (503, 0));
    assert!(discord.messages(channel).is_empty());
    discord.plan(1, "POST /channels/", Fault::DoneButFailed(502));
    // It is for the request that was named, and for one.
    assert_eq!(call(&discord, Method::GET, "/users/@me", Value::Null).await.status(), 200);
    assert_eq!(post(&discord, &path, hello.clone()).await.status(), 502);
    assert_eq!(discord.messages(channel).len(), 1);
    assert_eq!(post(&discord, &path, hello.clone()).await.status(), 200);
    discord.plan(5, "POST /channels/", Fault::Fail(500));
    discord.forget_faults();
    assert_eq!(post(&discord, &path, hello).await.status(), 200);
}

#[tokio::test]
async fn a_request_that_hangs_is_done_and_never_answered() {
    let (discord, channel, _) = double();
    let discord = Arc::new(discord);
    discord.hang_next(1);
    let path = format!("/channels/{channel}/messages");
    let mut asked = Box::pin(post(&discord, &path, json!({ "content": "hello" })));
    let looking = Arc::clone(&discord);
    let done = tokio::task::spawn_blocking(move || {
        looking.wait_for("the message", LIMIT, |world| world.messages(channel).first().map(|_| ()));
    });
    tokio::select! {
        _ = &mut asked => panic!("it was answered"),
        done = done => done.unwrap(),
    }
    assert!(timeout(Duration::from_millis(300), asked).await.is_err());
    assert_eq!(discord.requests().last().unwrap().2, 200);
    assert!(discord.look(|world| world.faults_left()) == 0, "within {LIMIT:?}");
}
