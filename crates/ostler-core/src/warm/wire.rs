//! The way to an agent that is an HTTP server: calls and one stream of events.
//!
//! Knows nothing of what is said. Every call has a time limit, every body and
//! event a bound, and every task ends with the wire.

mod sse;

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, header};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use self::sse::Events;
use crate::{
    agent::http::{CallKey, EventSource, HttpCall, Login, Method},
    failure::chain,
};

/// The most that a reply or an event may be long, as for a line of a process.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How much may be heard and not taken yet.
const AHEAD: usize = 64;

/// What came in.
#[derive(Debug)]
pub(crate) enum Came {
    /// A call was answered with this status and body, or could not be made.
    Reply { call: CallKey, reply: Result<(u16, Vec<u8>), String> },
    /// An event of the stream.
    Event(Vec<u8>),
    /// The stream is over.
    Lost { why: String },
}

/// The way to a server.
pub(crate) struct Wire {
    client: Option<Client>,
    tasks: JoinSet<()>,
    sender: mpsc::Sender<(Option<u64>, Came)>,
    came: mpsc::Receiver<(Option<u64>, Came)>,
    /// The stream that counts: what others tell is old.
    stream: u64,
    listener: Option<AbortHandle>,
}

impl Wire {
    pub(crate) fn new() -> Self {
        let (sender, came) = mpsc::channel(AHEAD);
        Self { client: None, tasks: JoinSet::new(), sender, came, stream: 0, listener: None }
    }

    /// Makes a call.
    pub(crate) fn call(&mut self, call: CallKey, request: HttpCall) {
        let client = self.client();
        let sender = self.sender.clone();
        self.tasks.spawn(async move {
            let reply = match client {
                Ok(client) => ask(&client, request).await,
                Err(why) => Err(why),
            };
            // Without a listener nobody needs the answer.
            sender.send((None, Came::Reply { call, reply })).await.ok();
        });
    }

    /// Listens to a stream, instead of to the one before.
    pub(crate) fn listen(&mut self, source: EventSource) {
        if let Some(old) = self.listener.take() {
            old.abort();
        }
        self.stream += 1;
        let stream = self.stream;
        let client = self.client();
        let sender = self.sender.clone();
        self.listener = Some(self.tasks.spawn(async move {
            let why = match client {
                Ok(client) => follow(&client, source, stream, &sender).await,
                Err(why) => why,
            };
            sender.send((Some(stream), Came::Lost { why })).await.ok();
        }));
    }

    /// Returns what comes next; waits for ever when nothing is under way.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Came {
        loop {
            // The wire has a sender itself, so there is always a next one.
            let Some((stream, came)) = self.came.recv().await else {
                return std::future::pending().await;
            };
            while self.tasks.try_join_next().is_some() {}
            if stream.is_none_or(|stream| stream == self.stream) {
                return came;
            }
        }
    }

    fn client(&mut self) -> Result<Client, String> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let client = build().map_err(|error| chain(&error))?;
        self.client = Some(client.clone());
        Ok(client)
    }
}

fn build() -> reqwest::Result<Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may be quicker, and then theirs is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
    // What is said to an agent on this machine is nothing for a proxy.
    Client::builder().no_proxy().connect_timeout(CONNECT_LIMIT).build()
}

fn with_login(request: RequestBuilder, login: Option<Login>) -> RequestBuilder {
    match login {
        Some(Login { user, password }) => request.basic_auth(user, Some(password)),
        None => request,
    }
}

/// Makes a call and reads the whole reply.
async fn ask(client: &Client, call: HttpCall) -> Result<(u16, Vec<u8>), String> {
    let HttpCall { method, url, login, body, limit } = call;
    let method = match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
    };
    let mut request = with_login(client.request(method, url), login);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = async {
        let mut response = request.send().await.map_err(|error| chain(&error))?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| chain(&error))? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err("the reply is too long".to_owned());
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, body))
    };
    timeout(limit, answer).await.unwrap_or_else(|_| Err(format!("no reply within {limit:?}")))
}

/// Follows a stream to its end; returns why it ended.
async fn follow(
    client: &Client,
    source: EventSource,
    stream: u64,
    sender: &mpsc::Sender<(Option<u64>, Came)>,
) -> String {
    let EventSource { url, login, quiet } = source;
    let silent = || format!("nothing came for {quiet:?}");
    let request = with_login(client.get(url), login).header(header::ACCEPT, "text/event-stream");
    let mut response = match timeout(quiet, request.send()).await {
        Ok(Ok(response)) if response.status().is_success() => response,
        Ok(Ok(response)) => return format!("the server answered {}", response.status()),
        Ok(Err(error)) => return chain(&error),
        Err(_) => return silent(),
    };
    if !is_stream(&response) {
        return "the server did not answer with a stream of events".to_owned();
    }
    let mut events = Events::new(MAX_BYTES);
    let mut found = Vec::new();
    loop {
        let chunk = match timeout(quiet, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return "the server ended it".to_owned(),
            Ok(Err(error)) => return chain(&error),
            Err(_) => return silent(),
        };
        if events.push(&chunk, &mut found).is_err() {
            return "an event was too long".to_owned();
        }
        for data in found.drain(..) {
            if sender.send((Some(stream), Came::Event(data))).await.is_err() {
                return "nobody listens".to_owned();
            }
        }
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/event-stream"))
}
