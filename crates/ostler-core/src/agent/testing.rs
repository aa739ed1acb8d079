//! What the agents' tests share: launches, exits and lines to begin with, and
//! ways to look into what came of them. `play` is what happens in between.
//! Those of agents that are kept running share a conversation and its books.

mod ledger;
mod talk;

use std::{
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use proptest::{
    collection::{hash_map, vec},
    prelude::*,
};
use serde_json::Value;

pub(crate) use self::{
    ledger::Ledger,
    talk::{Talk, written},
};
use super::{
    Action, AgentSpec, CommandLine, Exit, Input, Launch, TurnEnd, TurnKey, WarmLaunch, play,
};
use crate::{
    event::{EventBody, Mode, Stream},
    request::{Open, Options},
};

/// A launch of one turn by a version that nobody asked for.
pub(crate) fn launch_of<'a>(
    spec: &'a AgentSpec,
    options: &'a Options,
    open: &'a Open,
    prompt: &'a str,
) -> Launch<'a> {
    let (mode, run_dir) = (Mode::OneShot, Path::new("/run"));
    Launch { spec, mode, options, open, prompt, version: None, run_dir }
}

/// A launch of a process that is kept, by a version that nobody asked for.
pub(crate) fn warm_launch_of<'a>(
    spec: &'a AgentSpec,
    options: &'a Options,
    open: &'a Open,
) -> WarmLaunch<'a> {
    let (run_dir, new_id) = (Path::new("/run"), "00000000-0000-4000-8000-000000000000");
    WarmLaunch { spec, options, open, new_id, version: None, variables: &[], run_dir }
}

/// Returns the arguments.
pub(crate) fn argv(line: &CommandLine) -> Vec<&str> {
    line.args.iter().map(|arg| arg.to_str().unwrap()).collect()
}

/// Returns the value of a variable; the last one counts.
pub(crate) fn variable<'a>(line: &'a CommandLine, name: &str) -> Option<&'a str> {
    let (_, value) = line.env.iter().rfind(|(known, _)| known == name)?;
    value.to_str()
}

/// An exit with a code.
pub(crate) fn exit(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), signal: None, stderr: stderr.to_owned() }
}

/// The standard output of a recording: `agent/version/case`.
pub(crate) fn fixture(case: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    folder.join(format!("{case}.stdout"))
}

/// What one side said in the recorded conversations with an agent.
pub(crate) fn recorded_lines(agent: &str, said_by: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(agent);
    let entries_of = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut entries: Vec<PathBuf> = entries.collect();
        entries.sort();
        entries
    };
    let mut lines = Vec::new();
    for path in entries_of(&folder).iter().flat_map(|version| entries_of(version)) {
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = fs::read_to_string(path).unwrap();
            let entries = text.lines().map(|line| serde_json::from_str(line).unwrap());
            let said = entries.filter(|entry: &Value| entry["dir"] == said_by);
            lines.extend(said.map(|mut entry| entry["msg"].take()));
        }
    }
    lines
}

/// Plays lines of standard output, and the exit with its standard error.
pub(crate) fn play_text(
    spec: &AgentSpec,
    options: &Options,
    open: &Open,
    stdout: &str,
    exit: Exit,
) -> Vec<Action> {
    let stderr = exit.stderr.clone().into_bytes();
    let recording = play::Recording { stdout: stdout.as_bytes().to_vec(), stderr, exit };
    ended_once(play::play_with(spec, &recording, options, open))
}

/// One line of any output.
#[derive(Clone, Debug)]
pub(crate) struct AnyLine {
    pub(crate) bytes: Vec<u8>,
    pub(crate) from: Stream,
    pub(crate) cut: bool,
    pub(crate) at: Timestamp,
}

/// Makes lines of some bytes, on either stream, cut or not, at some second.
pub(crate) fn any_lines(
    bytes: impl Strategy<Value = Vec<u8>>,
    max: usize,
) -> impl Strategy<Value = Vec<AnyLine>> {
    let from = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
    let line = (bytes, from, any::<bool>(), 0i64..30).prop_map(|(bytes, from, cut, second)| {
        let at = Timestamp::from_second(second).unwrap();
        AnyLine { bytes, from, cut, at }
    });
    vec(line, 0..max)
}

