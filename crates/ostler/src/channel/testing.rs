//! A receiver of webhooks for tests, and a server of files. The first asks the test what to answer, so that a
//! test says what happens when, and nothing has to wait for a clock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time,
};

use super::Reply;
use crate::{
    clock::Millis,
    id::{ConversationId, JobId, OutboxId, TurnId},
    store::outbox::{NewMessage, Sending},
};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that hands out what it was posted.
pub(crate) struct Receiver {
    /// Where it is, without a slash at the end.
    pub(crate) url: String,
    requests: mpsc::Receiver<Request>,
    _tasks: JoinSet<()>,
}

/// What was posted, and waits for an answer. Dropped, it is cut off.
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) raw: Vec<u8>,
    answer: oneshot::Sender<String>,
}

impl Request {
    /// Answers with a status.
    pub(crate) fn answer(self, status: u16) {
        self.answer_with(status, "", "");
    }

    /// Answers with a status, a line of the head, and a body.
    pub(crate) fn answer_with(self, status: u16, header: &str, body: &str) {
        let line = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        let length = body.len();
        self.answer_raw(format!(
            "HTTP/1.1 {status} Test\r\n{line}Content-Length: {length}\r\n\r\n{body}"
        ));
    }

    /// Answers with these bytes.
    pub(crate) fn answer_raw(self, text: String) {
        // Whoever asked may be gone.
        self.answer.send(text).ok();
    }

    /// Answers nothing, until the other side has lost its patience.
    pub(crate) async fn hold(mut self) {
        self.answer.closed().await;
    }

    pub(crate) fn key(&self) -> &str {
        &self.headers["idempotency-key"]
    }

    pub(crate) fn text(&self) -> &str {
        self.body["text"].as_str().unwrap()
    }
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                calls.spawn(serve(stream, sender.clone()));
            }
        });
        Self { url, requests, _tasks: tasks }
    }

    /// Returns what is posted next.
    pub(crate) async fn next(&mut self) -> Request {
        let next = time::timeout(PATIENCE, self.requests.recv()).await;
        next.expect("nothing was posted").unwrap()
    }

    /// Returns what was posted and not taken yet.
    pub(crate) fn try_next(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

async fn serve(stream: TcpStream, requests: mpsc::Sender<Request>) {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    let headers: HashMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let (raw, body) = (body.clone(), serde_json::from_slice(&body).unwrap());
    let (answer, answered) = oneshot::channel();
    if requests.send(Request { path, headers, body, raw, answer }).await.is_err() {
        return;
    }
    let answered = tokio::select! {
        answered = answered => answered,
        // The other side does not wait any more.
        _ = stream.read_u8() => return,
    };
    if let Ok(text) = answered {
        // It may have stopped listening.
        stream.write_all(text.as_bytes()).await.ok();
        stream.shutdown().await.ok();
    }
}

/// A server that hands out files. What it does not have is gone, and `/held` never
/// comes.
pub(crate) struct Files {
    pub(crate) host: String,
    asked: Arc<Mutex<Vec<String>>>,
    held: watch::Receiver<bool>,
    _tasks: JoinSet<()>,
}

impl Files {
    pub(crate) async fn start(files: &[(&str, &[u8])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let files = files.iter().map(|(path, body)| ((*path).to_owned(), body.to_vec()));
        let files: Arc<HashMap<_, _>> = Arc::new(files.collect());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (hold, held) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let paths = Arc::clone(&asked);
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (files, paths, hold) = (Arc::clone(&files), Arc::clone(&paths), hold.clone());
                calls.spawn(hand_out(stream, files, paths, hold));
            }
        });
        Self { host, asked, held, _tasks: tasks }
    }

    /// Returns the paths that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until somebody waits for what never comes.
    pub(crate) async fn until_held(&self) {
        let mut held = self.held.clone();
        time::timeout(PATIENCE, held.wait_for(|held| *held)).await.unwrap().unwrap();
    }
}

async fn hand_out(
    stream: TcpStream,
    files: Arc<HashMap<String, Vec<u8>>>,
    asked: Arc<Mutex<Vec<String>>>,
    hold: watch::Sender<bool>,
) {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        if line.trim_end().is_empty() {
            break;
        }
        if first.is_empty() {
            first = line;
        }
    }
    let path = first.split(' ').nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(path.clone());
    if path == "/held" {
        hold.send_replace(true);
        stream.read_u8().await.ok();
        return;
    }
    let (status, body) = files.get(&path).map_or((404, &[][..]), |body| (200, body));
    let head = format!("HTTP/1.1 {status} Test\r\nContent-Length: {}\r\n\r\n", body.len());
    // Whoever asked may have stopped listening.
    stream.write_all(&[head.as_bytes(), body].concat()).await.ok();
    stream.shutdown().await.ok();
}

/// Makes a reply for an address.
pub(crate) fn message(channel: &str, address: &str, text: &str) -> NewMessage {
    let job = JobId::new();
    let reply = Reply {
        conversation: ConversationId::new(),
        job: Some(job),
        with: Vec::new(),
        turn: Some(TurnId::new()),
        text: Some(text.to_owned()),
        error: None,
        cwd: Some("/somewhere/private".to_owned()),
    };
    NewMessage {
        dedupe: job.to_string(),
        conversation: None,
        turn: reply.turn,
        channel: channel.to_owned(),
        address: address.to_owned(),
        body: reply.to_json(),
    }
}

/// Makes a message that is being sent.
pub(crate) fn sending(channel: &str, address: &str) -> Sending {
    let message = message(channel, address, "hello");
    let tried_since = Millis::now();
    Sending { id: OutboxId::new(), message, attempt: 1, tried_since, is_unsure: false }
}
