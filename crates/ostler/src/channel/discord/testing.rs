//! A stand-in for Discord in tests: it hands out what it is asked and what it is
//! told, and the test says what it answers.

use std::time::Duration;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, Uri},
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time,
};
use tokio_websockets::{CloseCode, Message, ServerBuilder, WebSocketStream};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// The HTTP interface.
pub(super) struct Server {
    pub(super) url: String,
    asked: mpsc::Receiver<Asked>,
    _tasks: JoinSet<()>,
}

/// A call that waits for its answer. Dropped, it is cut off.
pub(super) struct Asked {
    /// Method and path, as in `GET /users/@me`.
    pub(super) what: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    answer: oneshot::Sender<Response<Body>>,
}

impl Asked {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Answers with a status and a body.
    pub(super) fn answer(self, status: u16, body: &Value) {
        self.answer_with(status, &[], body.to_string());
    }

    pub(super) fn answer_with(self, status: u16, headers: &[(&str, &str)], body: String) {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        // Whoever asked may be gone.
        self.answer.send(response.body(Body::from(body)).unwrap()).ok();
    }

    /// Answers nothing, until nobody waits any more.
    pub(super) async fn hold(mut self) {
        self.answer.closed().await;
    }
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = mpsc::channel(64);
        let router = Router::new().fallback(take).with_state(sender);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, asked, _tasks: tasks }
    }

    pub(super) async fn next(&mut self) -> Asked {
        time::timeout(PATIENCE, self.asked.recv()).await.expect("nothing was asked").unwrap()
    }

    pub(super) fn try_next(&mut self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }

    /// Answers who the bot is and what it belongs to.
    pub(super) async fn introduce(&mut self) {
        let me = json!({"id": "900", "username": "ostler", "bot": true});
        self.expect("GET /users/@me", 200, &me).await;
        let application = json!({"id": "800", "flags": 1 << 19});
        self.expect("GET /applications/@me", 200, &application).await;
    }

    /// Answers what has to be asked next.
    pub(super) async fn expect(&mut self, what: &str, status: u16, body: &Value) {
        let asked = self.next().await;
        assert_eq!(asked.what, what);
        asked.answer(status, body);
    }
}

async fn take(
    State(sender): State<mpsc::Sender<Asked>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let path = uri.path_and_query().unwrap().as_str();
    let what = format!("{method} {}", path.strip_prefix("/api/v10").unwrap());
    let (answer, answered) = oneshot::channel();
    sender.send(Asked { what, headers, body, answer }).await.unwrap();
    // A body that fails ends the connection.
    answered.await.unwrap_or_else(|_| {
        let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
        Response::new(Body::from_stream(broken))
    })
}

/// The gateway.
pub(super) struct Gateway {
    listener: TcpListener,
    pub(super) url: String,
}

/// A connection to it.
pub(super) struct Line {
    socket: WebSocketStream<TcpStream>,
    url: String,
}

impl Gateway {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// Waits for a connection, and does not greet it.
    pub(super) async fn accept_silently(&self) -> Line {
        let accepted = time::timeout(PATIENCE, self.listener.accept()).await;
        let (stream, _) = accepted.expect("nobody connected").unwrap();
        let (_, socket) = ServerBuilder::new().accept(stream).await.unwrap();
        Line { socket, url: self.url.clone() }
    }

    /// Waits for a connection, and greets it.
    pub(super) async fn accept(&self) -> Line {
        let mut line = self.accept_silently().await;
        line.say(json!({"op": 10, "d": {"heartbeat_interval": 40_000}})).await;
        line
    }
}

impl Line {
    pub(super) async fn say(&mut self, what: Value) {
        self.socket.send(Message::text(what.to_string())).await.unwrap();
    }

    /// Tells of something that happened.
    pub(super) async fn tell(&mut self, sequence: u64, kind: &str, what: Value) {
        self.say(json!({"op": 0, "s": sequence, "t": kind, "d": what})).await;
    }

    /// Tells that the bot is connected anew.
    pub(super) async fn ready(&mut self, sequence: u64, session: &str) {
        let user = json!({"id": "900", "username": "ostler", "discriminator": "0", "bot": true,
            "avatar": null, "mfa_enabled": false});
        let ready = json!({"v": 10, "user": user, "guilds": [], "session_id": session,
            "resume_gateway_url": self.url, "application": {"id": "800", "flags": 0}});
        self.tell(sequence, "READY", ready).await;
    }

    /// Returns what the bot says next, beside its heartbeats.
    pub(super) async fn hear(&mut self) -> Value {
        loop {
            let message = time::timeout(PATIENCE, self.socket.next()).await;
            let message = message.expect("nothing was said").unwrap().unwrap();
            let said: Value = serde_json::from_str(message.as_text().unwrap()).unwrap();
            if said["op"] != 1 {
                return said;
            }
        }
    }

    /// Closes the connection with a code.
    pub(super) async fn close(mut self, code: u16) {
        let code = CloseCode::try_from(code).unwrap();
        self.socket.send(Message::close(Some(code), "")).await.unwrap();
        while let Some(Ok(_)) = self.socket.next().await {}
    }

    /// Ends the connection when the bot closes it, without a word.
    pub(super) async fn hang_up(mut self) {
        let message = time::timeout(PATIENCE, self.socket.next()).await;
        let message = message.expect("it was not closed").unwrap().unwrap();
        assert!(message.is_close(), "{message:?}");
    }

    /// Returns the code that the bot closes the connection with.
    pub(super) async fn closed(self) -> u16 {
        self.closed_with().await.expect("it was not closed with a code")
    }

    /// Waits for the end of the connection, and returns its code if it has one.
    pub(super) async fn closed_with(mut self) -> Option<u16> {
        let closing = async {
            let mut code = None;
            // The close is answered while the rest is read.
            while let Some(Ok(message)) = self.socket.next().await {
                code = message.as_close().map(|(code, _)| code.into()).or(code);
            }
            code
        };
        time::timeout(PATIENCE, closing).await.expect("it was not closed")
    }
}
