//! The chats there are, and in which of them this gateway speaks.

use std::{fmt, sync::Arc};

use tokio::sync::watch;

use super::{
    Chat,
    draft::{Detail, Long},
};
use crate::{channel::DISCORD, config, gateway::policy::Policy};

/// The chats there are.
#[derive(Clone, Default)]
pub(crate) struct Chats(Vec<Member>);

/// In how many chats a gateway speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    All,
    Some,
    None,
}

/// One of them.
#[derive(Clone)]
struct Member {
    channel: &'static str,
    chat: Arc<dyn Chat>,
    /// Whether this gateway is the one that speaks there.
    on_duty: watch::Receiver<bool>,
}

impl fmt::Debug for Chats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|member| member.channel)).finish()
    }
}

impl Chats {
    /// Adds one, in which this gateway speaks while it is on duty.
    pub(crate) fn add(
        &mut self,
        channel: &'static str,
        chat: Arc<dyn Chat>,
        on_duty: watch::Receiver<bool>,
    ) {
        self.0.push(Member { channel, chat, on_duty });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the chat that a channel is.
    pub(crate) fn get(&self, channel: &str) -> Option<Arc<dyn Chat>> {
        self.member(channel).map(|member| Arc::clone(&member.chat))
    }

    /// Whether this gateway is the one that speaks there.
    pub(crate) fn is_on_duty(&self, channel: &str) -> bool {
        self.member(channel).is_some_and(|member| *member.on_duty.borrow())
    }

    /// Says in how many of them this gateway speaks.
    pub(crate) fn share(&self) -> Share {
        let n_own = self.0.iter().filter(|member| *member.on_duty.borrow()).count();
        match n_own {
            0 => Share::None,
            n if n == self.0.len() => Share::All,
            _ => Share::Some,
        }
    }

    /// Returns those in which this gateway speaks.
    pub(crate) fn own(&self) -> Vec<&'static str> {
        let own = self.0.iter().filter(|member| *member.on_duty.borrow());
        own.map(|member| member.channel).collect()
    }

    /// Returns those in which another gateway speaks.
    pub(crate) fn closed(&self) -> Vec<&'static str> {
        let closed = self.0.iter().filter(|member| !*member.on_duty.borrow());
        closed.map(|member| member.channel).collect()
    }

    fn member(&self, channel: &str) -> Option<&Member> {
        self.0.iter().find(|member| member.channel == channel)
    }

    /// Returns how much is shown of a turn there.
    pub(crate) fn detail(&self, channel: &str, policy: &Policy) -> Detail {
        match (channel, policy.discord.detail) {
            (DISCORD, config::Detail::Verbose) => Detail::Verbose,
            (DISCORD, config::Detail::Normal) => Detail::Normal,
            (_, _) => Detail::Quiet,
        }
    }

    /// Returns what becomes of long answers there.
    pub(crate) fn long(&self, channel: &str, policy: &Policy) -> Long {
        match (channel, policy.discord.long_answers) {
            (DISCORD, config::LongAnswers::File) => Long::File { over: 1 },
            (_, _) => Long::Split,
        }
    }
}
