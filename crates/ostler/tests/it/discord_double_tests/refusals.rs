//! What is wrong with a request, and how that is said.

use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::rig::{call, double, post, refusal};

/// Returns a message with these components in a row.
fn row(components: Value) -> Value {
    json!({ "content": "x", "components": [{ "type": 1, "components": components }] })
}

fn button(more: &Value) -> Value {
    let mut button = json!({ "type": 2, "style": 1, "label": "Allow", "custom_id": "a" });
    for (field, value) in more.as_object().unwrap() {
        button[field] = value.clone();
    }
    button
}

#[tokio::test]
async fn buttons_and_menus_are_as_they_must_be() {
    let (discord, channel, _) = double();
    discord.relax();
    let path = format!("/channels/{channel}/messages");
    let menu = |options: usize| {
        let options: Vec<Value> =
            (0..options).map(|n| json!({ "label": "l", "value": n.to_string() })).collect();
        json!({ "type": 3, "custom_id": "m", "options": options })
    };
    let numbered = |count: usize| -> Vec<Value> {
        (0..count).map(|n| button(&json!({ "custom_id": n.to_string() }))).collect()
    };
    let link = json!({ "type": 2, "style": 5, "label": "Go" });
    for wrong in [
        row(json!([])),
        row(json!(numbered(6))),
        row(json!([button(&json!({})), button(&json!({}))])),
        row(json!([button(&json!({ "custom_id": "" }))])),
        row(json!([button(&json!({ "custom_id": "c".repeat(101) }))])),
        row(json!([button(&json!({ "label": "l".repeat(81) }))])),
        row(json!([button(&json!({ "label": "" }))])),
        row(json!([button(&json!({ "style": 9 }))])),
        row(json!([button(&json!({ "type": 99 }))])),
        row(json!([link])),
        row(json!([menu(0)])),
        row(json!([menu(26)])),
        row(json!([menu(1), button(&json!({}))])),
        json!({ "content": "x", "components": [button(&json!({}))] }),
        json!({ "content": "x", "components": vec![json!({ "type": 1, "components": numbered(1) }); 6] }),
    ] {
        let refused = post(&discord, &path, wrong.clone()).await;
        assert_eq!(refusal(refused).await, (400, 50035), "{wrong}");
    }
    assert!(discord.messages(channel).is_empty());
    let right = [row(json!(numbered(5))), row(json!([menu(25)]))];
    for right in right {
        assert_eq!(post(&discord, &path, right).await.status(), 200);
    }
}

#[tokio::test]
async fn who_asks_for_nothing_that_there_is_is_told_so() {
    let (discord, channel, _) = double();
    let get =
        async |path: &str| refusal(call(&discord, Method::GET, path, Value::Null).await).await;
    assert_eq!(get("/users/1").await, (404, 10013));
    assert_eq!(get("/guilds/1").await, (404, 10004));
    assert_eq!(get("/channels/x").await, (400, 50035));
    assert_eq!(get("/nowhere").await, (404, 0));
    assert_eq!(get(&format!("/channels/{channel}/messages/1")).await, (404, 10008));
    let path = format!("/channels/{channel}/typing");
    let typed = call(&discord, Method::PUT, &path, Value::Null).await;
    assert_eq!(refusal(typed).await, (405, 0));
}

#[tokio::test]
async fn who_is_not_the_bot_or_speaks_another_language_is_refused() {
    let (discord, channel, _) = double();
    let client = Client::new();
    let asked = client.get(format!("{}/api/v10/users/@me", discord.api_url()));
    assert_eq!(refusal(asked.send().await.unwrap()).await, (401, 0));
    let url = format!("{}/api/v10/channels/{channel}/messages", discord.api_url());
    let asked = client.post(&url).header("Authorization", format!("Bot {}", discord.token()));
    let broken = asked.try_clone().unwrap().header("Content-Type", "application/json").body("{");
    assert_eq!(refusal(broken.send().await.unwrap()).await, (400, 50109));
    let odd = asked.header("Content-Type", "text/plain").body("hello");
    assert_eq!(refusal(odd.send().await.unwrap()).await, (400, 50035));
    let old = client.get(format!("{}/api/v6/users/@me", discord.api_url()));
    assert_eq!(refusal(old.send().await.unwrap()).await, (400, 50041));
    discord.reject_token();
    assert_eq!(refusal(post(&discord, "/users/@me/channels", json!({})).await).await, (401, 0));
}
