//! Gemini against what the real CLI printed, and against its known traps.

mod launch;
mod prompts;
mod properties;
mod recordings;
mod traps;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::SPEC;
use crate::{
    agent::{
        Action, CommandLine, Exit, Input, Launch, Stdin, TurnEnd,
        play::{self, Recording},
    },
    event::{EventBody, Mode, Stream},
    memo::Memo,
    request::{Format, Open, Options, Permissions},
};

const SESSION: &str = "11111111-2222-4333-8444-555555555555";
const RUN_DIR: &str = "/run/turn";

fn options() -> Options {
    Options::new("/workspace")
}

fn bypass() -> Options {
    Options { permissions: Permissions::Bypass, ..options() }
}

fn literal() -> Options {
    Options { format: Format::Json, ..bypass() }
}

fn resume(id: &str) -> Open {
    Open::Resume(Box::new(Memo::of_id("gemini", id)))
}

fn launch_of<'a>(options: &'a Options, open: &'a Open, prompt: &'a str) -> Launch<'a> {
    let run_dir = Path::new(RUN_DIR);
    Launch { mode: Mode::OneShot, options, open, prompt, version: None, run_dir }
}

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&launch_of(options, open, prompt)).unwrap()
}

fn argv(line: &CommandLine) -> Vec<&str> {
    line.args.iter().map(|arg| arg.to_str().unwrap()).collect()
}

fn stdin(line: &CommandLine) -> Option<&str> {
    match &line.stdin {
        Stdin::Null => None,
        Stdin::Bytes(bytes) => Some(std::str::from_utf8(bytes).unwrap()),
    }
}

fn variable<'a>(line: &'a CommandLine, name: &str) -> Option<&'a str> {
    let (_, value) = line.env.iter().find(|(known, _)| known == name)?;
    value.to_str()
}

fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/gemini/0.61.0");
    folder.join(format!("{name}.stdout"))
}

/// Plays a recording with the options that it was made with.
fn recorded(name: &str) -> Vec<Action> {
    let path = fixture(name);
    let (options, open) = recordings::situation(&path);
    ended_once(play::play_with(&SPEC, &Recording::read(&path), &options, &open))
}

fn exit(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), signal: None, stderr: stderr.to_owned() }
}

/// Plays lines of standard output, and the exit with its standard error.
fn play(options: &Options, stdout: &str, exit: Exit) -> Vec<Action> {
    let stderr = exit.stderr.clone().into_bytes();
    let recording = Recording { stdout: stdout.as_bytes().to_vec(), stderr, exit };
    ended_once(play::play_with(&SPEC, &recording, options, &Open::New))
}

fn play_new(stdout: &str, exit: Exit) -> Vec<Action> {
    play(&options(), stdout, exit)
}

fn ended_once(actions: Vec<Action>) -> Vec<Action> {
    assert_eq!(play::n_ends(&actions), 1, "{}", play::transcript(&actions));
    actions
}

fn end_of(actions: &[Action]) -> &TurnEnd {
    let end = actions.iter().find_map(|action| match action {
        Action::EndTurn { end, .. } => Some(&**end),
        Action::Stop | Action::Arm { .. } | Action::Opened { .. } | Action::Emit { .. } => None,
    });
    end.unwrap()
}

fn failure_of(actions: &[Action]) -> (&str, &str) {
    let failure = end_of(actions).failure.as_ref().unwrap();
    (failure.kind.code(), &failure.message)
}

fn opened(actions: &[Action]) -> Option<&str> {
    actions.iter().find_map(|action| match action {
        Action::Opened { id, .. } => Some(id.as_str()),
        Action::Stop | Action::Arm { .. } | Action::EndTurn { .. } | Action::Emit { .. } => None,
    })
}

fn events(actions: &[Action]) -> Vec<&EventBody> {
    let events = actions.iter().filter_map(|action| match action {
        Action::Emit { event, .. } => Some(event),
        Action::Stop | Action::Arm { .. } | Action::EndTurn { .. } | Action::Opened { .. } => None,
    });
    events.collect()
}

/// The text that was told as output.
fn shown(actions: &[Action]) -> String {
    let texts = events(actions).into_iter().filter_map(|event| {
        let EventBody::Output { text, .. } = event else { return None };
        Some(text.as_str())
    });
    texts.collect()
}

fn statuses(actions: &[Action], code: &str) -> Vec<String> {
    let statuses = events(actions).into_iter().filter_map(|event| {
        let EventBody::Status(status) = event else { return None };
        Some(status.code_and_text())
    });
    statuses.filter(|(known, _)| *known == code).map(|(_, text)| text.to_owned()).collect()
}

fn unknown(actions: &[Action]) -> Vec<&str> {
    let unknown = events(actions).into_iter().filter_map(|event| {
        let EventBody::Unknown { text, .. } = event else { return None };
        Some(text.as_str())
    });
    unknown.collect()
}
