//! Rate limits: told with every answer, enforced, and those that a test plans.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::{call, double, double_behind, header, post, refusal};
use crate::discord_double::{Bucket, Fault};

#[tokio::test]
async fn limits_are_told_with_every_answer_and_enforced() {
    let (discord, channel, _) = double();
    discord.limit(Bucket::Create, 2, Duration::from_secs(60));
    let path = format!("/channels/{channel}/messages");
    for left in ["1", "0"] {
        let answer = post(&discord, &path, json!({ "content": "hello" })).await;
        assert_eq!(answer.status(), 200);
        let headers = answer.headers();
        assert_eq!(header(headers, "x-ratelimit-limit"), Some("2"));
        assert_eq!(header(headers, "x-ratelimit-remaining"), Some(left));
        assert!(header(headers, "x-ratelimit-bucket").is_some());
        assert!(header(headers, "x-ratelimit-scope").is_none());
    }
    let refused = post(&discord, &path, json!({ "content": "hello" })).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(refused.headers(), "x-ratelimit-scope"), Some("user"));
    assert!(header(refused.headers(), "retry-after").is_some());
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["global"], false);
    assert!((50.0..=60.0).contains(&body["retry_after"].as_f64().unwrap()), "{body}");
    // Each channel counts for itself, until all are limited together.
    let other = discord.channel(discord.guild("Other"), "barn");
    let path = format!("/channels/{other}/messages");
    assert_eq!(post(&discord, &path, json!({ "content": "hello" })).await.status(), 200);
    discord.limit(Bucket::Global, 0, Duration::from_secs(60));
    let refused = post(&discord, &path, json!({ "content": "hello" })).await;
    assert_eq!(header(refused.headers(), "x-ratelimit-global"), Some("true"));
    assert_eq!(header(refused.headers(), "x-ratelimit-scope"), Some("global"));
    assert_eq!(refused.json::<Value>().await.unwrap()["global"], true);
}

#[tokio::test]
async fn a_limit_that_is_planned_holds_for_as_long_as_it_was_told() {
    let (discord, channel, _) = double();
    let path = format!("/channels/{channel}/messages");
    let hello = json!({ "content": "hello" });
    discord.plan(1, "POST /channels/", Fault::Limit { retry_after: 60.0, global: false });
    let refused = post(&discord, &path, hello.clone()).await;
    assert_eq!(header(refused.headers(), "x-ratelimit-scope"), Some("user"));
    assert_eq!(header(refused.headers(), "retry-after"), Some("60"));
    assert_eq!(refused.json::<Value>().await.unwrap()["retry_after"], 60.0);
    // Once more, although nothing is planned any more.
    let refused = post(&discord, &path, hello.clone()).await;
    assert_eq!(refused.status(), 429);
    let left = refused.json::<Value>().await.unwrap()["retry_after"].as_f64().unwrap();
    assert!((50.0..60.0).contains(&left), "{left}");
    // Other things can be done meanwhile, and so can the same elsewhere.
    assert_eq!(
        post(&discord, &format!("/channels/{channel}/typing"), Value::Null).await.status(),
        204
    );
    let barn = discord.channel(discord.guild("Other"), "barn");
    let elsewhere = format!("/channels/{barn}/messages");
    assert_eq!(post(&discord, &elsewhere, hello.clone()).await.status(), 200);
    assert_eq!((discord.limited(), discord.hurried()), (2, 0));
    discord.relax();
    assert_eq!(post(&discord, &path, hello).await.status(), 200);
}

#[tokio::test]
async fn a_limit_of_everything_holds_for_everything_and_who_hurries_is_counted() {
    let (discord, channel, _) = double();
    discord.limit_next(1, 4.0, true);
    let typing = format!("/channels/{channel}/typing");
    let refused = post(&discord, &typing, Value::Null).await;
    assert_eq!(header(refused.headers(), "x-ratelimit-global"), Some("true"));
    // Whoever asks again and again comes too early at least once.
    let mut n_refused = 1;
    while call(&discord, Method::GET, "/users/@me", Value::Null).await.status() == 429 {
        n_refused += 1;
    }
    assert_eq!(discord.limited(), n_refused);
    assert!(discord.hurried() > 0 && discord.hurried() < n_refused, "{n_refused}");
}

#[tokio::test]
async fn what_answers_buttons_and_commands_is_not_bound_to_the_limit_of_everything() {
    let (discord, ..) = double();
    discord.limit(Bucket::Global, 0, Duration::from_secs(60));
    assert_eq!(call(&discord, Method::GET, "/users/@me", Value::Null).await.status(), 429);
    let nobody = post(&discord, "/interactions/1/x/callback", json!({ "type": 6 })).await;
    assert_eq!(refusal(nobody).await, (404, 10062));
}

#[tokio::test]
async fn an_old_message_is_changed_a_few_times_only() {
    let (discord, channel, _) = double_behind(Duration::from_secs(7200));
    discord.old_edits(1);
    let path = format!("/channels/{channel}/messages");
    let made: Value = post(&discord, &path, json!({ "content": "x" })).await.json().await.unwrap();
    let path = format!("{path}/{}", made["id"].as_str().unwrap());
    let edit = || call(&discord, Method::PATCH, &path, json!({ "content": "y" }));
    assert_eq!(edit().await.status(), 200);
    assert_eq!(refusal(edit().await).await, (429, 30046));
}
