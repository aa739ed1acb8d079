//! As much of HTTP as a raw client needs: calls on one connection, one after the
//! other, and a stream of events on another.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::Value;

/// How long a server may take to listen, and to say something.
const LIMIT: Duration = Duration::from_secs(30);

/// A connection to a server on this machine.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    /// Lines for the head of each request.
    headers: &'static str,
}

impl Http {
    /// Connects as soon as somebody listens.
    pub(crate) fn connect(port: u16, headers: &'static str) -> Self {
        let started = Instant::now();
        loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => {
                    stream.set_nodelay(true).unwrap();
                    stream.set_read_timeout(Some(LIMIT)).unwrap();
                    return Self { stream: BufReader::new(stream), headers };
                }
                Err(error) => {
                    assert!(started.elapsed() < LIMIT, "nobody listens: {error}");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}content-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.headers,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    pub(crate) fn get(&mut self, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}\r\n", self.headers);
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// Reads the answer to the last call; one without a body is null.
    pub(crate) fn reply(&mut self) -> Value {
        let status = self.line();
        assert!(status.starts_with("HTTP/1.1 2"), "{status}");
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line().to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("transfer-encoding", value)) => is_chunked = value == "chunked",
                Some(_) => {}
                None => break,
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).unwrap();
                self.take(size, &mut body);
                self.line();
                if size == 0 {
                    break;
                }
            }
        } else {
            self.take(length, &mut body);
        }
        if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() }
    }

    /// Asks for the events; from now on only these come.
    pub(crate) fn listen(mut self, path: &str) -> Events {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}accept: text/event-stream\r\n\r\n",
            self.headers
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let status = self.line();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        Events(self)
    }

    /// Reads a line without its end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "the server hung up");
        line.truncate(line.trim_end().len());
        line
    }

    fn take(&mut self, length: usize, body: &mut Vec<u8>) {
        let start = body.len();
        body.resize(start + length, 0);
        self.stream.read_exact(&mut body[start..]).unwrap();
    }
}

/// A stream of events.
pub(crate) struct Events(Http);

impl Events {
    /// Waits for the next event. What is between events, sizes of chunks among
    /// it, is passed over. An event that is cut in two would be missed; the servers
    /// here send each in one chunk.
    pub(crate) fn next(&mut self) -> String {
        loop {
            let line = self.0.line();
            if line.starts_with("data:") {
                return line;
            }
        }
    }
}
