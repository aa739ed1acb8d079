//! Commands: what can be registered, and how it is told.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::rig::{call, double, refusal};
use crate::discord_double::Discord;

async fn put(discord: &Discord, commands: Value) -> Response {
    let path = format!("/applications/{}/commands", discord.application_id());
    call(discord, Method::PUT, &path, commands).await
}

fn option(more: &Value) -> Value {
    let mut option = json!({ "name": "prompt", "description": "What to ask", "type": 3 });
    for (field, value) in more.as_object().unwrap() {
        option[field] = value.clone();
    }
    option
}

#[tokio::test]
async fn commands_are_told_with_more_and_with_less_than_was_said() {
    let (discord, ..) = double();
    let options = [
        option(&json!({ "required": true, "choices": [] })),
        option(&json!({ "name": "b", "required": false })),
    ];
    let ask = json!({ "name": "ask", "description": "Asks", "options": options });
    let told: Value = put(&discord, json!([ask])).await.json().await.unwrap();
    let told = &told[0];
    for (field, expected) in [
        ("type", json!(1)),
        ("nsfw", json!(false)),
        ("dm_permission", json!(true)),
        ("default_member_permissions", Value::Null),
        ("contexts", Value::Null),
        ("integration_types", json!([0, 1])),
    ] {
        assert_eq!(told.get(field), Some(&expected), "{field}");
    }
    assert!(told["id"].is_string() && told["version"].is_string());
    let [first, second] = ["0", "1"].map(|n| told["options"][n.parse::<usize>().unwrap()].clone());
    assert_eq!(first["required"], true);
    assert!(first.get("choices").is_none() && second.get("required").is_none(), "{told}");
    // The same again has the same id.
    let again: Value = put(&discord, json!([ask])).await.json().await.unwrap();
    assert_eq!(again[0]["id"], told["id"]);
    assert_eq!(discord.command_writes(), 2);
}

#[tokio::test]
async fn commands_that_are_not_as_they_must_be_are_refused_together() {
    let (discord, ..) = double();
    let command = |more: Value| {
        let mut command = json!({ "name": "ask", "description": "Asks" });
        for (field, value) in more.as_object().unwrap() {
            command[field] = value.clone();
        }
        command
    };
    let choice = json!({ "name": "n".repeat(101), "value": "x" });
    let long = json!({ "name": "x", "value": "v".repeat(101) });
    for wrong in [
        json!({ "name": "" }),
        json!({ "name": "Ask" }),
        json!({ "name": "a b" }),
        json!({ "name": "n".repeat(33) }),
        json!({ "description": "" }),
        json!({ "description": "d".repeat(101) }),
        json!({ "type": 2 }),
        json!({ "options": vec![option(&json!({})); 2] }),
        json!({ "options": [option(&json!({ "type": 99 }))] }),
        json!({ "options": [option(&json!({ "description": "" }))] }),
        json!({ "options": [option(&json!({})), option(&json!({ "name": "b", "required": true }))] }),
        json!({ "options": [option(&json!({ "choices": [choice] }))] }),
        json!({ "options": [option(&json!({ "choices": [long] }))] }),
        json!({ "options": [option(&json!({ "choices": vec![json!({ "name": "x", "value": "x" }); 26] }))] }),
    ] {
        let refused = put(&discord, json!([command(json!({})), command(wrong.clone())])).await;
        assert_eq!(refusal(refused).await, (400, 50035), "{wrong}");
    }
    let twice = json!([command(json!({})), command(json!({}))]);
    assert_eq!(refusal(put(&discord, twice).await).await, (400, 50035));
    assert_eq!(refusal(put(&discord, json!({})).await).await, (400, 50035));
    let many: Vec<Value> = (0..101).map(|n| command(json!({ "name": format!("c{n}") }))).collect();
    assert_eq!(refusal(put(&discord, json!(many)).await).await, (400, 50035));
    assert!(discord.commands().is_empty());
    let strange = call(&discord, Method::GET, "/applications/1/commands", Value::Null).await;
    assert_eq!(refusal(strange).await, (403, 50001));
}
