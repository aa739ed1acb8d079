//! The behaviours: what the simulated model does for each `sim:` word.
//!
//! The table is the documentation too: `ostler sim` prints it. A behaviour is a
//! pure function from the conversation to a neutral reply; how the reply looks
//! on the wire is not its business.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::conversation::Conversation;
use super::reply::{Answer, Block, Pace, Refusal, Reply, Stop};
use super::tool::{self, Task};
use super::word::Word;

/// One row of the table of behaviours.
#[derive(Debug)]
pub struct Behaviour {
    /// What stands after `sim:` in a prompt.
    pub word: &'static str,
    /// What may follow as `=<argument>`, with the default; empty when nothing may.
    pub argument: &'static str,
    /// One line for people.
    pub about: &'static str,
    pub(crate) plan: fn(&Turn<'_>) -> Reply,
}

/// What a behaviour is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub(crate) conversation: &'a Conversation,
    /// The newest prompt; empty when the request holds none.
    pub(crate) prompt: &'a str,
    pub(crate) word: Word<'a>,
}

/// A word that makes the first request of a prompt fail and the next ones answer.
pub const ONCE: &str = "once-";

/// What the model says when a prompt asks for nothing special.
pub const HELLO: &str = "Hello from the simulated model.";

/// Returns the row for a word.
pub fn find(word: &str) -> Option<&'static Behaviour> {
    BEHAVIOURS.iter().find(|behaviour| behaviour.word == word)
}

/// Returns what `sim:echo` answers to a prompt.
pub fn echo(prompt: &str) -> String {
    format!("bytes={} sha256={}", prompt.len(), sha256(prompt))
}

/// Returns the text of `sim:huge`, exactly `n_bytes` long.
pub fn huge(n_bytes: usize) -> String {
    HUGE_LINE.bytes().cycle().take(n_bytes).map(char::from).collect()
}

/// Returns the reply to a word that is not in the table.
pub(crate) fn unknown(word: &str) -> Reply {
    let known: Vec<&str> = BEHAVIOURS.iter().map(|behaviour| behaviour.word).collect();
    Answer::text(format!("There is no sim:{word}. There is: {}.", known.join(", "))).into()
}