/// Plays lines as they come, then the exit.
pub(crate) fn play_any(
    spec: &AgentSpec,
    options: &Options,
    open: &Open,
    lines: &[AnyLine],
    exit: &Exit,
) -> Vec<Action> {
    let mut dialect = (spec.dialect)(&launch_of(spec, options, open, "hi"));
    let mut out = Vec::new();
    for AnyLine { bytes, from, cut, at } in lines {
        dialect.step(*at, Input::Line { from: *from, bytes, cut: *cut }, &mut out);
    }
    dialect.step(Timestamp::UNIX_EPOCH, Input::Exited(exit), &mut out);
    out
}

/// JSON of any shape, with these names of fields among others.
pub(crate) fn any_value(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        let name = prop_oneof![
            4 => prop::sample::select(names).prop_map(str::to_owned),
            1 => ".{0,4}",
        ];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            hash_map(name, inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Returns the same actions, among which there is one end.
pub(crate) fn ended_once(actions: Vec<Action>) -> Vec<Action> {
    assert_eq!(play::n_ends(&actions), 1, "{}", play::transcript(&actions));
    actions
}

/// Returns the one end.
pub(crate) fn end_of(actions: &[Action]) -> &TurnEnd {
    let mut ends = actions.iter().filter_map(|action| {
        let Action::EndTurn { end, .. } = action else { return None };
        Some(end.as_ref())
    });
    let end = ends.next().expect("the turn ends");
    assert!(ends.next().is_none(), "the turn ends once");
    end
}

/// Returns the code and the words of the failure.
pub(crate) fn failure_of(actions: &[Action]) -> (&str, &str) {
    let failure = end_of(actions).failure.as_ref().unwrap();
    (failure.kind.code(), &failure.message)
}

/// Returns the one end of a turn among others.
pub(crate) fn end_of_turn(actions: &[Action], wanted: TurnKey) -> &TurnEnd {
    let mut ends = actions.iter().filter_map(|action| {
        let Action::EndTurn { turn, end } = action else { return None };
        (*turn == wanted).then_some(end.as_ref())
    });
    let end = ends.next().expect("the turn ends");
    assert!(ends.next().is_none(), "the turn ends once");
    end
}

/// Returns the blocks of thoughts, one name for each piece.
pub(crate) fn thought_blocks(actions: &[Action]) -> Vec<&str> {
    let blocks = events(actions).into_iter().filter_map(|event| {
        let EventBody::Thinking { block, .. } = event else { return None };
        Some(block.as_str())
    });
    blocks.collect()
}

/// Returns the code and the words of a turn's failure.
pub(crate) fn failure_of_turn(actions: &[Action], turn: TurnKey) -> (&str, &str) {
    let failure = end_of_turn(actions, turn).failure.as_ref().expect("a failure");
    (failure.kind.code(), &failure.message)
}

/// Returns the ids of the sessions that were told.
pub(crate) fn sessions(actions: &[Action]) -> Vec<&str> {
    let opened = actions.iter().filter_map(|action| {
        let Action::Opened { id, .. } = action else { return None };
        Some(id.as_str())
    });
    opened.collect()
}

/// Returns the id of the first session that was told.
pub(crate) fn opened(actions: &[Action]) -> Option<&str> {
    sessions(actions).first().copied()
}

/// Returns the events that were told.
pub(crate) fn events(actions: &[Action]) -> Vec<&EventBody> {
    let events = actions.iter().filter_map(|action| {
        let Action::Emit { event, .. } = action else { return None };
        Some(event)
    });
    events.collect()
}

/// Returns the blocks and texts that were told as output.
pub(crate) fn outputs(actions: &[Action]) -> Vec<(&str, &str)> {
    let outputs = events(actions).into_iter().filter_map(|event| {
        let EventBody::Output { block, text } = event else {
            return None;
        };
        Some((block.as_str(), text.as_str()))
    });
    outputs.collect()
}

/// Returns the texts of all statuses of a kind.
pub(crate) fn statuses<'a>(actions: &'a [Action], code: &str) -> Vec<&'a str> {
    let texts = events(actions).into_iter().filter_map(|event| {
        let EventBody::Status(status) = event else {
            return None;
        };
        Some(status.code_and_text())
    });
    texts.filter(|(known, _)| *known == code).map(|(_, text)| text).collect()
}

/// Returns whether the process is to be stopped.
pub(crate) fn has_stopped(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Stop))
}

/// A line of standard output.
pub(crate) fn stdout_line(bytes: &[u8]) -> Input<'_> {
    Input::Line { from: Stream::Stdout, bytes, cut: false }
}

/// A moment.
pub(crate) fn at_second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}
