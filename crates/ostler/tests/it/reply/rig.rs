//! A gateway whose agent writes down how it was called, and somebody who writes
//! to it and takes its replies.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use serde_json::{Value, json};

use crate::{
    client::Client,
    support::{LIMIT, Place, until},
};

/// Plays any agent: each call has a folder with its arguments, its input and its
/// place. What it prints is what Claude prints, or plain text if nobody asks for
/// more. A prompt with `hang-here` in it is never answered.
const AGENT: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.0 (Claude Code)'; exit; fi
number=0
while ! mkdir "@calls/$number" 2>/dev/null; do number=$((number + 1)); done
call="@calls/$number"
{ printf '%s\0' "$(basename "$0")"; for word in "$@"; do printf '%s\0' "$word"; done; } > "$call/argv"
pwd > "$call/cwd"
cat > "$call/stdin"
session="11111111-1111-4111-8111-00000000000$number" format=text before=
for word in "$@"; do
    case $before in --session-id | --session | --resume) session=$word ;; esac
    case $word in json | stream-json) format=json ;; esac
    before=$word
done
: > "$call/done"
if grep -q hang-here "$call/stdin"; then exec sleep 1000; fi
if [ $format = text ]; then echo "answer $number"; exit; fi
printf '{"type":"result","subtype":"success","is_error":false,"result":"answer %s","text":"answer %s","session_id":"%s"}\n' "$number" "$number" "$session"
"#;

/// A gateway and everything around it. One that is forgotten is killed.
pub(super) struct Rig {
    pub(super) place: Place,
    child: Child,
    replies: mpsc::Receiver<Value>,
    /// Where replies go.
    pub(super) url: String,
}

/// How the agent was called.
#[derive(Debug)]
pub(super) struct Call {
    /// The name of the program and its arguments.
    pub(super) argv: Vec<String>,
    pub(super) stdin: String,
    pub(super) cwd: PathBuf,
}

impl Rig {
    /// Starts a gateway with this block `inbound.reply`.
    pub(super) fn new(reply: &Value) -> Self {
        Self::with(&json!({ "inbound": { "reply": reply } }), &[])
    }

    /// Starts a gateway with this configuration and these variables.
    pub(super) fn with(config: &Value, variables: &[(&str, &str)]) -> Self {
        Self::start(Place::new(), config, variables)
    }

    /// Starts a gateway in a place.
    pub(super) fn start(place: Place, config: &Value, variables: &[(&str, &str)]) -> Self {
        let mut command = serve(&place, config, variables);
        command.stdout(Stdio::null()).stderr(File::create(place.path("log")).unwrap());
        let mut child = command.spawn().unwrap();
        let socket = place.path("data/daemon.sock");
        until("the gateway says hello", || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", fs::read_to_string(place.path("log")).unwrap());
            Client::connect(&socket).ok()
        });
        let (url, replies) = receive();
        Self { place, child, replies, url }
    }

    pub(super) fn client(&self) -> Client {
        Client::connect(&self.place.path("data/daemon.sock")).unwrap()
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.place.path("log")).unwrap()
    }

    /// Sends a line that has this text and these fields beside it; it must be
    /// accepted. Returns the job.
    pub(super) fn send(&self, text: &str, more: &Value) -> String {
        let answer = self.try_send(text, more);
        assert_eq!(answer["type"], "accepted", "{answer}");
        answer["job"].as_str().unwrap().to_owned()
    }

    /// The same, whatever is said to it.
    pub(super) fn try_send(&self, text: &str, more: &Value) -> Value {
        let conversation = format!("webhook:{}", self.url);
        let mut line = json!({
            "type": "send", "conversation": conversation, "sender": "ann", "text": text,
            "cold": true,
        });
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        self.client().ask(&line).unwrap()
    }

    /// Follows a job to its end.
    pub(super) fn end_of(&self, job: &str) -> Value {
        let mut client = self.client();
        client.tell(&json!({ "type": "follow", "job": job })).unwrap();
        loop {
            let line = client.hear().unwrap();
            if line["type"] == "ended" {
                return line;
            }
        }
    }

    /// Sends a text and returns how the agent was called for it.
    pub(super) fn ask(&self, text: &str) -> Call {
        self.ask_with(text, &json!({}))
    }

    /// The same, with these fields.
    pub(super) fn ask_with(&self, text: &str, more: &Value) -> Call {
        let n_before = self.n_calls();
        let job = self.send(text, more);
        let ended = self.end_of(&job);
        assert_eq!(ended["state"], "done", "{ended}");
        assert_eq!(self.n_calls(), n_before + 1, "the agent was called once");
        self.call(n_before)
    }

    pub(super) fn n_calls(&self) -> usize {
        fs::read_dir(self.place.path("calls")).unwrap().count()
    }

    /// Returns a call, by its number, once the agent has written it down.
    pub(super) fn call(&self, number: usize) -> Call {
        let folder = self.place.path("calls").join(number.to_string());
        until("the agent was called", || folder.join("done").exists().then_some(()));
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let argv = read("argv").split_terminator('\0').map(str::to_owned).collect();
        Call { argv, stdin: read("stdin"), cwd: read("cwd").trim_end().into() }
    }

    /// Returns the next reply that came.
    pub(super) fn reply(&self) -> Value {
        self.replies.recv_timeout(LIMIT).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Call {
    /// Returns what the agent was asked: on standard input, as a line of JSON or
    /// as it is; else as the last argument.
    pub(super) fn prompt(&self) -> String {
        let message: Option<Value> = serde_json::from_str(&self.stdin).ok();
        let content = message.as_ref().and_then(|message| message["message"]["content"].as_str());
        match content {
            Some(content) => content.to_owned(),
            None if self.stdin.is_empty() => self.argv.last().unwrap().clone(),
            None => self.stdin.clone(),
        }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.argv.iter().any(|own| own == word)
    }

    /// Returns the word behind a flag.
    pub(super) fn value_of(&self, flag: &str) -> Option<&str> {
        let at = self.argv.iter().position(|word| word == flag)?;
        self.argv.get(at + 1).map(String::as_str)
    }
}

/// Returns `ostler serve`, not started yet: with an agent of every name, and with
/// this configuration, if there is any.
pub(super) fn serve(place: &Place, config: &Value, variables: &[(&str, &str)]) -> Command {
    fs::create_dir_all(place.path("calls")).unwrap();
    let script = AGENT.replace("@calls", place.path("calls").to_str().unwrap());
    for name in ["claude", "codex", "gemini", "opencode", "pi", "wrapper"] {
        place.program(name, &script);
    }
    let mut command = if config.is_null() {
        place.ostler(&["serve", "--listen", "127.0.0.1:0"])
    } else {
        let mut config = config.clone();
        config["gateway"]["listen"] = json!("127.0.0.1:0");
        fs::write(place.path("ostler.json5"), config.to_string()).unwrap();
        place.ostler(&["serve", "--config", place.path("ostler.json5").to_str().unwrap()])
    };
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", place.path("bin").display()));
    command.envs(variables.iter().copied());
    command
}

/// Takes replies for as long as the process lives; returns where they go.
fn receive() -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/replies", listener.local_addr().unwrap());
    let (sender, replies) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || while take(&stream, &sender).is_some() {});
        }
    });
    (url, replies)
}

/// Takes one reply; none if the connection has ended.
fn take(mut stream: &TcpStream, sender: &mpsc::Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n_read| *n_read > 0)?;
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    sender.send(serde_json::from_slice(&body).unwrap()).ok()?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}
