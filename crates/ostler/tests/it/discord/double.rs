//! Whether the double keeps to Discord's published protocol, seen by a client that
//! does no more than it must.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Client, Method, Response, header::HeaderMap};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_websockets::{ClientBuilder, CloseCode, MaybeTlsStream, Message, WebSocketStream};

use crate::{
    discord_double::{Bucket, Discord},
    support::LIMIT,
};

/// Guilds, messages there and direct ones, and what they say.
const INTENTS: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;

/// A connection to the gateway.
struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Connects, and returns how often a heartbeat is wanted.
    async fn connect(discord: &Discord) -> (Self, u64) {
        Self::connect_by(discord, "v=10&encoding=json").await
    }

    async fn connect_by(discord: &Discord, query: &str) -> (Self, u64) {
        let url = format!("{}/?{query}", discord.gateway_url());
        let (socket, _) = ClientBuilder::new().uri(&url).unwrap().connect().await.unwrap();
        let mut socket = Self(socket);
        let hello = socket.hear().await;
        assert_eq!(hello["op"], 10, "{hello}");
        (socket, hello["d"]["heartbeat_interval"].as_u64().unwrap())
    }

    async fn say(&mut self, opcode: u8, data: Value) {
        let text = json!({ "op": opcode, "d": data }).to_string();
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// Reads the next payload.
    async fn hear(&mut self) -> Value {
        let message = timeout(LIMIT, self.0.next()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(message.as_text().unwrap()).unwrap()
    }

    /// Reads on until an event of this name, and returns it.
    async fn event(&mut self, name: &str) -> Value {
        loop {
            let heard = self.hear().await;
            if heard["t"] == name {
                return heard;
            }
        }
    }

    /// Reads on until the other side closes, and returns its code.
    async fn close_code(&mut self) -> u16 {
        loop {
            let message = timeout(LIMIT, self.0.next()).await.unwrap().unwrap().unwrap();
            if let Some((code, _)) = message.as_close() {
                return u16::from(code);
            }
        }
    }

    async fn identify(&mut self, discord: &Discord, intents: u64) {
        let properties = json!({ "os": "linux", "browser": "test", "device": "test" });
        let token = discord.token();
        self.say(2, json!({ "token": token, "intents": intents, "properties": properties })).await;
    }

    /// Begins a session and returns its name.
    async fn ready(&mut self, discord: &Discord) -> String {
        self.identify(discord, INTENTS).await;
        let ready = self.event("READY").await;
        assert_eq!((&ready["op"], &ready["s"]), (&json!(0), &json!(1)));
        assert_eq!(ready["d"]["resume_gateway_url"], discord.gateway_url());
        ready["d"]["session_id"].as_str().unwrap().to_owned()
    }

    async fn resume(&mut self, discord: &Discord, session: &str, sequence: u64) {
        let token = discord.token();
        self.say(6, json!({ "token": token, "session_id": session, "seq": sequence })).await;
    }
}

/// Calls the API as the bot.
async fn call(discord: &Discord, method: Method, path: &str, body: Value) -> Response {
    // There has to be one, although nothing is encrypted here.
    rustls::crypto::ring::default_provider().install_default().ok();
    let request = Client::new()
        .request(method, format!("{}/api/v10{path}", discord.api_url()))
        .header("Authorization", format!("Bot {}", discord.token()));
    let request = if body.is_null() { request } else { request.json(&body) };
    request.send().await.unwrap()
}

async fn post(discord: &Discord, path: &str, body: Value) -> Response {
    call(discord, Method::POST, path, body).await
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

/// Makes a double with a channel in it.
fn double() -> (Discord, u64, u64) {
    let discord = Discord::start();
    let guild = discord.guild("Stable");
    let channel = discord.channel(guild, "yard");
    let ann = discord.user("ann");
    (discord, channel, ann)
}

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
