//! Minimal clients of the protocols that CLIs speak on their pipes.

use std::{
    io::{BufRead, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use ostler_core::TurnRequest;
use serde_json::{Value, json};

use crate::figures::{Clock, Took};

/// The agents that can be spoken with.
pub(crate) const SPOKEN: [&str; 4] = ["claude", "codex", "gemini", "pi"];

/// A client with the process that it speaks with.
pub(crate) struct Raw {
    name: &'static str,
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    n_calls: u64,
    /// What the agent calls the session.
    session: Value,
}

impl Raw {
    pub(crate) fn start(name: &'static str, mut command: Command, request: &TurnRequest) -> Self {
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

    pub(crate) fn turn(&mut self, prompt: &str) -> Took {
        let mut clock = Clock::start();
        let (message, first_mark, last_mark) = match self.name {
            "claude" => (
                json!({ "type": "user", "message": { "role": "user", "content": prompt } }),
                "text_delta",
                r#""type":"result""#,
            ),
            "codex" => {
                let input = json!([{ "type": "text", "text": prompt, "text_elements": [] }]);
                let params = json!({ "threadId": self.session, "input": input });
                (
                    self.request("turn/start", &params),
                    "item/agentMessage/delta",
                    r#""method":"turn/completed""#,
                )
            }
            "gemini" => {
                let parts = json!([{ "type": "text", "text": prompt }]);
                let params = json!({ "sessionId": self.session, "prompt": parts });
                (self.request("session/prompt", &params), "agent_message_chunk", r#""stopReason""#)
            }
            "pi" => (
                json!({ "type": "prompt", "message": prompt }),
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

impl Drop for Raw {
    fn drop(&mut self) {
        // It has nothing to lose, and its tools are done.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
