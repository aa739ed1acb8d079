//! The Agent Client Protocol, the client's side: JSON-RPC, a message a line, many
//! sessions in a process.
//!
//! A dialect that any agent can use which speaks the protocol; what is true of
//! one agent and not of all stands in its [`AcpFacts`]. The messages are read
//! field by field and not into the protocol's published types: an agent may
//! print anything, and one field of another type must not cost the rest of a
//! message.

mod asking;
mod call;
mod calls;
mod client;
mod ending;
mod hello;
mod opening;
mod prompting;
mod session;
mod settings;
mod spent;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod turn;
mod update;

use std::time::Duration;

use serde_json::Value;

pub(crate) use self::{
    call::Call,
    client::dialect,
    hello::{hello, introduction},
};
use super::jsonrpc::RpcError;
use crate::{
    agent::{Action, Exit, TurnKey},
    event::Usage,
    failure::Failure,
    request::{Open, Options},
};

/// What is true of one agent and not of all that speak the protocol.
pub(crate) struct AcpFacts {
    /// Makes the id by which an existing session is loaded.
    pub(crate) load_id: fn(&str) -> String,
    /// How long the history of a loaded session may be told on after the reply,
    /// if the commands are not told before.
    pub(crate) replay: Option<Duration>,
    /// Whether modes and options are set by the protocol, and not models alone.
    pub(crate) has_settings: bool,
    /// Whether every piece of a thought is a thought.
    pub(crate) thoughts_are_whole: bool,
    /// Returns whether a piece of the answer is not the model's.
    pub(crate) is_notice: fn(&str) -> bool,
    /// Returns the name of the tool that is called, in the agent's own words.
    pub(crate) tool: fn(&Call) -> String,
    /// Returns what a call does, for people: of a command the whole of it.
    pub(crate) title: fn(&Call) -> String,
    /// Returns the arguments of a call, as far as they are told.
    pub(crate) input: fn(&Call) -> Option<Value>,
    /// Makes the text that is sent, of the prompt and the options; the last one
    /// says whether the session has had its system prompt.
    pub(crate) prompt: fn(&str, &Options, bool) -> String,
    /// Returns whether a call only looks, so that it may be made read-only.
    pub(crate) looks: fn(&Call) -> bool,
    /// Returns what is to be said about options that a session cannot take.
    pub(crate) ignored: fn(&Open, &Options) -> Option<&'static str>,
    /// Reads what a turn used, and the model that did most of it.
    pub(crate) spent: fn(&Value) -> (Usage, Option<String>),
    /// Returns why a turn failed that the agent ended for this reason.
    pub(crate) stopped: fn(&str) -> Option<Failure>,
    /// Finds out why the agent did not do what it was asked.
    pub(crate) failure: fn(&RpcError) -> Failure,
    /// Returns whether this refusal to open a session means that there is none.
    pub(crate) is_lost: fn(&RpcError) -> bool,
    /// Returns what an agent does, of those with this name, that others do not.
    pub(crate) habits: fn(&str) -> &'static Habits,
    /// Makes the reader of standard error.
    pub(crate) stderr: fn() -> Box<dyn Stderr>,
}

/// What one program does and others that speak the protocol do not.
pub(crate) struct Habits {
    /// Returns whether a piece of an answer is a notice in the model's place.
    pub(crate) is_notice: fn(&str) -> bool,
    /// Finds out whether the last piece of an answer tells of a failure; the
    /// turn may have used the model or not.
    pub(crate) told_failure: fn(&str, Used) -> Option<Failure>,
    /// Whether it counts what a session uses from its loading on.
    pub(crate) counts_anew: bool,
    /// Whether it tells what the last call of the model used, not all of them.
    pub(crate) tells_last_call: bool,
    /// What it asks though it can do without an answer.
    pub(crate) idle_requests: &'static [&'static str],
    /// The notification by which it tells of a change of its mode.
    pub(crate) mode_notice: Option<&'static str>,
}

impl Habits {
    /// Nothing of its own.
    pub(crate) const NONE: Self = Self {
        is_notice: |_| false,
        told_failure: |_, _| None,
        counts_anew: false,
        tells_last_call: false,
        idle_requests: &[],
        mode_notice: None,
    };
}

/// Whether a turn has used the model, as far as the agent tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    /// It is told to have used some.
    Some,
    /// Nothing is told.
    NothingTold,
}

/// Reads what an agent prints beside the protocol.
pub(crate) trait Stderr: Send {
    /// Takes a line, with the turn that runs if it is the only one. Returns why
    /// that turn is not to be waited for any longer.
    fn line(
        &mut self,
        bytes: &[u8],
        turn: Option<TurnKey>,
        out: &mut Vec<Action>,
    ) -> Option<Failure>;

    /// Finds out why the agent ended before it took any session.
    fn not_started(&mut self, exit: &Exit) -> Failure;
}
