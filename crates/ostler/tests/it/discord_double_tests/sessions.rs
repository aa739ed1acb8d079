//! Sessions of the gateway: begun, kept, gone on with, and ended by a code.

use std::time::Duration;

use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio_websockets::{CloseCode, Message};

use super::rig::{INTENTS, Socket, double};
use crate::support::LIMIT;

#[tokio::test]
async fn a_session_begins_with_hello_and_is_kept_by_heartbeats() {
    let (discord, channel, ann) = double();
    let (mut socket, interval) = Socket::connect(&discord).await;
    assert!(interval > 1000, "{interval}");
    socket.say(1, Value::Null).await;
    assert_eq!(socket.hear().await["op"], 11);
    socket.ready(&discord).await;
    let guild = socket.event("GUILD_CREATE").await;
    assert_eq!(guild["d"]["channels"][0]["id"], channel.to_string());
    discord.say(channel, ann, "hello");
    let heard = socket.event("MESSAGE_CREATE").await;
    assert_eq!((&heard["d"]["content"], &heard["s"]), (&json!("hello"), &json!(3)));
    // Once is enough.
    socket.identify(&discord, INTENTS).await;
    assert_eq!(socket.close_code().await, 4005);
}

#[tokio::test]
async fn who_does_not_keep_to_the_protocol_is_told_by_a_code() {
    let (discord, ..) = double();
    let wrong = json!({ "token": "wrong", "intents": INTENTS, "properties": {} });
    let unknown = json!({ "token": discord.token(), "intents": 1_u64 << 40, "properties": {} });
    let members = json!({ "token": discord.token(), "intents": 1 << 1, "properties": {} });
    for (opcode, data, code) in [
        (2, wrong, 4004),
        (2, unknown, 4013),
        (2, members, 4014),
        (3, json!({}), 4003),
        (99, Value::Null, 4001),
    ] {
        let (mut socket, _) = Socket::connect(&discord).await;
        socket.say(opcode, data).await;
        assert_eq!(socket.close_code().await, code);
    }
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.0.send(Message::text("{")).await.unwrap();
    assert_eq!(socket.close_code().await, 4002);
    let (mut socket, _) = Socket::connect_by(&discord, "v=6&encoding=json").await;
    assert_eq!(socket.close_code().await, 4012);
    discord.forbid_content();
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.identify(&discord, INTENTS).await;
    assert_eq!(socket.close_code().await, 4014);
}

#[tokio::test]
async fn what_was_missed_is_told_again_to_who_resumes() {
    let (discord, channel, ann) = double();
    let (mut socket, _) = Socket::connect(&discord).await;
    let session = socket.ready(&discord).await;
    socket.event("GUILD_CREATE").await;
    drop(socket);
    discord.wait_for("the connection is gone", LIMIT, |world| {
        (world.open_connections() == 0).then_some(())
    });
    discord.say(channel, ann, "one");
    discord.say(channel, ann, "two");
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.resume(&discord, &session, 2).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(socket.hear().await);
    }
    let told: Vec<_> = heard.iter().map(|it| (it["t"].as_str().unwrap(), &it["s"])).collect();
    let expected =
        [("MESSAGE_CREATE", &json!(3)), ("MESSAGE_CREATE", &json!(4)), ("RESUMED", &json!(5))];
    assert_eq!(told, expected);
    // Nobody can have heard what was not said.
    let (mut ahead, _) = Socket::connect(&discord).await;
    ahead.resume(&discord, &session, 99).await;
    assert_eq!(ahead.close_code().await, 4007);
}

#[tokio::test]
async fn a_session_that_is_over_is_invalid() {
    let (discord, ..) = double();
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.resume(&discord, "nobody's", 1).await;
    let invalid = socket.hear().await;
    assert_eq!((&invalid["op"], &invalid["d"]), (&json!(9), &json!(false)));
    // The same connection can begin one.
    let session = socket.ready(&discord).await;
    discord.ask_reconnect();
    while socket.hear().await["op"] != 7 {}
    // Who says goodbye in this way does not want to come back.
    socket.0.send(Message::close(Some(CloseCode::NORMAL_CLOSURE), "")).await.unwrap();
    discord.wait_for("the connection is gone", LIMIT, |world| {
        (world.open_connections() == 0).then_some(())
    });
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.resume(&discord, &session, 1).await;
    assert_eq!(socket.hear().await["op"], 9);
}

