//! Hooks: what the operator wants to be done when something happens.
//!
//! `happening` is what they are told, `act` runs a program or calls a URL,
//! `runner` owns those that run beside everything else. Here is which of them
//! are due. Where things happen, and what an instruction becomes, is up to the
//! gateway (`gateway/telling.rs`, `daemon/hooks.rs`).

mod act;
pub(crate) mod happening;
pub(crate) mod runner;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use ostler_core::environment::Variables;

use self::happening::{Happening, Outcome};
use crate::{
    command,
    config::{Config, Hook, HookAction, HookEvent},
    gateway::inbound::Origin,
};

/// The hooks that are configured, and what their commands get.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    all: Vec<Hook>,
    environment: Variables,
}

impl Hooks {
    /// Takes what is configured.
    pub(crate) fn new(config: &Config, environment: &Variables) -> Self {
        let all = config.hooks.iter().cloned().collect();
        Self { all, environment: command::passed_on(environment) }
    }

    /// Takes them as they are.
    #[cfg(test)]
    pub(crate) fn of(all: Vec<Hook>) -> Self {
        let environment = [("PATH".into(), "/usr/bin:/bin".into())].into();
        Self { all, environment }
    }

    /// Whether there are none at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns those that are due, in the order of the file.
    pub(crate) fn due<'a>(&'a self, happening: &'a Happening) -> impl Iterator<Item = &'a Hook> {
        self.all.iter().filter(move |hook| is_due(hook, happening))
    }
}

fn is_due(hook: &Hook, happening: &Happening) -> bool {
    let channel = happening.conversation.as_ref().map(|(_, address)| address.channel());
    let is_for = |channels: &Vec<String>| channels.iter().any(|of| Some(of.as_str()) == channel);
    hook.on.contains(&happening.event)
        && hook.channels.as_ref().is_none_or(is_for)
        // A prompt with nothing around it.
        && !happening.origin.is_some_and(Origin::is_bare)
        && match hook.action {
            HookAction::Instruction(_) => may_instruct(happening),
            HookAction::Command(_) | HookAction::Url(_) => true,
        }
}

/// Whether an instruction may follow. It is a turn of its own, of which the same
/// could be said; so what made the turn must have been a person.
fn may_instruct(happening: &Happening) -> bool {
    let is_persons = happening.origin == Some(Origin::Person);
    match happening.event {
        HookEvent::Start | HookEvent::Stop | HookEvent::BeforeTurn => true,
        HookEvent::AfterTurn => is_persons && happening.outcome == Some(Outcome::Done),
        HookEvent::Error | HookEvent::SessionReset => is_persons,
    }
}
