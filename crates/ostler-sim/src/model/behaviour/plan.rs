//! The behaviours that are more than one expression.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::Turn;
use crate::model::reply::{Answer, Block, Pace, Reply};
use crate::model::tool::{self, Task};

/// The longest that any answer takes, also how long silence lasts.
pub(crate) const LONGEST: Duration = Duration::from_secs(600);

/// A text that is long enough to be interrupted.
pub(super) const SENTENCE: &str = "This answer takes its time: one, two, three, four, five, six, \
    seven, eight, nine, ten, eleven, twelve. Now it is complete.";

/// Returns what `sim:echo` answers to a prompt.
pub fn echo(prompt: &str) -> String {
    format!("bytes={} sha256={}", prompt.len(), sha256(prompt))
}

/// Returns the text of `sim:huge`, exactly `n_bytes` long.
pub fn huge(n_bytes: usize) -> String {
    // No line is like another: Gemini CLI stops a model that repeats itself.
    let mut text = String::with_capacity(n_bytes + HUGE_LINE_BYTES);
    for number in 0.. {
        if text.len() >= n_bytes {
            break;
        }
        text.push_str(&format!("{number:08} The simulated model goes on.\n"));
    }
    text.truncate(n_bytes);
    text
}

pub(super) fn thinking(_: &Turn<'_>) -> Reply {
    Answer::blocks(vec![
        Block::Thinking("**Considering**\n\nThe user wants to see me think.".to_owned()),
        Block::Text("I have thought about it.".to_owned()),
    ])
    .into()
}

pub(super) fn echo_hash(turn: &Turn<'_>) -> Reply {
    Answer::text(echo(turn.prompt)).into()
}

pub(super) fn slow(turn: &Turn<'_>) -> Reply {
    let total = Duration::from_millis(turn.word.number().unwrap_or(2000)).min(LONGEST);
    Answer::text(SENTENCE).paced(Pace::Over(total)).into()
}

pub(super) fn huge_answer(turn: &Turn<'_>) -> Reply {
    let n_bytes = turn.word.number().unwrap_or(300_000).min(MAX_HUGE);
    Answer::text(huge(usize::try_from(n_bytes).unwrap_or(0))).into()
}

pub(super) fn run(turn: &Turn<'_>) -> Reply {
    match turn.word.line {
        Some(command) => shell(turn, command),
        None => Answer::text("sim:run needs a command: sim:run=<command>").into(),
    }
}

pub(super) fn ask(turn: &Turn<'_>) -> Reply {
    match turn.word.line {
        Some(command) => shell_task(turn, Task::Escalated(command)),
        None => Answer::text("sim:ask needs a command: sim:ask=<command>").into(),
    }
}

pub(super) fn sleep_tool(turn: &Turn<'_>) -> Reply {
    // Claude tells its model that a bare `sleep` is blocked, so it is wrapped.
    shell(turn, &format!("sh -c 'sleep {}; echo slept'", seconds(turn)))
}

pub(super) fn daemon_tool(turn: &Turn<'_>) -> Reply {
    let seconds = seconds(turn);
    shell(
        turn,
        &format!("setsid sh -c 'sleep {seconds}' </dev/null >/dev/null 2>&1 & echo started"),
    )
}

pub(super) fn endless(turn: &Turn<'_>) -> Reply {
    let round = turn.conversation.results().len() + 1;
    call_shell(turn, Task::Shell(&format!("echo round {round}")))
}

pub(super) fn history(turn: &Turn<'_>) -> Reply {
    let prompts = turn.conversation.prompts();
    let first: String = prompts.first().copied().unwrap_or_default().chars().take(200).collect();
    Answer::text(format!("I remember {} prompts; the first was: {first}", prompts.len())).into()
}

pub(super) fn system(turn: &Turn<'_>) -> Reply {
    let texts: Vec<String> = turn
        .conversation
        .system
        .iter()
        .map(|text| {
            let skip = text.chars().count().saturating_sub(SYSTEM_TAIL_CHARS);
            let tail: String = text.chars().skip(skip).collect();
            format!("[{}]\n{tail}", echo(text))
        })
        .collect();
    Answer::text(texts.join("\n\n")).into()
}

/// Runs one command, then answers with what it printed.
pub(super) fn shell(turn: &Turn<'_>, command: &str) -> Reply {
    shell_task(turn, Task::Shell(command))
}

fn shell_task(turn: &Turn<'_>, task: Task<'_>) -> Reply {
    match turn.conversation.results().last() {
        None => call_shell(turn, task),
        Some(result) => match tool::wait_on(result) {
            Some(call) => Answer::blocks(vec![Block::Tool(call)]).into(),
            None => Answer::text(format!("The tool said: {result}")).into(),
        },
    }
}

fn call_shell(turn: &Turn<'_>, task: Task<'_>) -> Reply {
    match tool::call(&turn.conversation.tools, task) {
        Some(call) => Answer::blocks(vec![
            Block::Text("I am going to run a command.".to_owned()),
            Block::Tool(call),
        ])
        .into(),
        None => Answer::text("I was offered no shell tool that I know.").into(),
    }
}

pub(super) fn tools(turn: &Turn<'_>) -> Reply {
    let results = turn.conversation.results();
    if !results.is_empty() {
        return Answer::text(format!("The tools said:\n{}", results.join("\n---\n"))).into();
    }
    let commands = ["echo one", "echo broken >&2; exit 3"];
    let calls = commands.iter().filter_map(|command| {
        tool::call(&turn.conversation.tools, Task::Shell(command)).map(Block::Tool)
    });
    Answer::blocks(calls.chain([Block::Tool(tool::unknown())]).collect()).into()
}

pub(super) fn write(turn: &Turn<'_>) -> Reply {
    if let Some(result) = turn.conversation.results().last() {
        return Answer::text(format!("The tool said: {result}")).into();
    }
    let path = absolute(turn, turn.word.argument().unwrap_or("sim-note.txt"));
    let task = Task::Write { path: &path, content: "Written by the simulated model.\n" };
    match tool::call(&turn.conversation.tools, task) {
        Some(call) => Answer::blocks(vec![Block::Tool(call)]).into(),
        None => Answer::text("I was offered no editing tool that I know.").into(),
    }
}

pub(super) fn read(turn: &Turn<'_>) -> Reply {
    if let Some(result) = turn.conversation.results().last() {
        return Answer::text(format!("The file says: {result}")).into();
    }
    let path = absolute(turn, turn.word.argument().unwrap_or("notes.txt"));
    match tool::call(&turn.conversation.tools, Task::Read(&path)) {
        Some(call) => Answer::blocks(vec![
            Block::Text("I am going to read a file.".to_owned()),
            Block::Tool(call),
        ])
        .into(),
        None => Answer::text("I was offered no tool that can read a file.").into(),
    }
}

/// Claude's tools take absolute paths only, so a path is joined to the
/// directory that the CLI named; an absolute one stays as it is.
fn absolute(turn: &Turn<'_>, path: &str) -> String {
    match turn.conversation.working_directory() {
        Some(directory) if !path.starts_with('/') => format!("{directory}/{path}"),
        Some(_) | None => path.to_owned(),
    }
}

fn seconds(turn: &Turn<'_>) -> u64 {
    turn.word.number().unwrap_or(30).min(86_400)
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

const MAX_HUGE: u64 = 64 * 1024 * 1024;
const SYSTEM_TAIL_CHARS: usize = 2000;
const HUGE_LINE_BYTES: usize = 37;
