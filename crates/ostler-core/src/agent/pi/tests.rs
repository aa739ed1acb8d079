//! Pi against what the real CLI printed, and against its known traps.

mod failures;
mod launch;
mod properties;
mod recordings;
mod traps;
mod warm;

use super::SPEC;
use crate::{
    agent::{
        Action, CommandLine, Exit, Input, Launch,
        play::{self, Recording},
        testing::{
            any_lines, any_value, argv, at_second, end_of, events, exit, failure_of, fixture,
            has_stopped, launch_of, opened, outputs, play_any, play_text, sessions, stdout_line,
            variable,
        },
    },
    event::{EventBody, Stream},
    memo::Memo,
    request::{Open, Options},
};

const SESSION: &str = "01a1e089-4963-74e8-abb7-2fac386518c1";

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&launch_of(&SPEC, options, open, prompt)).unwrap()
}

fn resume(id: &str) -> Open {
    Open::Resume(Box::new(Memo::of_id("pi", id)))
}

/// Plays lines of standard output and an exit in a new session.
fn play_new(stdout: &str, exit: Exit) -> Vec<Action> {
    play_with(&Options::new("/workspace"), &Open::New, stdout, exit)
}

/// Plays lines of standard output and an exit.
fn play_with(options: &Options, open: &Open, stdout: &str, exit: Exit) -> Vec<Action> {
    play_text(&SPEC, options, open, stdout, exit)
}

/// Reads a recording of this version.
fn recorded(name: &str) -> Recording {
    Recording::read(&fixture(&format!("pi/{name}")))
}