/// Every behaviour, in the order in which it is shown.
pub static BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        word: "text",
        argument: "",
        about: "a short text; also without any word",
        plan: |_| Answer::text(HELLO).into(),
    },
    Behaviour {
        word: "thinking",
        argument: "",
        about: "thinks, then answers",
        plan: |_| {
            Answer::blocks(vec![
                Block::Thinking("**Considering**\n\nThe user wants to see me think.".to_owned()),
                Block::Text("I have thought about it.".to_owned()),
            ])
            .into()
        },
    },
    Behaviour {
        word: "echo",
        argument: "",
        about: "length in bytes and SHA-256 of the prompt as it arrived",
        plan: |turn| Answer::text(echo(turn.prompt)).into(),
    },
    Behaviour {
        word: "echo-text",
        argument: "",
        about: "the prompt itself, word for word",
        plan: |turn| Answer::text(turn.prompt).into(),
    },
    Behaviour {
        word: "history",
        argument: "",
        about: "how many prompts the conversation holds, and the first of them",
        plan: history,
    },
    Behaviour {
        word: "system",
        argument: "",
        about: "length, SHA-256 and last 2000 characters of each system or developer text",
        plan: system,
    },
    Behaviour {
        word: "tool",
        argument: "",
        about: "runs `echo hi` with the CLI's shell tool, then answers with its output",
        plan: |turn| shell(turn, "echo hi"),
    },
    Behaviour {
        word: "tools",
        argument: "",
        about: "three calls at once: one works, one exits with 3, one tool does not exist",
        plan: tools,
    },
    Behaviour {
        word: "run",
        argument: "=<command to the end of the line>",
        about: "runs that command with the CLI's shell tool, then answers with its output",
        plan: |turn| match turn.word.line {
            Some(command) => shell(turn, command),
            None => Answer::text("sim:run needs a command: sim:run=<command>").into(),
        },
    },
    Behaviour {
        word: "sleep-tool",
        argument: "=<seconds, 30>",
        about: "a tool that runs that long",
        // Claude refuses a bare `sleep`; inside another shell it lets it pass.
        plan: |turn| shell(turn, &format!("sh -c 'sleep {}; echo slept'", seconds(turn))),
    },
    Behaviour {
        word: "daemon-tool",
        argument: "=<seconds, 30>",
        about: "a tool that leaves a process in a session of its own behind",
        plan: |turn| {
            let seconds = seconds(turn);
            shell(
                turn,
                &format!(
                    "setsid sh -c 'sleep {seconds}' </dev/null >/dev/null 2>&1 & echo started"
                ),
            )
        },
    },
    Behaviour {
        word: "write",
        argument: "=<path, sim-note.txt>",
        about: "writes a file with the CLI's own editing tool",
        plan: write,
    },
    Behaviour {
        word: "loop",
        argument: "",
        about: "calls a tool again and again and never answers",
        plan: |turn| {
            let round = turn.conversation.results().len() + 1;
            call_shell(turn, &format!("echo round {round}"))
        },
    },
    Behaviour {
        word: "slow",
        argument: "=<milliseconds, 2000>",
        about: "a text that takes that long to stream",
        plan: |turn| {
            let total = Duration::from_millis(turn.word.number().unwrap_or(2000)).min(LONGEST);
            Answer::text(SLOW_TEXT).paced(Pace::Over(total)).into()
        },
    },
    Behaviour {
        word: "silence",
        argument: "",
        about: "headers, then nothing until the client goes away",
        plan: |_| Answer::text(HELLO).paced(Pace::Silence).into(),
    },
    Behaviour {
        word: "stall",
        argument: "",
        about: "half a text, then nothing until the client goes away",
        plan: |_| Answer::text(SLOW_TEXT).paced(Pace::Stall).into(),
    },
    Behaviour {
        word: "cut",
        argument: "",
        about: "half a text, then the connection is dropped",
        plan: |_| Answer::text(SLOW_TEXT).paced(Pace::Cut).into(),
    },
    Behaviour {
        word: "stream-error",
        argument: "",
        about: "half a text, then the provider's error inside the stream",
        plan: |_| Answer::text(SLOW_TEXT).paced(Pace::ErrorAtHalf).into(),
    },
    Behaviour {
        word: "huge",
        argument: "=<bytes, 300000>",
        about: "an answer of that length",
        plan: |turn| {
            let n_bytes = turn.word.number().unwrap_or(300_000).min(MAX_HUGE);
            Answer::text(huge(usize::try_from(n_bytes).unwrap_or(0))).into()
        },
    },
    Behaviour {
        word: "empty",
        argument: "",
        about: "an answer without any content",
        plan: |_| Answer::blocks(Vec::new()).into(),
    },
    Behaviour {
        word: "refusal",
        argument: "",
        about: "the model declines",
        plan: |_| Answer::text("I can't help with that.").stopping(Stop::Refusal).into(),
    },
    Behaviour {
        word: "length",
        argument: "",
        about: "the answer stops at the output limit",
        plan: |_| Answer::text("This answer is cut sho").stopping(Stop::Length).into(),
    },
    Behaviour {
        word: "context",
        argument: "",
        about: "the prompt is too long for the model",
        plan: |_| Reply::Refuse(Refusal::ContextTooLong),
    },
    Behaviour {
        word: "quota",
        argument: "",
        about: "the account has no credit left",
        plan: |_| Reply::Refuse(Refusal::Quota),
    },
    Behaviour {
        word: "400",
        argument: "",
        about: "HTTP 400, invalid request",
        plan: |_| Reply::Refuse(Refusal::BadRequest),
    },
    Behaviour {
        word: "401",
        argument: "",
        about: "HTTP 401, wrong key; a key with `wrong` in it gets the same",
        plan: |_| Reply::Refuse(Refusal::WrongKey),
    },
    Behaviour {
        word: "403",
        argument: "",
        about: "HTTP 403, not allowed",
        plan: |_| Reply::Refuse(Refusal::Forbidden),
    },
    Behaviour {
        word: "404",
        argument: "",
        about: "HTTP 404, no such model",
        plan: |_| Reply::Refuse(Refusal::UnknownModel),
    },
    Behaviour {
        word: "413",
        argument: "",
        about: "HTTP 413, request too large",
        plan: |_| Reply::Refuse(Refusal::TooLarge),
    },
    Behaviour {
        word: "429",
        argument: "=<seconds for retry-after, none>",
        about: "HTTP 429, rate limit",
        plan: |turn| Reply::Refuse(Refusal::RateLimited { retry_after_s: turn.word.number() }),
    },
    Behaviour {
        word: "500",
        argument: "",
        about: "HTTP 500, server error",
        plan: |_| Reply::Refuse(Refusal::ServerError),
    },
    Behaviour {
        word: "503",
        argument: "",
        about: "HTTP 503, unavailable or at capacity",
        plan: |_| Reply::Refuse(Refusal::Unavailable),
    },
    Behaviour {
        word: "529",
        argument: "",
        about: "HTTP 529, overloaded",
        plan: |_| Reply::Refuse(Refusal::Overloaded),
    },
];

