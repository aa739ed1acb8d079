//! A gateway that serves HTTP, and callers that know nothing of it but its address.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{LIMIT, Place, signal, until};

/// A gateway that runs. One that is forgotten is killed.
pub(super) struct Served {
    child: Child,
    log: PathBuf,
    pub(super) address: SocketAddr,
}

/// Returns the folder that projects may lie in.
pub(super) fn roots(place: &Place) -> PathBuf {
    let folder = place.path("home/projects");
    fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

impl Served {
    /// Starts a gateway whose agent is played, and that counts no requests.
    pub(super) fn start(place: &Place) -> Self {
        let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
        // What the player of agents understands is put for what people would write.
        let agent = place.program(
            "played-claude",
            &format!(
                "#!/bin/bash\n\
                 exec '{ostler}' scripted --as claude -- \"$@\" \
                 < <(exec sed -u 's/Run the tests/sim:tool/; s/Take your time/sim:delay=60000/')\n"
            ),
        );
        let settings = json!({
            "gateway": { "listen": "127.0.0.1:0" },
            "agent": { "default": "claude", "path": agent, "permissions": "bypass" },
            "retry": { "max": 0 },
            "api": {
                "roots": [roots(place)],
                "shell": ["echo", "true"],
                "heartbeat": "1s",
                "requests_per_key": 1_000_000,
                "requests_per_address": 1_000_000,
            },
        });
        fs::write(place.path("ostler.json5"), settings.to_string()).unwrap();
        Self::start_again(place)
    }

    /// Starts another where one was before. What it runs is not written again: agents
    /// of one that was killed may not be gone yet.
    pub(super) fn start_again(place: &Place) -> Self {
        let (config, log) = (place.path("ostler.json5"), place.path("log"));
        let mut command = place.ostler(&["serve", "--config", config.to_str().unwrap()]);
        command.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let address = until("the gateway is ready", || {
            let written = fs::read_to_string(&log).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "it ended instead: {written}");
            address_in(&written)
        });
        Self { child, log, address }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns what it has logged.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Connects to it. Whoever waits longer than any test may has lost.
    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends bytes on a connection of their own, and returns all that comes back until
    /// the gateway closes it. It may do so in the middle of the sending.
    pub(super) fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes).ok();
        read_all(stream)
    }

    /// Sends bytes and no more, and returns all that comes back.
    pub(super) fn cut(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes).ok();
        stream.shutdown(Shutdown::Write).ok();
        read_all(stream)
    }

    /// Makes a request and returns the status and what was answered.
    pub(super) fn call(&self, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.exchange(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: ostler\r\nAuthorization: Bearer {key}\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        );
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (status_of(head), serde_json::from_str(body).unwrap_or_default())
    }

    /// Says that the gateway lives, and that nothing went wrong inside.
    pub(super) fn must_live(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended: {}", self.log());
        let (status, body) = self.call("GET", "/ready", "", &Value::Null);
        assert_eq!((status, body), (200, json!({ "status": "ready" })));
        assert!(!self.log().contains("panicked"), "{}", self.log());
    }

    /// Stops it as an operator would.
    pub(super) fn stop(mut self) {
        signal(self.child.id(), "TERM");
        let ended = until("the gateway has ended", || self.child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0), "{}", self.log());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn read_all(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    // What came counts, also of a connection that was reset.
    stream.read_to_end(&mut answer).ok();
    answer
}

/// Returns where a gateway listens, by what it logs when it is ready.
fn address_in(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("http=")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the status of an answer.
pub(super) fn status_of(answer: &str) -> u16 {
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    status.and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

/// Makes a key that may do everything.
pub(super) fn admin(place: &Place) -> String {
    let config = place.path("ostler.json5");
    let config = config.to_str().unwrap();
    let args = ["keys", "create", "--config", config, "--name", "test", "--scope", "admin"];
    let made = place.run(&args);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    made.stdout.trim().to_owned()
}

/// The longest that a request may take when nothing is wrong.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
