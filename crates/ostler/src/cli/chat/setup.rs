//! What a conversation is begun with: at first, and with another agent.

use ostler_core::{
    cli_agent::CliAgent,
    event::Mode,
    host::Host,
    request::{Permissions, TurnRequest},
    turn::Turn,
};
use tokio::sync::mpsc;

use super::talk::Speech;
use crate::{
    cli::turn_args::{Refused, TurnArgs},
    config::Settings,
};

/// What is said if nobody can be asked.
const NOBODY: &str = "nobody can be asked here, so the agent may only look; \
    --permissions bypass lets it do everything";

/// What was asked for on the command line.
pub(crate) struct Setup {
    pub(crate) args: TurnArgs,
    pub(crate) settings: Settings,
    pub(crate) host: Host,
    pub(crate) speech: Speech,
    /// Where the turns go that an agent begins by itself.
    pub(crate) unasked: mpsc::Sender<Turn>,
}

/// An agent, and a request that lacks nothing but its prompt.
pub(crate) struct Begun {
    pub(crate) agent: CliAgent,
    pub(crate) request: TurnRequest,
    /// What is not done as asked.
    pub(crate) warning: Option<&'static str>,
}

impl Setup {
    /// Begins as the command line says.
    pub(crate) fn begin(&self) -> Result<Begun, Refused> {
        self.begin_with(&self.args)
    }

    /// Begins with another agent.
    pub(crate) fn begin_with_agent(&self, name: &str) -> Result<Begun, Refused> {
        self.begin_with(&self.args.for_agent(name))
    }

    fn begin_with(&self, args: &TurnArgs) -> Result<Begun, Refused> {
        let (agent, mut request) = args.prepare(&self.settings, &self.host)?;
        let agent = agent.with_unasked(self.unasked.clone());
        let mut warning = None;
        if !args.cold {
            request.mode = Mode::Warm;
            // One process a turn cannot ask, and says so itself.
            if self.speech == Speech::Lines && request.options.permissions == Permissions::Ask {
                request.options.permissions = Permissions::ReadOnly;
                warning = Some(NOBODY);
            }
        }
        Ok(Begun { agent, request, warning })
    }
}
