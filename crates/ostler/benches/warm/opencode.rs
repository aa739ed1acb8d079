//! A minimal client of `opencode serve`: HTTP calls and a stream of events.

use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

use ostler_core::TurnRequest;
use serde_json::{Value, json};

use crate::{
    figures::{Clock, Gateway, PROMPT, Took},
    http::{Events, Http},
};

/// The server is told this password, and called with it.
const PASSWORD: (&str, &str) = ("OPENCODE_SERVER_PASSWORD", "bench");
/// `opencode:bench`.
const LOGIN: &str = "authorization: Basic b3BlbmNvZGU6YmVuY2g=\r\n";
/// The agent whose rules Ostler gives the server, and runs its turns by.
const AGENT: &str = "ostler";

pub(crate) struct OpenCode {
    child: Child,
    /// Open, for the server may have more to say.
    _stdout: Lines<BufReader<ChildStdout>>,
    calls: Http,
    events: Events,
    prompt_path: String,
    /// What an event has in it that is about the session.
    mark: String,
    model: Value,
}

impl OpenCode {
    pub(crate) fn start(mut command: Command, request: &TurnRequest) -> Self {
        let mut child = command
            .env(PASSWORD.0, PASSWORD.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().expect("the server says where it is").unwrap();
            if let Some((_, port)) = line.split_once("listening on http://127.0.0.1:") {
                break port.trim().parse().unwrap();
            }
        };
        let options = &request.options;
        let directory = options.cwd.display();
        let mut calls = Http::connect(port, LOGIN);
        calls.post(&format!("/session?directory={directory}"), &json!({ "title": "bench" }));
        let session = calls.reply()["id"].as_str().unwrap().to_owned();
        let events = Http::connect(port, LOGIN).listen(&format!("/event?directory={directory}"));
        let (provider, model) = options.model.as_deref().unwrap().split_once('/').unwrap();
        Self {
            child,
            _stdout: lines,
            calls,
            events,
            prompt_path: format!("/session/{session}/prompt_async?directory={directory}"),
            mark: session,
            model: json!({ "providerID": provider, "modelID": model }),
        }
    }
}

impl Gateway for OpenCode {
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let parts = json!([{ "type": "text", "text": PROMPT }]);
        let body = json!({ "parts": parts, "model": self.model, "agent": AGENT });
        self.calls.post(&self.prompt_path, &body);
        self.calls.reply();
        loop {
            let event = self.events.next();
            if !event.contains(&self.mark) {
                continue;
            }
            if event.contains(r#""message.part.delta""#) {
                clock.text();
            }
            if event.contains(r#""session.idle""#) {
                return clock.end();
            }
        }
    }
}

impl Drop for OpenCode {
    fn drop(&mut self) {
        // It has nothing to lose, and its tools are done.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
