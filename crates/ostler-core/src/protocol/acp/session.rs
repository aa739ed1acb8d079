//! One session of an agent: how it is opened, and the prompt that waits in it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{
    AcpFacts,
    settings::{Change, Settings, What, Wish},
    spent::Tally,
    turn::LiveTurn,
};
use crate::{
    agent::TurnKey,
    request::{Open, Options, Permissions, Thinking},
};

/// A session.
pub(super) struct Session {
    /// The id that the agent is told.
    pub(super) wire_id: Option<String>,
    /// The id that the caller knows.
    pub(super) id: Option<String>,
    cwd: PathBuf,
    pub(super) state: State,
    /// Whether the agent has had the system prompt.
    pub(super) system_sent: bool,
    /// What can be set, and what is.
    pub(super) settings: Settings,
    /// What was used so far.
    pub(super) tally: Tally,
    /// What was said about modes that there are not.
    doubts: Vec<&'static str>,
    /// What the agent is being told to change.
    pub(super) pending: Option<Pending>,
    /// What to say in the first turn.
    pub(super) warning: Option<&'static str>,
    /// A prompt that waits.
    pub(super) held: Option<Held>,
    pub(super) turn: Option<LiveTurn>,
    /// Whether a prompt has no reply yet. A second one would end it.
    pub(super) is_busy: bool,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The agent has not confirmed it.
    Opening,
    /// The agent may still repeat its history.
    Replaying,
    /// The agent is being told of a setting, the one of this number.
    Setting(u32),
    /// It takes prompts.
    Open,
}

/// A change that the agent has not answered.
pub(super) struct Pending {
    pub(super) change: Change,
    /// The turn for which it is made.
    pub(super) turn: TurnKey,
}

/// A prompt that waits.
pub(super) struct Held {
    pub(super) turn: TurnKey,
    pub(super) prompt: String,
    pub(super) options: Options,
    /// What was set for it, or could not be.
    pub(super) settled: Vec<What>,
}

impl Held {
    pub(super) fn permissions(&self) -> Permissions {
        self.options.permissions
    }
}

/// How a session that exists is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reopening {
    /// The agent tells its history once more.
    Load,
    /// The agent only goes on.
    Resume,
}

impl Session {
    /// A session that is to be opened.
    pub(super) fn new(facts: &AcpFacts, open: &Open, options: &Options) -> Self {
        let memo = open.memo();
        Self {
            wire_id: memo.map(|memo| (facts.load_id)(&memo.id)),
            id: memo.map(|memo| memo.id.clone()),
            cwd: options.cwd.clone(),
            state: State::Opening,
            system_sent: memo.is_some_and(|memo| memo.system_sent),
            settings: Settings::default(),
            tally: memo.map_or_else(Tally::default, |memo| Tally::resumed(memo.totals.as_ref())),
            doubts: Vec::new(),
            pending: None,
            warning: (facts.ignored)(open, options),
            held: None,
            turn: None,
            is_busy: false,
        }
    }

    /// Returns method and parameters of the request that opens it.
    pub(super) fn opening(&self, reopening: Reopening) -> (&'static str, Value) {
        let cwd = self.cwd.to_string_lossy();
        let Some(id) = &self.wire_id else {
            return ("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        };
        let method = match reopening {
            Reopening::Load => "session/load",
            Reopening::Resume => "session/resume",
        };
        (method, json!({ "sessionId": id, "cwd": cwd, "mcpServers": [] }))
    }

    /// Takes what the agent says about a session that it has opened.
    pub(super) fn confirmed(&mut self, facts: &AcpFacts, told: &Value) {
        self.settings =
            if facts.has_settings { Settings::read(told) } else { Settings::read_models(told) };
    }

    /// Returns the next thing that the agent has to be told before the prompt
    /// that waits; what cannot be told is passed over, and added to the complaints.
    pub(super) fn next_change(
        &mut self,
        facts: &AcpFacts,
        complaints: &mut Vec<String>,
    ) -> Option<Change> {
        let held = self.held.as_mut()?;
        let all: &[What] = if facts.has_settings {
            &[What::Mode, What::Model, What::Thinking]
        } else {
            &[What::Model]
        };
        for what in all {
            if held.settled.contains(what) {
                continue;
            }
            let is_unheard_of = *what == What::Model && !self.settings.has_models();
            let wish = match self.settings.wish(*what, &held.options) {
                Wish::Set(_) if is_unheard_of && !facts.has_settings => {
                    let text = "the agent cannot be told which model to use; the model is ignored";
                    Wish::Cannot(text.to_owned())
                }
                // The words of the prompt can ask for more, but not for less.
                Wish::Cannot(_) if *what == What::Thinking && !thinks_less(&held.options) => {
                    Wish::Holds
                }
                wish @ (Wish::Set(_) | Wish::Holds | Wish::Cannot(_)) => wish,
            };
            match wish {
                Wish::Set(change) => return Some(change),
                Wish::Holds => {}
                Wish::Cannot(why) => complaints.push(why),
            }
            held.settled.push(*what);
        }
        let doubt = self.settings.doubt(held.options.permissions);
        // Once is enough: it is true of the whole session.
        if let Some(text) = doubt.filter(|text| facts.has_settings && !self.doubts.contains(text)) {
            self.doubts.push(text);
            complaints.push(text.to_owned());
        }
        None
    }

    /// Returns the model that a turn uses, as far as it is known.
    pub(super) fn model(&self, facts: &AcpFacts) -> Option<String> {
        if facts.has_settings { self.settings.model() } else { self.settings.chosen_model() }
    }

    /// Returns the change of this number, which is settled now for the prompt
    /// that waits for it; `None` when the answer comes too late to count.
    pub(super) fn answered(&mut self, number: u32) -> Option<Pending> {
        if self.state != State::Setting(number) {
            return None;
        }
        self.state = State::Open;
        let pending = self.pending.take()?;
        // Another prompt may wait by now, with other wishes.
        if let Some(held) = self.held.as_mut().filter(|held| held.turn == pending.turn) {
            held.settled.push(pending.change.what);
        }
        Some(pending)
    }
}

fn thinks_less(options: &Options) -> bool {
    matches!(options.thinking, Some(Thinking::Off | Thinking::Minimal))
}
