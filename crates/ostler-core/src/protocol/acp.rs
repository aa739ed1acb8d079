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
mod client;
mod session;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod turn;
mod update;

use serde_json::Value;

pub(crate) use self::{call::Call, client::dialect};
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
    /// Whether the history of a loaded session is told on after the reply,
    /// until the commands are told.
    pub(crate) replays_late: bool,
    /// Whether every piece of a thought is a thought.
    pub(crate) thoughts_are_whole: bool,
    /// Returns whether a piece of the answer is not the model's.
    pub(crate) is_notice: fn(&str) -> bool,
    /// Returns the name of the tool that is called, in the agent's own words.
    pub(crate) tool: fn(&Call) -> String,
    /// Returns the arguments of a call, as far as they are told.
    pub(crate) input: fn(&Call) -> Option<Value>,
    /// Makes the text that is sent, of the prompt and the options; the last one
    /// says whether the session has had its system prompt.
    pub(crate) prompt: fn(&str, &Options, bool) -> String,
    /// Returns what is to be said about options that a session cannot take.
    pub(crate) ignored: fn(&Open, &Options) -> Option<&'static str>,
    /// Reads what a turn used, and the model that did most of it.
    pub(crate) spent: fn(&Value) -> (Usage, Option<String>),
    /// Returns why a turn failed that the agent ended for this reason.
    pub(crate) stopped: fn(&str) -> Option<Failure>,
    /// Finds out why the agent did not do what it was asked.
    pub(crate) failure: fn(&RpcError) -> Failure,
    /// Makes the reader of standard error.
    pub(crate) stderr: fn() -> Box<dyn Stderr>,
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