/// The longest that any answer takes, also how long silence lasts.
pub(crate) const LONGEST: Duration = Duration::from_secs(600);
const MAX_HUGE: u64 = 64 * 1024 * 1024;
const SYSTEM_TAIL_CHARS: usize = 2000;
const HUGE_LINE: &str = "The simulated model goes on and on and on.\n";
const SLOW_TEXT: &str = "This answer takes its time: one, two, three, four, five, six, seven, \
    eight, nine, ten, eleven, twelve. Now it is complete.";

fn history(turn: &Turn<'_>) -> Reply {
    let prompts = turn.conversation.prompts();
    let first: String = prompts.first().copied().unwrap_or_default().chars().take(200).collect();
    Answer::text(format!("I remember {} prompts; the first was: {first}", prompts.len())).into()
}

fn system(turn: &Turn<'_>) -> Reply {
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
fn shell(turn: &Turn<'_>, command: &str) -> Reply {
    match turn.conversation.results().last() {
        None => call_shell(turn, command),
        Some(result) => match tool::wait_on(result) {
            Some(call) => Answer::blocks(vec![Block::Tool(call)]).into(),
            None => Answer::text(format!("The tool said: {result}")).into(),
        },
    }
}

fn call_shell(turn: &Turn<'_>, command: &str) -> Reply {
    match tool::call(&turn.conversation.tools, Task::Shell(command)) {
        Some(call) => Answer::blocks(vec![
            Block::Text("I am going to run a command.".to_owned()),
            Block::Tool(call),
        ])
        .into(),
        None => Answer::text("I was offered no shell tool that I know.").into(),
    }
}

fn tools(turn: &Turn<'_>) -> Reply {
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

fn write(turn: &Turn<'_>) -> Reply {
    if let Some(result) = turn.conversation.results().last() {
        return Answer::text(format!("The tool said: {result}")).into();
    }
    let name = turn.word.argument().unwrap_or("sim-note.txt");
    // Claude's tool takes absolute paths only, so the path is joined to the
    // directory that the CLI named; an absolute argument stays as it is.
    let path = match turn.conversation.working_directory() {
        Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
        Some(_) | None => name.to_owned(),
    };
    let task = Task::Write { path: &path, content: "Written by the simulated model.\n" };
    match tool::call(&turn.conversation.tools, task) {
        Some(call) => Answer::blocks(vec![Block::Tool(call)]).into(),
        None => Answer::text("I was offered no editing tool that I know.").into(),
    }
}

fn seconds(turn: &Turn<'_>) -> u64 {
    turn.word.number().unwrap_or(30).min(86_400)
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
