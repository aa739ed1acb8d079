//! The agents that can be played, and what all of them share: where they keep
//! their sessions and how fast they talk.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::{Error as NameError, StrDeserializer};

use super::command::{Environment, number};
use super::stage::Stage;
use super::{End, Error, claude, codex, gemini, opencode, pi};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Agent {
    Claude,
    Codex,
    Gemini,
    #[serde(rename = "opencode")]
    OpenCode,
    Pi,
}

impl Agent {
    pub(super) fn from_name(name: &str) -> Result<Self, Error> {
        Self::deserialize(StrDeserializer::<NameError>::new(name))
            .map_err(|error| Error::Usage(format!("no such agent: {error}")))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Pi => "pi",
        }
    }

    pub(super) fn play(self, props: &Props, stage: &mut Stage<'_>) -> Result<End, Error> {
        match self {
            Self::Claude => claude::play(props, stage),
            Self::Codex => codex::play(props, stage),
            Self::Gemini => gemini::play(props, stage),
            Self::OpenCode => opencode::play(props, stage),
            Self::Pi => pi::play(props, stage),
        }
    }
}

/// What an agent needs besides its arguments.
#[derive(Debug)]
pub(super) struct Props {
    /// Sessions live in `<home>/<agent>/<id>.json`.
    pub(super) home: PathBuf,
    /// The pause before each piece of an answer.
    pub(super) pace: Duration,
    pub(super) cwd: PathBuf,
    pub(super) stdin: StdinKind,
}

/// CLIs that read standard input beside a prompt do not when a person sits
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdinKind {
    Terminal,
    Other,
}

impl Props {
    pub(super) fn new(
        home: Option<PathBuf>,
        pace_ms: Option<u64>,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let home = home
            .or_else(|| environment.scripted_home.clone())
            .or_else(|| environment.home.as_ref().map(|home| home.join(".ostler-scripted")))
            .ok_or_else(|| {
                let text = "no place for sessions: set HOME, OSTLER_SCRIPTED_HOME or --home";
                Error::Usage(text.into())
            })?;
        let pace_ms = match (pace_ms, &environment.pace_ms) {
            (Some(pace_ms), _) => pace_ms,
            (None, Some(text)) => number("OSTLER_SCRIPTED_PACE_MS".as_ref(), text)?,
            (None, None) => 0,
        };
        let cwd = std::env::current_dir().map_err(Error::io("no working directory"))?;
        let stdin =
            if std::io::stdin().is_terminal() { StdinKind::Terminal } else { StdinKind::Other };
        Ok(Self { home, pace: Duration::from_millis(pace_ms), cwd, stdin })
    }
}
