//! Channels and threads: who may use them, and how threads begin.

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::{call, double, post, refusal};

#[tokio::test]
async fn a_channel_can_be_hidden_closed_for_writing_or_gone() {
    let (discord, channel, ann) = double();
    let path = format!("/channels/{channel}/messages");
    let hello = json!({ "content": "hello" });
    discord.deny(channel, 1 << 11);
    assert_eq!(refusal(post(&discord, &path, hello.clone()).await).await, (403, 50013));
    let hers = discord.say(channel, ann, "mine");
    let deleted = call(&discord, Method::DELETE, &format!("{path}/{hers}"), Value::Null).await;
    assert_eq!(refusal(deleted).await, (403, 50013));
    discord.refuse_channel(channel);
    assert_eq!(refusal(post(&discord, &path, hello.clone()).await).await, (403, 50001));
    discord.delete_channel(channel);
    assert_eq!(refusal(post(&discord, &path, hello).await).await, (404, 10003));
}

#[tokio::test]
async fn a_thread_begins_once_below_a_channel_and_nowhere_else() {
    let (discord, channel, ann) = double();
    let asked = discord.say(channel, ann, "hello");
    let of = |channel: u64, message: u64| format!("/channels/{channel}/messages/{message}/threads");
    let name = json!({ "name": "hay" });
    assert_eq!(refusal(post(&discord, &of(channel, 1), name.clone()).await).await, (404, 10008));
    for wrong in [json!({}), json!({ "name": "" }), json!({ "name": "n".repeat(101) })] {
        let refused = post(&discord, &of(channel, asked), wrong.clone()).await;
        assert_eq!(refusal(refused).await, (400, 50035), "{wrong}");
    }
    let odd = json!({ "name": "hay", "auto_archive_duration": 7 });
    assert_eq!(refusal(post(&discord, &of(channel, asked), odd).await).await, (400, 50035));
    let made = post(&discord, &of(channel, asked), name.clone()).await;
    assert_eq!(made.status(), 201);
    assert_eq!(made.json::<Value>().await.unwrap()["id"], asked.to_string());
    let again = post(&discord, &of(channel, asked), name.clone()).await;
    assert_eq!(refusal(again).await, (400, 160_004));
    let below = discord.say(asked, ann, "in the thread");
    let refused = post(&discord, &of(asked, below), name.clone()).await;
    assert_eq!(refusal(refused).await, (400, 50024));
    let direct = discord.direct(ann);
    let asked = discord.say(direct, ann, "hello");
    assert_eq!(refusal(post(&discord, &of(direct, asked), name).await).await, (400, 50003));
}
