//! What came of a program, in the words of a turn. Pure.

use std::time::Duration;

use ostler_core::{
    agent::AgentName,
    event::{Mode, StopReason, TurnReport, Usage},
    failure::{Failure, FailureKind},
};
use serde_json::Map;

use super::{INTERRUPTED, output::Output};
use crate::{
    command::{End, live::Stop},
    config::duration,
    gateway::attempt::Wish,
    wishes::millis,
};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Code(i32),
    /// A signal that nobody here sent.
    Signal(i32),
    /// It took longer than this.
    Late(Duration),
    Cancelled,
    /// The gateway stopped, now or in an earlier attempt.
    Interrupted,
    NotStarted(Failure),
}

impl Finish {
    /// Says how one ended that was perhaps stopped.
    pub(super) fn of(end: End, stopped: Option<Stop>, limit: Duration, wish: Wish) -> Self {
        match (stopped, end) {
            (Some(Stop::Late), _) => Self::Late(limit),
            (Some(Stop::Wanted), _) => match wish {
                Wish::Nothing | Wish::Cancel => Self::Cancelled,
                Wish::Release | Wish::Lost => Self::Interrupted,
            },
            (None, End::Code(code)) => Self::Code(code),
            (None, End::Signal(signal)) => Self::Signal(signal),
            // Nothing is cut here.
            (None, End::Cut) => Self::Interrupted,
        }
    }

    /// Whether it ended by itself.
    pub(super) fn is_own(&self) -> bool {
        match self {
            Self::Code(_) => true,
            Self::Signal(_)
            | Self::Late(_)
            | Self::Cancelled
            | Self::Interrupted
            | Self::NotStarted(_) => false,
        }
    }

    fn failure(&self) -> Option<Failure> {
        let failed = |kind, message: String| Some(Failure::new(kind, message));
        match self {
            Self::Code(0) => None,
            Self::Code(code) => {
                failed(FailureKind::Crashed, format!("it ended with exit code {code}"))
            }
            Self::Signal(signal) => {
                failed(FailureKind::Crashed, format!("it was ended by signal {signal}"))
            }
            Self::Late(limit) => {
                let limit = duration::text(*limit);
                failed(FailureKind::Timeout, format!("it took longer than {limit}"))
            }
            Self::Cancelled => failed(FailureKind::Cancelled, "it was cancelled".to_owned()),
            Self::Interrupted => failed(FailureKind::Crashed, INTERRUPTED.to_owned()),
            Self::NotStarted(failure) => Some(failure.clone()),
        }
    }

    /// Returns its exit code, as a shell has it.
    fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(*code),
            Self::Signal(signal) => Some(128_i32.saturating_add(*signal)),
            Self::Late(_) | Self::Cancelled | Self::Interrupted | Self::NotStarted(_) => None,
        }
    }
}

/// A program that is over.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) finish: Finish,
    pub(super) ran_for: Duration,
    pub(super) output: Output,
}

impl Ran {
    pub(super) fn not_started(finish: Finish) -> Self {
        Self { finish, ran_for: Duration::ZERO, output: Output::default() }
    }

    /// Makes its report. Its answer is what it printed, also if it failed.
    pub(super) fn report(&self, agent: AgentName) -> TurnReport {
        let error = self.finish.failure();
        let (text, truncated) = self.output.end();
        TurnReport {
            agent,
            session_id: None,
            response_text: Some(text),
            exit_code: self.finish.exit_code(),
            duration_ms: millis(self.ran_for),
            model: None,
            stop_reason: Some(match &error {
                None => StopReason::EndTurn,
                Some(failure) if failure.kind == FailureKind::Cancelled => StopReason::Cancelled,
                Some(_) => StopReason::Error,
            }),
            error,
            mode: Mode::OneShot,
            usage: Usage::default(),
            truncated,
            memo: None,
            meta: Map::new(),
        }
    }
}
