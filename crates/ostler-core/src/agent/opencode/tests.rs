//! OpenCode against what the real CLI printed, and against its known traps.

mod launch;
mod properties;
mod recordings;
mod settings;
mod stderr;
mod traps;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::SPEC;
use crate::{
    agent::{
        Action, CommandLine, Exit, Input, Stdin,
        play::{self, Recording},
        testing::{
            self, any_lines, argv, end_of, ended_once, events, exit, failure_of, has_stopped,
            launch_of, play_any, play_text, sessions, statuses,
        },
    },
    event::{EventBody, Status, Stream},
    memo::Memo,
    request::{Format, Open, Options, Permissions},
};

const SESSION: &str = "ses_e1f6fd3bbffencjjJIvMuWLEcd";

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&launch_of(&SPEC, options, open, prompt)).unwrap()
}

fn variable(line: &CommandLine, name: &str) -> Option<String> {
    testing::variable(line, name).map(str::to_owned)
}

fn stdin(line: &CommandLine) -> &str {
    match &line.stdin {
        Stdin::Null | Stdin::Open => "",
        Stdin::Bytes(bytes) => std::str::from_utf8(bytes).unwrap(),
    }
}

fn file(line: &CommandLine, path: &str) -> Option<String> {
    let found = line.files.iter().find(|(known, _)| known == Path::new(path));
    found.map(|(_, content)| String::from_utf8(content.clone()).unwrap())
}

fn bypass(format: Format) -> Options {
    Options { format, permissions: Permissions::Bypass, ..Options::new("/w") }
}

fn resume(id: &str) -> Open {
    Open::Resume(Box::new(Memo::of_id("opencode", id)))
}

fn fixture(case: &str) -> PathBuf {
    testing::fixture(&format!("opencode/1.18.33/{case}"))
}

/// Plays a recording as if it had been made in a new session.
fn play_case(case: &str) -> Vec<Action> {
    ended_once(play::play(&SPEC, &Recording::read(&fixture(case))))
}

/// Plays lines of standard output, then the exit with its standard error.
fn play_lines(stdout: &str, exit: Exit) -> Vec<Action> {
    play_with(&Options::new("/w"), stdout, exit)
}

fn play_with(options: &Options, stdout: &str, exit: Exit) -> Vec<Action> {
    play_text(&SPEC, options, &Open::New, stdout, exit)
}

fn outputs(actions: &[Action]) -> Vec<&str> {
    testing::outputs(actions).into_iter().map(|(_, text)| text).collect()
}

/// Returns the text that a reader of the events is left with.
fn shown(actions: &[Action]) -> Vec<&str> {
    let mut blocks: Vec<(&str, &str)> = Vec::new();
    for event in events(actions) {
        if let EventBody::Output { text, block } = event {
            blocks.push((block, text));
        }
        if let EventBody::Status(Status::Retracted { block }) = event {
            blocks.retain(|(name, _)| name != block);
        }
    }
    blocks.into_iter().map(|(_, text)| text).collect()
}

/// A dialect that is fed line by line.
struct Feed {
    dialect: Box<dyn crate::agent::Dialect>,
    out: Vec<Action>,
}

impl Feed {
    fn new(options: &Options) -> Self {
        let dialect = (SPEC.dialect)(&launch_of(&SPEC, options, &Open::New, "hi"));
        Self { dialect, out: Vec::new() }
    }

    fn line(&mut self, second: i64, from: Stream, line: &str) -> &mut Self {
        let input = Input::Line { from, bytes: line.as_bytes(), cut: false };
        self.dialect.step(Timestamp::from_second(second).unwrap(), input, &mut self.out);
        self
    }

    fn out(&mut self, second: i64, line: &str) -> &mut Self {
        self.line(second, Stream::Stdout, line)
    }

    fn err(&mut self, second: i64, line: &str) -> &mut Self {
        self.line(second, Stream::Stderr, line)
    }
}
