//! Interactions: answered once, in time, and for as long as their token is good.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::{Socket, call, double, post, refusal};
use crate::support::LIMIT;

#[tokio::test]
async fn an_interaction_is_answered_once_and_in_time() {
    let (discord, channel, ann) = double();
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.ready(&discord).await;
    let application = discord.application_id();
    let commands = format!("/applications/{application}/commands");
    let ping = json!([{ "name": "ping", "description": "Pings", "type": 1 }]);
    assert_eq!(call(&discord, Method::PUT, &commands, ping).await.status(), 200);
    discord.slash(channel, ann, "ping", json!([]));
    let event = socket.event("INTERACTION_CREATE").await["d"].clone();
    let [id, token] = ["id", "token"].map(|field| event[field].as_str().unwrap().to_owned());
    let callback = format!("/interactions/{id}/{token}/callback");
    let said = json!({ "type": 4, "data": { "content": "pong" } });
    assert_eq!(post(&discord, &callback, said.clone()).await.status(), 204);
    let again = post(&discord, &callback, said.clone()).await;
    assert_eq!(again.json::<Value>().await.unwrap()["code"], 40060);
    let follow = format!("/webhooks/{application}/{token}");
    assert_eq!(post(&discord, &follow, json!({ "content": "more" })).await.status(), 200);
    // Nobody waits for longer than that.
    discord.patience(Duration::from_millis(200));
    let start = Instant::now();
    let late = discord.slash(channel, ann, "ping", json!([]));
    let event = socket.event("INTERACTION_CREATE").await["d"].clone();
    discord.wait_for("it is given up", LIMIT, |world| world.interaction(late).failed.then_some(()));
    assert!(start.elapsed() >= Duration::from_millis(200));
    let [id, token] = ["id", "token"].map(|field| event[field].as_str().unwrap().to_owned());
    let refused = post(&discord, &format!("/interactions/{id}/{token}/callback"), said).await;
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], 10062);
}

#[tokio::test]
async fn a_token_that_is_too_old_opens_nothing_any_more() {
    let (discord, channel, ann) = double();
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.ready(&discord).await;
    let application = discord.application_id();
    let ping = json!([{ "name": "ping", "description": "Pings" }]);
    let commands = format!("/applications/{application}/commands");
    assert_eq!(call(&discord, Method::PUT, &commands, ping).await.status(), 200);
    let used = discord.slash(channel, ann, "ping", json!([]));
    let event = socket.event("INTERACTION_CREATE").await["d"].clone();
    let token = event["token"].as_str().unwrap();
    let follow = format!("/webhooks/{application}/{token}");
    let original = format!("{follow}/messages/@original");
    // There is nothing to follow before the first answer.
    let more = json!({ "content": "more" });
    assert_eq!(refusal(post(&discord, &follow, more.clone()).await).await, (404, 10015));
    let callback = format!("/interactions/{used}/{token}/callback");
    let wrong = post(&discord, &callback, json!({ "type": 7, "data": more })).await;
    assert_eq!(refusal(wrong).await, (400, 50035));
    assert_eq!(post(&discord, &callback, json!({ "type": 5 })).await.status(), 204);
    assert_eq!(discord.interaction(used).content, None);
    let edited = call(&discord, Method::PATCH, &original, json!({ "content": "pong" })).await;
    assert_eq!(edited.status(), 200);
    assert_eq!(discord.interaction(used).content.as_deref(), Some("pong"));
    discord.expire(used);
    assert_eq!(refusal(post(&discord, &follow, more.clone()).await).await, (401, 50027));
    let edited = call(&discord, Method::PATCH, &original, more).await;
    assert_eq!(refusal(edited).await, (401, 50027));
}
