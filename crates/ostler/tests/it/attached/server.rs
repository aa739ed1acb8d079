//! The real server, started as an operator would start it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use ostler_sim::model;

use super::{PASSWORD, attached};
use crate::{
    conformance::chat::Chat,
    support::{Model, Place},
};

/// The server's login, as HTTP wants it.
const LOGIN: &str = "b3BlbmNvZGU6dmVyeS1zZWNyZXQtd29yZA==";

/// A server with a home of its own, the simulated model, and a place for Ostler.
pub(super) struct Server {
    pub(super) place: Place,
    pub(super) model: Model,
    port: u16,
    child: Child,
}

impl Server {
    /// Starts one; `None`, with a word about it, where the CLIs are not installed.
    pub(super) fn start() -> Option<Self> {
        if std::env::var_os("OSTLER_TEST_CLIS").is_none() {
            eprintln!("skipped: OSTLER_TEST_CLIS does not say where the real CLIs are");
            return None;
        }
        let (place, model) = (Place::new(), Model::start());
        let settings = model::settings("opencode", &model.url()).unwrap();
        settings.write_files(&place.path("home")).unwrap();
        // Taken and given back, so that the same one can be used again.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = serve(&place, port, &settings);
        Some(Self { place, model, port, child })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends it without a word.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again where it was.
    pub(super) fn start_again(&mut self) {
        let settings = model::settings("opencode", &self.model.url()).unwrap();
        self.child = serve(&self.place, self.port, &settings);
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns `ostler run` for it.
    pub(super) fn run(&self, args: &[&str]) -> Command {
        let all = [&["run", "--agent", "opencode", "--output", "stream-json"], args].concat();
        attached(&self.place, &self.url(), &all)
    }

    /// Starts a conversation with it.
    pub(super) fn chat(&self, args: &[&str]) -> Chat {
        let all = [&["chat", "--agent", "opencode", "--output", "stream-json"], args].concat();
        Chat::start(attached(&self.place, &self.url(), &all))
    }

    /// Starts a conversation with a process of Ostler's own in the same home.
    pub(super) fn own_chat(&self, args: &[&str]) -> Chat {
        let settings = model::settings("opencode", &self.model.url()).unwrap();
        let mut command = self.place.ostler(&["chat", "--agent", "opencode"]);
        command.args(["--output", "stream-json"]).arg("--bin").arg(program());
        for (name, value) in &settings.environment {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        if let Some(model) = settings.model {
            command.args(["--model", model]);
        }
        command.args(args);
        Chat::start(command)
    }

    /// Adds a rule to those of a session, as any of its users can.
    pub(super) fn give_rule(&self, session: &str, rule: &str) {
        let body = format!(r#"{{"permission":[{rule}]}}"#);
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let directory = self.place.work().display().to_string();
        write!(
            stream,
            "PATCH /session/{session}?directory={directory} HTTP/1.1\r\nHost: 127.0.0.1\r\n\
             Authorization: Basic {LOGIN}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200") && reply.contains(rule), "{reply}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn program() -> PathBuf {
    let clis = PathBuf::from(std::env::var_os("OSTLER_TEST_CLIS").unwrap());
    clis.join(crate::conformance::OPENCODE.program)
}

fn serve(place: &Place, port: u16, settings: &model::Settings) -> Child {
    let mut child = Command::new(program())
        .args(["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place.path("home"))
        .env("TMPDIR", place.path("home"))
        .env("OPENCODE_SERVER_PASSWORD", PASSWORD)
        .envs(settings.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(place.work())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line.contains("server listening on"));
    assert!(ready, "the server did not start");
    child
}
