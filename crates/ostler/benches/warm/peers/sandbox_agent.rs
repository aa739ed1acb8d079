//! sandbox-agent: a server that passes ACP on over HTTP. A request is answered by
//! its reply; what the agent tells comes by server-sent events.

use std::{
    fs,
    io::{BufRead, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Gateway, Ground};
use crate::figures::{Clock, Took};

/// The agent whose place the scripted one takes: one that needs nothing else to
/// be installed.
const AGENT: &str = "pi";

pub(super) fn start<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    let launchers = ground.folder("home/.local/share/sandbox-agent/bin/agent_processes");
    let launcher = launchers.join(format!("{AGENT}-acp"));
    let text = format!("#!/bin/sh\nexec '{}' --acp\n", ground.agent.display());
    fs::write(&launcher, text).unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(program(ground));
    ground.dress(&mut command);
    let child = command
        .args(["server", "--no-token", "--no-telemetry", "--port", &port.to_string()])
        .env("SANDBOX_AGENT_REQUIRE_PREINSTALL", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let calls = connect(port);
    let mut server = Server { child, calls, events: None, n_calls: 0, session: Value::Null };
    let about = json!({
        "protocolVersion": 1, "clientInfo": { "name": "bench", "version": "1" },
        "clientCapabilities": {},
    });
    server.call(&format!("?agent={AGENT}"), "initialize", &about);
    let place = json!({ "cwd": ground.folder("work"), "mcpServers": [] });
    server.session = server.call("", "session/new", &place)["result"]["sessionId"].clone();
    let mut events = connect(port);
    let ask = "GET /v1/acp/bench HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n";
    events.get_mut().write_all(ask.as_bytes()).unwrap();
    server.events = Some(events);
    Box::new(server)
}

/// Finds the program itself, without the Node script before it, which makes it
/// executable.
fn program(ground: &Ground<'_>) -> PathBuf {
    let packages = ground.peers.join("node_modules/@sandbox-agent");
    let found = ["cli-linux-x64", "cli-linux-arm64", "cli-darwin-arm64", "cli-darwin-x64"]
        .map(|name| packages.join(name).join("bin/sandbox-agent"));
    let program = found.into_iter().find(|path| path.exists()).expect("sandbox-agent is there");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn connect(port: u16) -> BufReader<TcpStream> {
    let started = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => {
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                return BufReader::new(stream);
            }
            Err(error) => {
                assert!(started.elapsed() < Duration::from_secs(20), "sandbox-agent: {error}");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

struct Server {
    child: Child,
    calls: BufReader<TcpStream>,
    events: Option<BufReader<TcpStream>>,
    n_calls: u64,
    session: Value,
}

impl Server {
    fn call(&mut self, query: &str, method: &str, params: &Value) -> Value {
        self.send(query, method, params);
        self.reply()
    }

    fn send(&mut self, query: &str, method: &str, params: &Value) {
        self.n_calls += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.n_calls, "method": method, "params": params });
        let body = message.to_string();
        let head = format!(
            "POST /v1/acp/bench{query} HTTP/1.1\r\nhost: 127.0.0.1\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.calls.get_mut().write_all((head + &body).as_bytes()).unwrap();
    }

    fn reply(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.calls.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.calls.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

impl Gateway for Server {
    /// A turn is over when its request is answered and everything was heard that
    /// the agent told: the reply has no text in it.
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.send("", "session/prompt", &params);
        let last = format!(r#""id":{},"#, self.n_calls);
        let events = self.events.as_mut().unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(events.read_line(&mut line).unwrap(), 0, "the events end before the turn");
            if line.contains("agent_message_chunk") {
                clock.text();
            }
            if line.contains("stopReason") && line.contains(&last) {
                break;
            }
        }
        let reply = self.reply();
        assert_eq!(reply["result"]["stopReason"], "end_turn", "{reply}");
        clock.end()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input, which this leaves it with, ends the agent.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
