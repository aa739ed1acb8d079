//! Minimal clients of the protocols that CLIs speak on their pipes. That of the
//! one that is a server is in `opencode`.

use std::{
    io::{BufRead, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use ostler_core::TurnRequest;
use serde_json::{Value, json};

use crate::{
    figures::{Clock, Gateway, PROMPT, Took},
    opencode::OpenCode,
};

/// Starts an agent and a client for it.
pub(crate) fn start(
    name: &'static str,
    command: Command,
    request: &TurnRequest,
) -> Box<dyn Gateway> {
    match name {
        "opencode" => Box::new(OpenCode::start(command, request)),
        name => Box::new(Raw::start(name, command, request)),
    }
}

/// A client with the process that it speaks with.
struct Raw {
    name: &'static str,
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    n_calls: u64,
    /// What the agent calls the session.
    session: Value,
}

impl Raw {
    fn start(name: &'static str, mut command: Command, request: &TurnRequest) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut raw = Self { name, child, stdin, lines, n_calls: 0, session: Value::Null };
        let options = &request.options;
        let client = json!({ "name": "bench", "version": "1" });
        match name {
            "codex" => {
                raw.call("initialize", &json!({ "clientInfo": client }));
                raw.send(&json!({ "method": "initialized" }));
                let started = raw.call(
                    "thread/start",
                    &json!({ "cwd": options.cwd, "model": options.model,
                             "approvalPolicy": "never", "sandbox": "read-only" }),
                );
                raw.session = started["result"]["thread"]["id"].clone();
            }
            "gemini" => {
                let can = json!({ "fs": { "readTextFile": false, "writeTextFile": false } });
                let about = json!({
                    "protocolVersion": 1, "clientInfo": client, "clientCapabilities": can,
                });
                raw.call("initialize", &about);
                let place = json!({ "cwd": options.cwd, "mcpServers": [] });
                raw.session = raw.call("session/new", &place)["result"]["sessionId"].clone();
                if let Some(model) = &options.model {
                    let chosen = json!({ "sessionId": raw.session, "modelId": model });
                    raw.call("session/set_model", &chosen);
                }
            }
            _ => {}
        }
        raw
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        let request = self.request(method, params);
        self.send(&request);
        loop {
            let line = self.lines.next().expect("an answer").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.n_calls && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.n_calls += 1;
        json!({ "jsonrpc": "2.0", "id": self.n_calls, "method": method, "params": params })
    }

    fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }
}

impl Gateway for Raw {
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let (message, first_mark, last_mark) = match self.name {
            "claude" => (
                json!({ "type": "user", "message": { "role": "user", "content": PROMPT } }),
                "text_delta",
                r#""type":"result""#,
            ),
            "codex" => {
                let input = json!([{ "type": "text", "text": PROMPT, "text_elements": [] }]);
                let params = json!({ "threadId": self.session, "input": input });
                (
                    self.request("turn/start", &params),
                    "item/agentMessage/delta",
                    r#""method":"turn/completed""#,
                )
            }
            "gemini" => {
                let parts = json!([{ "type": "text", "text": PROMPT }]);
                let params = json!({ "sessionId": self.session, "prompt": parts });
                (self.request("session/prompt", &params), "agent_message_chunk", r#""stopReason""#)
            }
            "pi" => (
                json!({ "type": "prompt", "message": PROMPT }),
                "text_delta",
                r#""type":"agent_settled""#,
            ),
            other => panic!("no raw client for {other}"),
        };
        self.send(&message);
        loop {
            let line = self.lines.next().expect("the turn ends before the process").unwrap();
            if line.contains(first_mark) {
                clock.text();
            }
            if line.contains(last_mark) {
                return clock.end();
            }
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // It has nothing to lose, and its tools are done.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
