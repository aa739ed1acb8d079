//! Pi against what the real CLI printed, and against its known traps.

mod failures;
mod launch;
mod properties;
mod recordings;
mod traps;

use std::path::Path;

use jiff::Timestamp;

use super::SPEC;
use crate::{
    agent::{
        Action, CommandLine, Exit, Input, Launch, TurnEnd,
        play::{self, Recording},
    },
    event::{EventBody, Mode, Stream},
    memo::Memo,
    request::{Open, Options},
};

const SESSION: &str = "01a1e089-4963-74e8-abb7-2fac386518c1";

fn launch_of<'a>(options: &'a Options, open: &'a Open, prompt: &'a str) -> Launch<'a> {
    Launch { mode: Mode::OneShot, options, open, prompt, version: None, run_dir: Path::new("/run") }
}

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&launch_of(options, open, prompt)).unwrap()
}

fn texts(line: &CommandLine) -> Vec<&str> {
    line.args.iter().map(|arg| arg.to_str().unwrap()).collect()
}

fn resume(id: &str) -> Open {
    Open::Resume(Box::new(Memo::of_id("pi", id)))
}

fn exit(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), signal: None, stderr: stderr.to_owned() }
}

fn recording(stdout: &str, exit: Exit) -> Recording {
    Recording { stdout: stdout.as_bytes().to_vec(), stderr: exit.stderr.clone().into_bytes(), exit }
}

/// Plays lines of standard output and an exit in a new session.
fn play_new(stdout: &str, exit: Exit) -> Vec<Action> {
    play_with(&Options::new("/workspace"), &Open::New, stdout, exit)
}

/// Plays lines of standard output and an exit.
fn play_with(options: &Options, open: &Open, stdout: &str, exit: Exit) -> Vec<Action> {
    let actions = play::play_with(&SPEC, &recording(stdout, exit), options, open);
    assert_eq!(play::n_ends(&actions), 1, "{}", play::transcript(&actions));
    actions
}

fn end_of(actions: &[Action]) -> &TurnEnd {
    actions
        .iter()
        .find_map(|action| {
            let Action::EndTurn { end, .. } = action else {
                return None;
            };
            Some(&**end)
        })
        .unwrap()
}

fn failure_of(actions: &[Action]) -> (&str, &str) {
    let failure = end_of(actions).failure.as_ref().unwrap();
    (failure.kind.code(), &failure.message)
}

fn opened(actions: &[Action]) -> Option<&str> {
    actions.iter().find_map(|action| {
        let Action::Opened { id, .. } = action else {
            return None;
        };
        Some(id.as_str())
    })
}

fn has_stopped(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Stop))
}

fn events(actions: &[Action]) -> Vec<&EventBody> {
    actions
        .iter()
        .filter_map(|action| {
            let Action::Emit { event, .. } = action else {
                return None;
            };
            Some(event)
        })
        .collect()
}

/// The blocks and texts that were told as output.
fn outputs(actions: &[Action]) -> Vec<(&str, &str)> {
    events(actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::Output { block, text } = event else {
                return None;
            };
            Some((block.as_str(), text.as_str()))
        })
        .collect()
}

fn stdout_line(bytes: &[u8]) -> Input<'_> {
    Input::Line { from: Stream::Stdout, bytes, cut: false }
}

fn at_second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Reads a recording of this version.
fn recorded(name: &str) -> Recording {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pi");
    Recording::read(&fixtures.join(format!("{name}.stdout")))
}