#[tokio::test]
async fn who_is_not_heard_for_too_long_loses_the_session() {
    let (discord, ..) = double();
    discord.heartbeat(Duration::from_millis(50));
    let (mut socket, _) = Socket::connect(&discord).await;
    let session = socket.ready(&discord).await;
    assert_eq!(socket.close_code().await, 4009);
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.resume(&discord, &session, 1).await;
    assert_eq!(socket.hear().await["op"], 9);
}

#[tokio::test]
async fn who_says_too_much_in_a_minute_is_cut_off() {
    let (discord, ..) = double();
    let (mut socket, _) = Socket::connect(&discord).await;
    for _ in 0..121 {
        socket.say(1, Value::Null).await;
    }
    assert_eq!(socket.close_code().await, 4008);
}

#[tokio::test]
async fn a_heartbeat_can_be_asked_for() {
    let (discord, ..) = double();
    let (mut socket, _) = Socket::connect(&discord).await;
    discord.ask_heartbeat();
    assert_eq!(socket.hear().await["op"], 1);
    socket.say(1, Value::Null).await;
    assert_eq!(socket.hear().await["op"], 11);
    assert_eq!(discord.look(|world| world.heartbeats()), 1);
}

#[tokio::test]
async fn what_others_write_is_empty_for_who_may_not_read_it() {
    let (discord, channel, ann) = double();
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.identify(&discord, INTENTS & !(1 << 15)).await;
    socket.event("READY").await;
    discord.say_with(channel, ann, "hello", &[("a.txt", b"x".as_slice())]);
    let heard = socket.event("MESSAGE_CREATE").await;
    assert_eq!((&heard["d"]["content"], &heard["d"]["attachments"]), (&json!(""), &json!([])));
    // But for what is meant for the bot.
    let meant = format!("<@{}> hello", discord.bot_id());
    discord.say(channel, ann, &meant);
    assert_eq!(socket.event("MESSAGE_CREATE").await["d"]["content"], meant);
    discord.say(discord.direct(ann), ann, "between us");
    assert_eq!(socket.event("MESSAGE_CREATE").await["d"]["content"], "between us");
}

#[tokio::test]
async fn every_connection_can_be_closed_cut_or_silenced() {
    let (discord, channel, ann) = double();
    for code in [4000, 4007, 4009] {
        let (mut socket, _) = Socket::connect(&discord).await;
        let session = socket.ready(&discord).await;
        discord.close(code);
        assert_eq!(socket.close_code().await, code);
        let (mut socket, _) = Socket::connect(&discord).await;
        socket.resume(&discord, &session, 1).await;
        let expected = if code == 4000 { "RESUMED" } else { "" };
        let is_resumed = loop {
            let heard = socket.hear().await;
            match (heard["op"].as_u64(), heard["t"].as_str()) {
                (Some(9), _) => break false,
                (_, Some("RESUMED")) => break true,
                _ => {}
            }
        };
        assert_eq!(is_resumed, !expected.is_empty(), "{code}");
    }
    let (mut silent, _) = Socket::connect(&discord).await;
    let session = silent.ready(&discord).await;
    silent.event("GUILD_CREATE").await;
    discord.silence();
    silent.say(1, Value::Null).await;
    discord.say(channel, ann, "hello");
    let (mut socket, _) = Socket::connect(&discord).await;
    socket.resume(&discord, &session, 2).await;
    assert_eq!(socket.event("MESSAGE_CREATE").await["d"]["content"], "hello");
    // Nothing came there but the end.
    assert_eq!(silent.hear_or_code().await, Err(4000));
    discord.cut();
    assert!(socket.is_cut().await);
}
