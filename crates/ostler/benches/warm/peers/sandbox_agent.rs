//! sandbox-agent: a server that passes ACP on over HTTP. A request is answered by
//! its reply; what the agent tells comes by server-sent events.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use super::Ground;
use crate::{
    figures::{Clock, Gateway, PROMPT, Took},
    http::{Events, Http},
};

/// The agent whose place the scripted one takes: one that needs nothing else to
/// be installed.
const AGENT: &str = "pi";
/// Where that agent is spoken with.
const PATH: &str = "/v1/acp/bench";

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
    let mut calls = Http::connect(port, "");
    let about = json!({
        "protocolVersion": 1, "clientInfo": { "name": "bench", "version": "1" },
        "clientCapabilities": {},
    });
    calls.post(&format!("{PATH}?agent={AGENT}"), &request(1, "initialize", &about));
    calls.reply();
    let place = json!({ "cwd": ground.folder("work"), "mcpServers": [] });
    calls.post(PATH, &request(2, "session/new", &place));
    let session = calls.reply()["result"]["sessionId"].clone();
    let events = Http::connect(port, "").listen(PATH);
    Box::new(Server { child, calls, events, n_calls: 2, session })
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
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

struct Server {
    child: Child,
    calls: Http,
    events: Events,
    n_calls: u64,
    session: Value,
}

impl Gateway for Server {
    /// A turn is over when its request is answered and everything was heard that
    /// the agent told: the reply has no text in it.
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let prompt = json!([{ "type": "text", "text": PROMPT }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.n_calls += 1;
        self.calls.post(PATH, &request(self.n_calls, "session/prompt", &params));
        let last = format!(r#""id":{},"#, self.n_calls);
        loop {
            let event = self.events.next();
            if event.contains("agent_message_chunk") {
                clock.text();
            }
            if event.contains("stopReason") && event.contains(&last) {
                break;
            }
        }
        let reply = self.calls.reply();
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
