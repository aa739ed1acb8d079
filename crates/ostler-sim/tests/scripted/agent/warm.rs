//! The agents that are kept for many prompts, played: Claude, Codex, Gemini and Pi.

mod claude;
mod codex;
mod gemini;
mod pi;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};

use serde_json::Value;

use super::{Home, command};

/// A played agent, and both ends of the conversation with it.
struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Talk {
    fn start(agent: &str, home: &Home, args: &[&str]) -> Self {
        let mut command = command(agent, home.0.path(), args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn say(&mut self, line: &Value) {
        writeln!(self.stdin.as_ref().unwrap(), "{line}").unwrap();
    }

    /// Reads up to a line that this is true of; what is no JSON is null.
    fn until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it ended after {lines:#?}");
            lines.push(serde_json::from_str(&line).unwrap_or_default());
            if lines.last().is_some_and(&is_last) {
                return lines;
            }
        }
    }

    /// Closes its input and waits for its end.
    fn end(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }

    /// Waits for its end without closing its input.
    fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// The values of a field, in the order of their lines.
fn all<'a>(lines: &'a [Value], path: &str) -> Vec<&'a str> {
    lines.iter().filter_map(|line| line.pointer(path)?.as_str()).collect()
}
