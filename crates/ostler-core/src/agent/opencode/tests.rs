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
        Action, CommandLine, Exit, Input, Launch, Stdin, TurnEnd,
        play::{self, Recording},
    },
    event::{EventBody, Mode, Status, Stream},
    memo::Memo,
    request::{Format, Open, Options, Permissions},
};

const SESSION: &str = "ses_e1f6fd3bbffencjjJIvMuWLEcd";

fn launch_of<'a>(options: &'a Options, open: &'a Open, prompt: &'a str) -> Launch<'a> {
    Launch { mode: Mode::OneShot, options, open, prompt, version: None, run_dir: Path::new("/run") }
}

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&launch_of(options, open, prompt)).unwrap()
}

fn argv(line: &CommandLine) -> Vec<&str> {
    line.args.iter().map(|arg| arg.to_str().unwrap()).collect()
}

fn variable(line: &CommandLine, name: &str) -> Option<String> {
    let found = line.env.iter().rfind(|(known, _)| known == name);
    found.map(|(_, value)| value.to_str().unwrap().to_owned())
}

fn stdin(line: &CommandLine) -> &str {
    match &line.stdin {
        Stdin::Null => "",
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

fn exit(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), signal: None, stderr: stderr.to_owned() }
}

fn fixture(case: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/opencode/1.18.33");
    folder.join(format!("{case}.stdout"))
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
    let recording = Recording {
        stdout: stdout.as_bytes().to_vec(),
        stderr: exit.stderr.clone().into_bytes(),
        exit,
    };
    ended_once(play::play_with(&SPEC, &recording, options, &Open::New))
}

fn ended_once(actions: Vec<Action>) -> Vec<Action> {
    assert_eq!(play::n_ends(&actions), 1, "{}", play::transcript(&actions));
    actions
}

fn end_of(actions: &[Action]) -> &TurnEnd {
    let end = actions.iter().find_map(|action| match action {
        Action::EndTurn { end, .. } => Some(end.as_ref()),
        Action::Stop | Action::Arm { .. } | Action::Opened { .. } | Action::Emit { .. } => None,
    });
    end.unwrap()
}

fn failure_of(actions: &[Action]) -> (&str, &str) {
    let failure = end_of(actions).failure.as_ref().unwrap();
    (failure.kind.code(), &failure.message)
}

fn opened(actions: &[Action]) -> Vec<&str> {
    let opened = actions.iter().filter_map(|action| match action {
        Action::Opened { id, .. } => Some(id.as_str()),
        Action::Stop | Action::Arm { .. } | Action::EndTurn { .. } | Action::Emit { .. } => None,
    });
    opened.collect()
}

fn events(actions: &[Action]) -> Vec<&EventBody> {
    let events = actions.iter().filter_map(|action| match action {
        Action::Emit { event, .. } => Some(event),
        Action::Stop | Action::Arm { .. } | Action::EndTurn { .. } | Action::Opened { .. } => None,
    });
    events.collect()
}

fn statuses<'a>(actions: &'a [Action], code: &str) -> Vec<&'a str> {
    let texts = events(actions).into_iter().filter_map(|event| {
        let EventBody::Status(status) = event else {
            return None;
        };
        Some(status.code_and_text())
    });
    texts.filter(|(known, _)| *known == code).map(|(_, text)| text).collect()
}

fn outputs(actions: &[Action]) -> Vec<&str> {
    let texts = events(actions).into_iter().filter_map(|event| {
        let EventBody::Output { text, .. } = event else {
            return None;
        };
        Some(text.as_str())
    });
    texts.collect()
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

fn has_stopped(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Stop))
}

/// A dialect that is fed line by line.
struct Feed {
    dialect: Box<dyn crate::agent::Dialect>,
    out: Vec<Action>,
}

impl Feed {
    fn new(options: &Options) -> Self {
        let dialect = (SPEC.dialect)(&launch_of(options, &Open::New, "hi"));
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
