//! Codex against what the real CLI printed, and against its known traps.

mod command_lines;
mod failures;
mod properties;
mod reading;
mod recordings;

use super::SPEC;
use crate::{
    agent::{
        Action, CommandLine, Exit, Input,
        play::{self, Recording},
        testing::{
            any_lines, any_value, argv, at_second, end_of, events, exit, failure_of, launch_of,
            opened, outputs, play_any, play_text, sessions, stdout_line,
        },
    },
    event::{EventBody, Stream},
    memo::Memo,
    request::{Open, Options},
};

const SESSION: &str = "01a1e088-9109-7530-b2ac-e9fa07582dea";

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&launch_of(&SPEC, options, open, prompt)).unwrap()
}

fn resume(id: &str) -> Open {
    Open::Resume(Box::new(Memo::of_id("codex", id)))
}

/// Plays lines of standard output and an exit in a new session.
fn play_new(stdout: &str, exit: Exit) -> Vec<Action> {
    play_in(&Open::New, stdout, exit)
}

/// Plays lines of standard output and an exit in a session.
fn play_in(open: &Open, stdout: &str, exit: Exit) -> Vec<Action> {
    play_text(&SPEC, &Options::new("/workspace"), open, stdout, exit)
}
