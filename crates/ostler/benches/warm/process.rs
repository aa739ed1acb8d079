//! Other processes: running one to its end, and what those take that are there.

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::figures::{Clock, PROMPT, Took};

/// The variable that marks the processes of a gateway.
pub(crate) const MARK: &str = "OSTLER_BENCH_GATEWAY";

/// Runs a command to its end with this input; returns how long it took.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> f64 {
    let clock = Clock::start();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A program that does not read its input closes it; that is not our trouble.
    child.stdin.take().unwrap().write_all(input).ok();
    let status = child.wait().unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
    clock.end().total
}

/// Runs a command for a turn to its end, with the prompt as its input; a line
/// with this mark has text in it.
pub(crate) fn run_turn(command: &mut Command, mark: &str) -> Took {
    let mut clock = Clock::start();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(PROMPT.as_bytes()).ok();
    let mut is_answered = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if line.unwrap().contains(mark) {
            clock.text();
            is_answered = true;
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success() && is_answered, "{command:?} ended with {status}");
    clock.end()
}

/// A program that is told and tells things, a line each. The end of its input
/// ends it.
pub(crate) struct Talker {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talker {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdin, lines }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn hear(&mut self) -> String {
        self.lines.next().expect("the turn ends before the process").unwrap()
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        self.stdin = None;
        self.child.wait().ok();
    }
}

/// A process that was found.
pub(crate) struct Found {
    pub(crate) pid: String,
    pub(crate) kilobytes: u64,
}

/// Finds the processes that have a variable like this, by the start of
/// `NAME=value`, scripted agents apart.
pub(crate) fn with_variable(start: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| {
            String::from_utf8_lossy(&fs::read(entry.path().join(name)).unwrap_or_default())
                .into_owned()
        };
        let is_it = read("environ").split('\0').any(|one| one.starts_with(start));
        let is_agent = read("cmdline").split('\0').nth(1) == Some("scripted");
        if is_it && !is_agent {
            let status = read("status");
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kilobytes =
                line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            let pid = entry.file_name().to_string_lossy().into_owned();
            found.push(Found { pid, kilobytes: kilobytes.unwrap_or(0) });
        }
    }
    found
}
