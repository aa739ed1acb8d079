//! Codex against what the real CLI printed, and against its known traps.

mod command_lines;
mod failures;
mod properties;
mod reading;
mod recordings;

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

const SESSION: &str = "01a1e088-9109-7530-b2ac-e9fa07582dea";

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
    Open::Resume(Box::new(Memo::of_id("codex", id)))
}

fn exit(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), signal: None, stderr: stderr.to_owned() }
}

fn recording(stdout: &str, exit: Exit) -> Recording {
    Recording { stdout: stdout.as_bytes().to_vec(), stderr: exit.stderr.clone().into_bytes(), exit }
}

/// Plays lines of standard output and an exit in a new session.
fn play_new(stdout: &str, exit: Exit) -> Vec<Action> {
    ended_once(play::play(&SPEC, &recording(stdout, exit)))
}

/// Plays lines of standard output and an exit in a session.
fn play_in(open: &Open, stdout: &str, exit: Exit) -> Vec<Action> {
    let options = Options::new("/workspace");
    ended_once(play::play_with(&SPEC, &recording(stdout, exit), &options, open))
}

fn ended_once(actions: Vec<Action>) -> Vec<Action> {
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
