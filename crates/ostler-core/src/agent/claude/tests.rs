//! How Claude is started and read: recordings, command lines, traps, properties.

mod launch;
mod properties;
mod recordings;
mod traps;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::SPEC;
use crate::{
    agent::{Action, CommandLine, Exit, Input, Launch, Stdin, TurnEnd, play::Recording},
    event::{EventBody, Mode, Status, Stream},
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

fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude");
    folder.join(format!("{name}.stdout"))
}

fn recording(name: &str) -> Recording {
    Recording::read(&fixture(name))
}

fn a_launch<'a>(options: &'a Options, open: &'a Open, prompt: &'a str) -> Launch<'a> {
    Launch {
        mode: Mode::OneShot,
        options,
        open,
        prompt,
        version: None,
        run_dir: Path::new(RUN_DIR),
    }
}

fn command_line(options: &Options, open: &Open, prompt: &str) -> CommandLine {
    (SPEC.launch)(&a_launch(options, open, prompt)).unwrap()
}

fn argv(line: &CommandLine) -> Vec<&str> {
    let args = line.args.iter();
    args.map(|arg| arg.to_str().unwrap()).collect()
}

fn stdin(line: &CommandLine) -> &str {
    match &line.stdin {
        Stdin::Null => "",
        Stdin::Bytes(bytes) => std::str::from_utf8(bytes).unwrap(),
    }
}

fn exit(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), signal: None, stderr: stderr.to_owned() }
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
        let from = Stream::Stdout;
        let cut = false;
        dialect.step(now, Input::Line { from, bytes, cut }, &mut out);
    }
    dialect.step(now, Input::Exited(exit), &mut out);
    out
}

/// Reads a text in a new session with default options and a good exit.
fn read_text(text: &str) -> Vec<Action> {
    read(&options(), &Open::New, text.lines().map(str::as_bytes), &exit(0, ""))
}

fn end(actions: &[Action]) -> &TurnEnd {
    let mut ends = actions.iter().filter_map(|action| match action {
        Action::EndTurn { end, .. } => Some(end.as_ref()),
        Action::Stop | Action::Arm { .. } | Action::Opened { .. } | Action::Emit { .. } => None,
    });
    let end = ends.next().expect("the turn ends");
    assert!(ends.next().is_none(), "the turn ends once");
    end
}

fn failure_kind(actions: &[Action]) -> Option<&'static str> {
    end(actions).failure.as_ref().map(|f| f.kind.code())
}

fn sessions(actions: &[Action]) -> Vec<&str> {
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
