//! Gemini against what the real CLI printed, and against its known traps.

mod launch;
mod prompts;
mod properties;
mod recordings;
mod traps;
mod warm;

use std::path::Path;

use jiff::Timestamp;

use super::SPEC;
use crate::{
    agent::{
        Action, CommandLine, Exit, Input, Launch, Stdin,
        play::{self, Recording},
        testing::{
            self, any_lines, any_value, argv, end_of, ended_once, events, exit, failure_of,
            fixture, opened, outputs, play_any, play_text, sessions, statuses, variable,
        },
    },
    event::{EventBody, Stream},
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
    Launch { run_dir: Path::new(RUN_DIR), ..testing::launch_of(&SPEC, options, open, prompt) }
}

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&launch_of(options, open, prompt)).unwrap()
}

fn stdin(line: &CommandLine) -> Option<&str> {
    match &line.stdin {
        Stdin::Null | Stdin::Open => None,
        Stdin::Bytes(bytes) => Some(std::str::from_utf8(bytes).unwrap()),
    }
}

/// Plays a recording with the options that it was made with.
fn recorded(name: &str) -> Vec<Action> {
    let path = fixture(&format!("gemini/0.61.0/{name}"));
    let (options, open) = recordings::situation(&path);
    ended_once(play::play_with(&SPEC, &Recording::read(&path), &options, &open))
}

/// Plays lines of standard output, and the exit with its standard error.
fn play(options: &Options, stdout: &str, exit: Exit) -> Vec<Action> {
    play_text(&SPEC, options, &Open::New, stdout, exit)
}

fn play_new(stdout: &str, exit: Exit) -> Vec<Action> {
    play(&options(), stdout, exit)
}

/// The text that was told as output.
fn shown(actions: &[Action]) -> String {
    outputs(actions).into_iter().map(|(_, text)| text).collect()
}

fn unknown(actions: &[Action]) -> Vec<&str> {
    let unknown = events(actions).into_iter().filter_map(|event| {
        let EventBody::Unknown { text, .. } = event else { return None };
        Some(text.as_str())
    });
    unknown.collect()
}
