//! Messages: made, found, changed and taken away.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::{call, double, post, refusal, upload};

#[tokio::test]
async fn a_message_with_the_same_nonce_is_the_same_message_if_that_is_wanted() {
    let (discord, channel, _) = double();
    let path = format!("/channels/{channel}/messages");
    let once = json!({ "content": "one", "nonce": "n", "enforce_nonce": true });
    let first: Value = post(&discord, &path, once.clone()).await.json().await.unwrap();
    let mut again = once;
    again["content"] = json!("two");
    let second: Value = post(&discord, &path, again).await.json().await.unwrap();
    assert_eq!((&second["id"], &second["content"]), (&first["id"], &json!("one")));
    let loose = json!({ "content": "three", "nonce": "n" });
    let third: Value = post(&discord, &path, loose).await.json().await.unwrap();
    assert_ne!(third["id"], first["id"]);
    let long = json!({ "content": "four", "nonce": "n".repeat(26) });
    assert_eq!(post(&discord, &path, long).await.status(), 400);
}

#[tokio::test]
async fn messages_are_changed_by_their_author_and_never_too_long() {
    let (discord, channel, ann) = double();
    let path = format!("/channels/{channel}/messages");
    let long = post(&discord, &path, json!({ "content": "x".repeat(2001) })).await;
    assert_eq!(long.status(), 400);
    assert_eq!(long.json::<Value>().await.unwrap()["code"], 50035);
    let empty = post(&discord, &path, json!({ "content": "" })).await;
    assert_eq!(empty.json::<Value>().await.unwrap()["code"], 50006);
    let made = post(&discord, &path, json!({ "content": "x".repeat(2000) })).await;
    let made: Value = made.json().await.unwrap();
    let id = made["id"].as_str().unwrap();
    let edited =
        call(&discord, Method::PATCH, &format!("{path}/{id}"), json!({ "content": "y" })).await;
    assert_eq!(edited.json::<Value>().await.unwrap()["content"], "y");
    let hers = discord.say(channel, ann, "mine");
    let refused =
        call(&discord, Method::PATCH, &format!("{path}/{hers}"), json!({ "content": "y" })).await;
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], 50005);
    let gone = call(&discord, Method::DELETE, &format!("{path}/1"), Value::Null).await;
    assert_eq!(gone.json::<Value>().await.unwrap()["code"], 10008);
}

#[tokio::test]
async fn a_nonce_is_forgotten_after_a_while() {
    let (discord, channel, _) = double();
    let path = format!("/channels/{channel}/messages");
    let once = json!({ "content": "one", "nonce": "n", "enforce_nonce": true });
    let first: Value = post(&discord, &path, once.clone()).await.json().await.unwrap();
    discord.remember_nonces(Duration::ZERO);
    let second: Value = post(&discord, &path, once).await.json().await.unwrap();
    assert_ne!(second["id"], first["id"]);
}

#[tokio::test]
async fn messages_are_read_page_by_page() {
    let (discord, channel, ann) = double();
    let ids: Vec<u64> =
        (0..7).map(|number| discord.say(channel, ann, &format!("m{number}"))).collect();
    let read = async |query: &str| -> Vec<u64> {
        let path = format!("/channels/{channel}/messages{query}");
        let found: Value =
            call(&discord, Method::GET, &path, Value::Null).await.json().await.unwrap();
        let found = found.as_array().unwrap().iter();
        found.map(|it| it["id"].as_str().unwrap().parse().unwrap()).collect()
    };
    // The newest come first, wherever one begins.
    let newest =
        |from: usize, to: usize| -> Vec<u64> { ids[from..to].iter().rev().copied().collect() };
    assert_eq!(read("").await, newest(0, 7));
    assert_eq!(read("?limit=2").await, newest(5, 7));
    assert_eq!(read(&format!("?after={}&limit=2", ids[1])).await, newest(2, 4));
    assert_eq!(read(&format!("?after={}", ids[6])).await, newest(7, 7));
    assert_eq!(read(&format!("?before={}&limit=3", ids[4])).await, newest(1, 4));
    for limit in ["0", "101"] {
        let path = format!("/channels/{channel}/messages?limit={limit}");
        let refused = call(&discord, Method::GET, &path, Value::Null).await;
        assert_eq!(refusal(refused).await, (400, 50035), "{limit}");
    }
}

#[tokio::test]
async fn files_are_ten_at_most_and_not_too_large() {
    let (discord, channel, _) = double();
    let path = format!("/channels/{channel}/messages");
    let made = upload(&discord, &path, &[5, 7]).await;
    let made: Value = made.json().await.unwrap();
    assert_eq!(
        (&made["attachments"][0]["size"], &made["attachments"][1]["filename"]),
        (&json!(5), &json!("1.bin"))
    );
    let refused = upload(&discord, &path, &[1; 11]).await;
    assert_eq!(refusal(refused).await, (400, 50035));
    let refused = upload(&discord, &path, &[6_000_000, 6_000_000]).await;
    assert_eq!(refusal(refused).await, (413, 40005));
    let refused = upload(&discord, &path, &[27_000_000]).await;
    assert_eq!(refusal(refused).await, (413, 40005));
    assert_eq!(discord.messages(channel).len(), 1);
}

#[tokio::test]
async fn a_reply_needs_something_that_it_replies_to() {
    let (discord, channel, ann) = double();
    let path = format!("/channels/{channel}/messages");
    let asked = discord.say(channel, ann, "hello");
    let reply = |to: &str, fails: bool| {
        let reference = json!({ "message_id": to, "fail_if_not_exists": fails });
        json!({ "content": "x", "message_reference": reference })
    };
    assert_eq!(refusal(post(&discord, &path, reply("1", true)).await).await, (400, 50035));
    assert_eq!(refusal(post(&discord, &path, reply("x", true)).await).await, (400, 50035));
    assert_eq!(post(&discord, &path, reply("1", false)).await.status(), 200);
    let made = post(&discord, &path, reply(&asked.to_string(), true)).await;
    assert_eq!(made.json::<Value>().await.unwrap()["referenced_message"]["content"], "hello");
}

#[tokio::test]
async fn what_rings_is_what_the_words_name_and_may_name() {
    let (discord, channel, ann) = double();
    let path = format!("/channels/{channel}/messages");
    let said = format!("@everyone <@{ann}>");
    let quiet = json!({ "content": said, "allowed_mentions": { "parse": [] } });
    assert_eq!(post(&discord, &path, quiet.clone()).await.status(), 200);
    let mut reply = quiet;
    let asked = discord.say(channel, ann, "hello");
    reply["message_reference"] = json!({ "message_id": asked.to_string() });
    reply["allowed_mentions"]["replied_user"] = true.into();
    assert_eq!(post(&discord, &path, reply).await.status(), 200);
    assert!(discord.pings().is_empty());
    assert_eq!(post(&discord, &path, json!({ "content": said })).await.status(), 200);
    assert_eq!(discord.pings().len(), 1);
    let both = json!({ "parse": ["users"], "users": ["1"] });
    let refused = post(&discord, &path, json!({ "content": "x", "allowed_mentions": both })).await;
    assert_eq!(refusal(refused).await, (400, 50035));
}
