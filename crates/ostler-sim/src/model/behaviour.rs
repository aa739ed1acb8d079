//! The behaviours: what the simulated model does for each `sim:` word.
//!
//! The table is the documentation too: `ostler sim` prints it. A behaviour is a
//! pure function from the conversation to a neutral reply; how the reply looks
//! on the wire is not its business.

mod plan;

use super::conversation::{Aside, Conversation};
use super::reply::{Answer, Pace, Refusal, Reply, Stop};
use super::schema;
use super::word::Word;

pub(crate) use plan::LONGEST;
pub use plan::{echo, huge};

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

const TITLE: &str = "A simulated conversation";

/// Returns the row for a word.
pub fn find(word: &str) -> Option<&'static Behaviour> {
    BEHAVIOURS.iter().find(|behaviour| behaviour.word == word)
}

/// Returns the reply to a request that is beside the turn.
pub(crate) fn aside(aside: &Aside) -> Reply {
    match aside {
        Aside::Schema(schema) => Answer::text(schema::example(schema).to_string()).into(),
        Aside::Title => Answer::text(TITLE).into(),
    }
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
        plan: plan::thinking,
    },
    Behaviour {
        word: "echo",
        argument: "",
        about: "length in bytes and SHA-256 of the prompt as it arrived",
        plan: plan::echo_hash,
    },
    Behaviour {
        word: "echo-text",
        argument: "",
        about: "the prompt itself, word for word",
        plan: |turn| Answer::text(turn.prompt).into(),
    },
    Behaviour {
        word: "say",
        argument: "=<text to the end of the line>",
        about: "that text and nothing else",
        plan: |turn| Answer::text(turn.word.line.unwrap_or_default()).into(),
    },
    Behaviour {
        word: "history",
        argument: "",
        about: "how many prompts the conversation holds, and the first of them",
        plan: plan::history,
    },
    Behaviour {
        word: "system",
        argument: "",
        about: "length, SHA-256 and last 2000 characters of each system or developer text",
        plan: plan::system,
    },
    Behaviour {
        word: "tool",
        argument: "",
        about: "runs `echo hi` with the CLI's shell tool, then answers with its output",
        plan: |turn| plan::shell(turn, "echo hi"),
    },
    Behaviour {
        word: "tools",
        argument: "",
        about: "three calls at once: one works, one exits with 3, one tool does not exist",
        plan: plan::tools,
    },
    Behaviour {
        word: "run",
        argument: "=<command to the end of the line>",
        about: "runs that command with the CLI's shell tool, then answers with its output",
        plan: plan::run,
    },
    Behaviour {
        word: "ask",
        argument: "=<command to the end of the line>",
        about: "runs that command and asks for more than the CLI's sandbox allows",
        plan: plan::ask,
    },
    Behaviour {
        word: "sleep-tool",
        argument: "=<seconds, 30>",
        about: "a tool that runs that long",
        plan: plan::sleep_tool,
    },
    Behaviour {
        word: "daemon-tool",
        argument: "=<seconds, 30>",
        about: "a tool that leaves a process in a session of its own behind",
        plan: plan::daemon_tool,
    },
    Behaviour {
        word: "read",
        argument: "=<path, notes.txt>",
        about: "reads a file with the CLI's reading tool or shell, then answers with its content",
        plan: plan::read,
    },
    Behaviour {
        word: "write",
        argument: "=<path, sim-note.txt>",
        about: "writes a file with the CLI's own editing tool",
        plan: plan::write,
    },
    Behaviour {
        word: "loop",
        argument: "",
        about: "calls a tool again and again and never answers",
        plan: plan::endless,
    },
    Behaviour {
        word: "slow",
        argument: "=<milliseconds, 2000>",
        about: "a text that takes that long to stream",
        plan: plan::slow,
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
        plan: |_| Answer::text(plan::SENTENCE).paced(Pace::Stall).into(),
    },
    Behaviour {
        word: "cut",
        argument: "",
        about: "half a text, then the connection is dropped",
        plan: |_| Answer::text(plan::SENTENCE).paced(Pace::Cut).into(),
    },
    Behaviour {
        word: "stream-error",
        argument: "",
        about: "half a text, then the provider's error inside the stream",
        plan: |_| Answer::text(plan::SENTENCE).paced(Pace::ErrorAtHalf).into(),
    },
    Behaviour {
        word: "huge",
        argument: "=<bytes, 300000>",
        about: "an answer of that length",
        plan: plan::huge_answer,
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
        about: "the model declines; for Gemini a text like any other",
        plan: |_| Answer::text("I can't help with that.").stopping(Stop::Refusal).into(),
    },
    Behaviour {
        word: "filter",
        argument: "",
        about: "the provider's filter stops the answer; for Anthropic the same as refusal",
        plan: |_| Answer::text("This answer is not al").stopping(Stop::Filter).into(),
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
        about: "HTTP 401, wrong key; a key with `wrong` in it gets the same, or 400 from Gemini",
        plan: |_| Reply::Refuse(Refusal::Unauthenticated),
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
