//! How Claude is started and read: recordings, command lines, traps, properties.

mod launch;
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
        play::Recording,
        testing::{
            any_value, argv, end_of, events, exit, fixture, launch_of, sessions, stdout_line,
        },
    },
    event::{EventBody, Status, Stream},
    memo::Memo,
    request::{Format, Open, Options},
};

const RUN_DIR: &str = "/run/turn";

fn options() -> Options {
    Options::new("/workspace")
}

fn with_format(format: Format) -> Options {
    Options { format, ..options() }
}

fn resume(id: &str) -> Open {
    Open::Resume(Box::new(Memo::of_id("claude", id)))
}

fn recording(name: &str) -> Recording {
    Recording::read(&fixture(&format!("claude/{name}")))
}

fn a_launch<'a>(options: &'a Options, open: &'a Open, prompt: &'a str) -> Launch<'a> {
    Launch { run_dir: Path::new(RUN_DIR), ..launch_of(&SPEC, options, open, prompt) }
}

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&a_launch(options, open, prompt)).unwrap()
}

fn stdin(line: &CommandLine) -> &str {
    match &line.stdin {
        Stdin::Null | Stdin::Open => "",
        Stdin::Bytes(bytes) => std::str::from_utf8(bytes).unwrap(),
    }
}

/// Feeds lines of standard output, then the exit.
fn read<'a>(
    options: &Options,
    open: &Open,
    lines: impl IntoIterator<Item = &'a [u8]>,
    exit: &Exit,
) -> Vec<Action> {
    let mut dialect = (SPEC.dialect)(&a_launch(options, open, "hi"));
    let mut out = Vec::new();
    let now = Timestamp::UNIX_EPOCH;
    for bytes in lines {
        dialect.step(now, stdout_line(bytes), &mut out);
    }
    dialect.step(now, Input::Exited(exit), &mut out);
    out
}

/// Reads a text in a new session with default options and a good exit.
fn read_text(text: &str) -> Vec<Action> {
    read(&options(), &Open::New, text.lines().map(str::as_bytes), &exit(0, ""))
}

fn failure_kind(actions: &[Action]) -> Option<&'static str> {
    end_of(actions).failure.as_ref().map(|f| f.kind.code())
}

/// Returns the text that a reader of the events is left with.
fn shown(actions: &[Action]) -> String {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    for event in events(actions) {
        if let EventBody::Output { text, block } = event {
            match blocks.iter_mut().find(|(name, _)| name == block) {
                Some((_, known)) => known.push_str(text),
                None => blocks.push((block, text.clone())),
            }
        }
        if let EventBody::Status(Status::Retracted { block }) = event {
            blocks.retain(|(name, _)| name != block);
        }
    }
    blocks.into_iter().map(|(_, text)| text).collect()
}
