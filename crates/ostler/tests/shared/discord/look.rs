//! What tests ask of a double.

use serde_json::Value;

use super::{
    Discord, World,
    interaction::InteractionState,
    message::{Change, Message},
};

impl Discord {
    /// Returns the messages of a channel as they stand, oldest first.
    pub(crate) fn messages(&self, channel: u64) -> Vec<Message> {
        self.look(|world| world.messages(channel).into_iter().cloned().collect())
    }

    /// Returns what the bot did in a channel, in its order.
    pub(crate) fn changes(&self, channel: u64) -> Vec<Change> {
        self.look(|world| world.changes(channel).to_vec())
    }

    pub(crate) fn threads(&self, channel: u64) -> Vec<u64> {
        self.look(|world| world.threads(channel))
    }

    /// Returns what a channel or thread is called.
    pub(crate) fn name(&self, channel: u64) -> String {
        self.look(|world| world.channels[&channel].name.clone())
    }

    pub(crate) fn interaction(&self, id: u64) -> InteractionState {
        self.look(|world| world.interaction(id))
    }

    /// Returns the commands that are registered.
    pub(crate) fn commands(&self) -> Vec<Value> {
        self.look(World::commands)
    }

    /// Returns how often commands were written.
    pub(crate) fn command_writes(&self) -> usize {
        self.look(World::command_writes)
    }

    /// Returns how many connections of the gateway were opened so far.
    pub(crate) fn connections(&self) -> usize {
        self.look(World::connections)
    }

    pub(crate) fn identifies(&self) -> usize {
        self.look(World::identifies)
    }

    pub(crate) fn resumes(&self) -> usize {
        self.look(World::resumes)
    }

    /// Returns the method, path and status of every request to the API.
    pub(crate) fn requests(&self) -> Vec<(String, String, u16)> {
        self.look(|world| world.requests().to_vec())
    }

    /// Returns how many requests were answered with 429.
    pub(crate) fn limited(&self) -> usize {
        self.look(World::limited)
    }

    /// Returns how many requests came although they had been told to wait longer.
    pub(crate) fn hurried(&self) -> usize {
        self.look(World::hurried)
    }

    /// Returns the messages of the bot whose words rang somewhere.
    pub(crate) fn pings(&self) -> Vec<Message> {
        self.look(|world| world.pings().to_vec())
    }
}
