//! The scripted agent as a process: what a pipe, a signal and an orphan really
//! do, which no function call can show.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests start the program under test, and nothing else does it for them"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions that its tests share"
)]

mod agent;
mod fault;
mod script;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_scripted-agent");

/// A folder with a script in it.
struct Scene {
    folder: TempDir,
}

struct Played {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    status: ExitStatus,
}

impl Scene {
    fn new(steps: Value) -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(scene.path("script.json"), steps.to_string()).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("--script").arg(self.path("script.json"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self) -> Child {
        self.command().spawn().unwrap()
    }

    fn play(&self) -> Played {
        play(self.command(), "")
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn pid(&self, name: &str) -> u32 {
        std::fs::read_to_string(self.path(name)).unwrap().parse().unwrap()
    }
}

impl Played {
    fn stdout(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    fn stderr(&self) -> &str {
        std::str::from_utf8(&self.stderr).unwrap()
    }

    fn code(&self) -> Option<i32> {
        self.status.code()
    }

    fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    fn lines(&self) -> Vec<Value> {
        self.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs a command to its end with `stdin` written and closed.
fn play(mut command: Command, stdin: &str) -> Played {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A script need not read what it is given.
    drop(child.stdin.take().unwrap().write_all(stdin.as_bytes()));
    let output = child.wait_with_output().unwrap();
    Played { stdout: output.stdout, stderr: output.stderr, status: output.status }
}

fn send(signal: &str, pid: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status();
    assert!(status.unwrap().success());
}

/// The fields of `/proc/<pid>/stat` after the name: state, parent, group,
/// session…
fn stat(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    fields.split(' ').map(str::to_owned).collect()
}

fn touch(path: &Path) {
    std::fs::write(path, "").unwrap();
}
