//! The smallest HTTP client that can see a cut response.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response as far as it came.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether the response was sent to its end.
    pub(crate) complete: bool,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Returns the data of the server-sent events, and checks that each event
    /// is named like the type of its data.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        self.body
            .split("\n\n")
            .filter(|event| !event.is_empty())
            .map(|event| {
                let (name, data) = event.split_once('\n').expect("two lines");
                let data = data.strip_prefix("data: ").expect("data");
                let data: Value = serde_json::from_str(data).expect("JSON");
                assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
                data
            })
            .collect()
    }

    /// Returns the data of server-sent events that have no name, and what comes
    /// after the last of them.
    pub(crate) fn chunks(&self) -> (Vec<Value>, &str) {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        let mut chunks = Vec::new();
        let mut rest = self.body.as_str();
        while let Some((data, tail)) =
            rest.strip_prefix("data: {").and_then(|rest| rest.split_once("\n\n"))
        {
            chunks.push(serde_json::from_str(&format!("{{{data}")).expect("JSON"));
            rest = tail;
        }
        (chunks, rest)
    }
}

/// Sends a request and reads until the server closes.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let stream = begin(address, method, path, headers, body).await;
    finish(stream).await
}

/// Sends a request without waiting for anything.
pub(crate) async fn begin(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("write");
    stream
}

/// Reads until the received text holds `needle`.
pub(crate) async fn read_until(stream: &mut TcpStream, needle: &str) -> String {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if text.contains(needle) {
            return text;
        }
        let n_read = stream.read_buf(&mut received).await.expect("read");
        assert!(n_read > 0, "the response ended before {needle:?}: {text}");
    }
}

/// Reads the rest of a response; a reset counts as its end.
pub(crate) async fn finish(mut stream: TcpStream) -> Response {
    let mut received = Vec::new();
    while let Ok(n_read) = stream.read_buf(&mut received).await {
        if n_read == 0 {
            break;
        }
    }
    let received = String::from_utf8(received).expect("UTF-8");
    let (head, rest) = received.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let (body, complete) = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunk(rest)
    } else {
        (rest.to_owned(), true)
    };
    Response { status, head: head.to_owned(), body, complete }
}

fn unchunk(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = tail.get(..size) else { break };
        body.push_str(chunk);
        rest = tail.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}
