//! A double with a channel in it, and a client that does no more than it must.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Client, Method, RequestBuilder, Response, header::HeaderMap};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_websockets::{ClientBuilder, MaybeTlsStream, Message, WebSocketStream};

use crate::{discord_double::Discord, support::LIMIT};

/// Guilds, messages there and direct ones, and what they say.
pub(super) const INTENTS: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;

/// A connection to the gateway.
pub(super) struct Socket(pub(super) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Connects, and returns how often a heartbeat is wanted.
    pub(super) async fn connect(discord: &Discord) -> (Self, u64) {
        Self::connect_by(discord, "v=10&encoding=json").await
    }

    pub(super) async fn connect_by(discord: &Discord, query: &str) -> (Self, u64) {
        let url = format!("{}/?{query}", discord.gateway_url());
        let (socket, _) = ClientBuilder::new().uri(&url).unwrap().connect().await.unwrap();
        let mut socket = Self(socket);
        let hello = socket.hear().await;
        assert_eq!(hello["op"], 10, "{hello}");
        (socket, hello["d"]["heartbeat_interval"].as_u64().unwrap())
    }

    pub(super) async fn say(&mut self, opcode: u8, data: Value) {
        let text = json!({ "op": opcode, "d": data }).to_string();
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// Reads the next payload.
    pub(super) async fn hear(&mut self) -> Value {
        let message = timeout(LIMIT, self.0.next()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(message.as_text().unwrap()).unwrap()
    }

    /// Reads the next payload, or the code with which the other side closes.
    pub(super) async fn hear_or_code(&mut self) -> Result<Value, u16> {
        let message = timeout(LIMIT, self.0.next()).await.unwrap().unwrap().unwrap();
        match message.as_close() {
            Some((code, _)) => Err(u16::from(code)),
            None => Ok(serde_json::from_str(message.as_text().unwrap()).unwrap()),
        }
    }

    /// Reads on until the connection ends; returns whether that was without a word.
    pub(super) async fn is_cut(&mut self) -> bool {
        loop {
            match timeout(LIMIT, self.0.next()).await.unwrap() {
                Some(Ok(message)) if message.is_close() => return false,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return true,
            }
        }
    }

    /// Reads on until an event of this name, and returns it.
    pub(super) async fn event(&mut self, name: &str) -> Value {
        loop {
            let heard = self.hear().await;
            if heard["t"] == name {
                return heard;
            }
        }
    }

    /// Reads on until the other side closes, and returns its code.
    pub(super) async fn close_code(&mut self) -> u16 {
        loop {
            let message = timeout(LIMIT, self.0.next()).await.unwrap().unwrap().unwrap();
            if let Some((code, _)) = message.as_close() {
                return u16::from(code);
            }
        }
    }

    pub(super) async fn identify(&mut self, discord: &Discord, intents: u64) {
        let properties = json!({ "os": "linux", "browser": "test", "device": "test" });
        let token = discord.token();
        self.say(2, json!({ "token": token, "intents": intents, "properties": properties })).await;
    }

    /// Begins a session and returns its name.
    pub(super) async fn ready(&mut self, discord: &Discord) -> String {
        self.identify(discord, INTENTS).await;
        let ready = self.event("READY").await;
        assert_eq!((&ready["op"], &ready["s"]), (&json!(0), &json!(1)));
        assert_eq!(ready["d"]["resume_gateway_url"], discord.gateway_url());
        ready["d"]["session_id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn resume(&mut self, discord: &Discord, session: &str, sequence: u64) {
        let token = discord.token();
        self.say(6, json!({ "token": token, "session_id": session, "seq": sequence })).await;
    }
}

/// Begins a request of the bot.
fn request(discord: &Discord, method: Method, path: &str) -> RequestBuilder {
    Client::new()
        .request(method, format!("{}/api/v10{path}", discord.api_url()))
        .header("Authorization", format!("Bot {}", discord.token()))
}

/// Calls the API as the bot.
pub(super) async fn call(discord: &Discord, method: Method, path: &str, body: Value) -> Response {
    let request = request(discord, method, path);
    let request = if body.is_null() { request } else { request.json(&body) };
    request.send().await.unwrap()
}

pub(super) async fn post(discord: &Discord, path: &str, body: Value) -> Response {
    call(discord, Method::POST, path, body).await
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

/// Makes a double with a channel in it.
pub(super) fn double() -> (Discord, u64, u64) {
    double_behind(Duration::ZERO)
}

/// Makes one in which everything is said to have been made so long ago.
pub(super) fn double_behind(behind: Duration) -> (Discord, u64, u64) {
    // There has to be one, although nothing is encrypted here.
    rustls::crypto::ring::default_provider().install_default().ok();
    let discord = Discord::start_behind(behind);
    let guild = discord.guild("Stable");
    let channel = discord.channel(guild, "yard");
    let ann = discord.user("ann");
    (discord, channel, ann)
}

/// Returns the status and the code of a refusal.
pub(super) async fn refusal(answer: Response) -> (u16, u64) {
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    assert!(body["message"].is_string(), "{body}");
    (status, body["code"].as_u64().unwrap())
}

/// Sends a message with files of these sizes.
pub(super) async fn upload(discord: &Discord, path: &str, sizes: &[usize]) -> Response {
    let listed: Vec<Value> =
        (0..sizes.len()).map(|n| json!({ "id": n, "filename": format!("{n}.bin") })).collect();
    let json = json!({ "content": "files", "attachments": listed });
    let boundary = "a-boundary";
    let part =
        |head: &str| format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n");
    let mut body = format!("{}{json}\r\n", part("name=\"payload_json\"")).into_bytes();
    for (number, size) in sizes.iter().enumerate() {
        let head = format!("name=\"files[{number}]\"; filename=\"{number}.bin\"");
        body.extend(part(&head).bytes());
        body.extend(vec![b'x'; *size]);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--").bytes());
    request(discord, Method::POST, path)
        .header("Content-Type", format!("multipart/form-data; boundary={boundary}"))
        .body(body)
        .send()
        .await
        .unwrap()
}
