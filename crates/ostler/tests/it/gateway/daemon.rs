//! A gateway that a test starts, asks and stops.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    client::Client,
    support::{Outcome, Place, signal, until},
};

/// A gateway that runs. One that is forgotten is killed.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
    socket: PathBuf,
}

/// Writes the configuration: an agent that is played and does everything, and
/// these settings in addition.
pub(crate) fn configure(place: &Place, settings: &Value) {
    let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
    let agent = place.program(
        "played-claude",
        &format!("#!/bin/sh\nexec '{ostler}' scripted --as claude -- \"$@\"\n"),
    );
    let mut all = json!({
        "gateway": { "listen": "127.0.0.1:0" },
        "agent": { "default": "claude", "path": agent, "permissions": "bypass" },
        "retry": { "max": 0 },
    });
    for (section, keys) in settings.as_object().unwrap() {
        let Some(keys) = keys.as_object() else {
            all[section] = keys.clone();
            continue;
        };
        for (key, value) in keys {
            all[section][key] = value.clone();
        }
    }
    fs::write(place.path("ostler.json5"), all.to_string()).unwrap();
}

/// Returns `ostler serve` with the configuration of the place, not started yet.
pub(crate) fn serve(place: &Place) -> Command {
    let config = place.path("ostler.json5");
    place.ostler(&["serve", "--config", config.to_str().unwrap()])
}

/// Runs a gateway that is expected to end by itself.
pub(crate) fn end_of(command: Command) -> Outcome {
    Outcome::of_input(command, None)
}

impl Daemon {
    /// Starts a gateway with these settings.
    pub(crate) fn start(place: &Place, settings: &Value) -> Self {
        configure(place, settings);
        Self::start_by(place, serve(place), |_| place.path("data/daemon.sock"))
    }

    /// Starts the configured gateway once more.
    pub(crate) fn start_again(place: &Place) -> Self {
        Self::start_by(place, serve(place), |_| place.path("data/daemon.sock"))
    }

    /// Starts a gateway by a command; where its socket is can depend on its process.
    pub(crate) fn start_by(
        place: &Place,
        mut command: Command,
        socket: impl FnOnce(u32) -> PathBuf,
    ) -> Self {
        let log = place.path("log");
        command.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let child = command.spawn().unwrap();
        let socket = socket(child.id());
        let mut daemon = Self { child, log, socket };
        let pid = u64::from(daemon.child.id());
        until("the gateway says hello", || {
            let ended = daemon.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended instead: {}", daemon.log());
            Client::connect(&daemon.socket).ok().filter(|client| client.pid == pid)
        });
        daemon
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    /// Waits until so many turns run.
    pub(crate) fn wait_until_running(&self, count: u64) {
        let mut client = self.client();
        until("turns run", || {
            let standing = client.ask(&json!({ "type": "status" })).unwrap();
            (standing["turns_running"] == count).then_some(())
        });
    }

    /// Returns what it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits until it has ended and returns its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        until("the gateway has ended", || self.child.try_wait().unwrap()).code()
    }

    /// Stops it as an operator would, and returns its exit code.
    pub(crate) fn stop(self) -> Option<i32> {
        self.signal("TERM");
        self.wait()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends a text to a local conversation and returns its job, which must be accepted.
pub(crate) fn send(client: &mut Client, conversation: &str, text: &str) -> String {
    let answer = try_send(client, conversation, text);
    assert_eq!(answer["type"], "accepted", "{answer}");
    answer["job"].as_str().unwrap().to_owned()
}

/// Sends a text to a local conversation and returns what is said to it.
pub(crate) fn try_send(client: &mut Client, conversation: &str, text: &str) -> Value {
    let conversation = format!("local:{conversation}");
    client.ask(&json!({ "type": "send", "conversation": conversation, "text": text })).unwrap()
}

/// Follows a job to its end and returns that.
pub(crate) fn ended(client: &mut Client, job: &str) -> Value {
    follow_until(client, job, |line| line["type"] == "ended")
}

/// Follows a job and returns the first line that is the one.
pub(crate) fn follow_until(
    client: &mut Client,
    job: &str,
    is_it: impl Fn(&Value) -> bool,
) -> Value {
    client.tell(&json!({ "type": "follow", "job": job })).unwrap();
    loop {
        let line = client.hear().unwrap();
        if is_it(&line) {
            return line;
        }
        assert_eq!(line["type"], "event", "{line}");
    }
}

/// Returns a place in the view that a process has of the files.
pub(crate) fn seen_by(pid: u32, path: &Path) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root{}", path.display()))
}

/// Returns a shell that runs this as the first process of a place with mounts of
/// its own, or says why there is none.
pub(crate) fn with_own_mounts(place: &Place, script: &str) -> Option<Command> {
    let can = Command::new("unshare").args(["--mount", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no mounts of one's own are to be had here");
        return None;
    }
    let ostler = serve(place);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", script, "sh"]);
    command.arg(ostler.get_program()).args(ostler.get_args()).env_clear();
    for (name, value) in ostler.get_envs() {
        command.env(name, value.unwrap());
    }
    command
        .env("DATA", place.path("data"))
        .current_dir(place.work())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Some(command)
}
