//! How a turn ended, from three witnesses: the agent's last word, the exit of
//! its process, and the driver's own reason for stopping it. Pure.

use crate::{
    agent::{Exit, TurnEnd},
    event::StopReason,
    failure::{Failure, FailureKind},
};

/// Why the driver stopped a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The turn's own time was up, or the agent was silent too long.
    TimedOut(String),
    /// Somebody asked for it.
    Cancelled,
    /// It could not be started, or not be gone on with.
    Failed(Failure),
}

/// What the three witnesses say.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// The agent's last word.
    pub(crate) end: Option<TurnEnd>,
    /// How its process ended.
    pub(crate) exit: Option<Exit>,
    /// Why the driver stopped it before the last word.
    pub(crate) reason: Option<Reason>,
    /// Whether the driver ended the process after the last word.
    pub(crate) stopped_after_end: bool,
}

/// Adds the driver's and the process's view to the agent's last word.
pub(crate) fn verdict(title: &str, evidence: &mut Evidence) -> TurnEnd {
    let mut end = evidence.end.take().unwrap_or_default();
    match evidence.reason.take() {
        Some(Reason::TimedOut(message)) => {
            end.failure = Some(Failure::timed_out(message));
            end.stop_reason = Some(StopReason::Error);
        }
        Some(Reason::Cancelled) => {
            end.failure = Some(Failure::new(FailureKind::Cancelled, "Query cancelled"));
            end.stop_reason = Some(StopReason::Cancelled);
        }
        Some(Reason::Failed(failure)) => {
            end.failure = Some(failure);
            end.stop_reason = Some(StopReason::Error);
        }
        None => {
            if let Some(exit) = evidence.exit.as_ref()
                && !exit.is_success()
                && !evidence.stopped_after_end
            {
                let failure = end.failure.take().unwrap_or_else(|| crashed(exit));
                end.failure = Some(failure.with_exit(title, exit.number(), &exit.stderr));
            }
            if end.failure.is_some() && end.stop_reason.as_ref().is_none_or(is_fine) {
                end.stop_reason = Some(StopReason::Error);
            }
        }
    }
    end
}

/// Whether a reason says that all was well, which a failed turn cannot claim.
fn is_fine(reason: &StopReason) -> bool {
    *reason == StopReason::EndTurn
}

fn crashed(exit: &Exit) -> Failure {
    let message = match exit.signal {
        Some(signal) => format!("the process was ended by signal {signal}"),
        None => format!("the process ended with exit code {}", exit.number()),
    };
    Failure::new(FailureKind::Crashed, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exit(code: i32, stderr: &str) -> Option<Exit> {
        Some(Exit { code: Some(code), signal: None, stderr: stderr.to_owned() })
    }

    fn answered() -> Option<TurnEnd> {
        Some(TurnEnd {
            text: Some("hi".into()),
            stop_reason: Some(StopReason::EndTurn),
            ..TurnEnd::default()
        })
    }

    #[test]
    fn an_answer_and_a_clean_exit_are_a_success() {
        let mut evidence =
            Evidence { end: answered(), exit: exit(0, "noise"), ..Evidence::default() };
        let end = verdict("Claude", &mut evidence);
        assert_eq!((end.text.as_deref(), end.failure), (Some("hi"), None));
    }

    #[test]
    fn an_exit_that_ostler_caused_after_the_answer_is_no_error() {
        let mut evidence = Evidence {
            end: answered(),
            exit: exit(143, ""),
            stopped_after_end: true,
            ..Evidence::default()
        };
        assert_eq!(verdict("Claude", &mut evidence).failure, None);
    }

    #[test]
    fn a_timeout_has_its_fixed_text_whatever_the_agent_said() {
        let mut evidence = Evidence {
            end: answered(),
            exit: exit(1, "x"),
            reason: Some(Reason::TimedOut("after 1 s".into())),
            ..Evidence::default()
        };
        let failure = verdict("Codex", &mut evidence).failure.unwrap();
        assert_eq!(failure.response_text(), "Query timed out");
        assert_eq!(failure.kind, FailureKind::Timeout);
    }

    #[test]
    fn the_agents_own_words_stay_the_message_beside_the_fixed_text() {
        let end = TurnEnd {
            failure: Some(Failure::new(FailureKind::Auth, "invalid x-api-key")),
            ..TurnEnd::default()
        };
        let mut evidence = Evidence { end: Some(end), exit: exit(1, ""), ..Evidence::default() };
        let end = verdict("Claude", &mut evidence);
        let failure = end.failure.unwrap();
        assert_eq!(failure.message, "invalid x-api-key");
        assert_eq!(failure.response_text(), "Claude CLI error (exit 1): unknown error");
        assert_eq!(end.stop_reason, Some(StopReason::Error));
    }

    proptest! {
        // Property 8: a non-zero exit gives the fixed text.
        #[test]
        fn a_non_zero_exit_gives_the_fixed_text(
            title in prop::sample::select(vec!["Claude", "Codex"]),
            code in 1..=255_i32,
            signal in prop::option::of(1..=31_i32),
            stderr in ".{0,900}",
            has_answer in any::<bool>(),
        ) {
            let exit = Exit {
                code: signal.is_none().then_some(code),
                signal,
                stderr: stderr.clone(),
            };
            let mut evidence = Evidence {
                end: if has_answer { answered() } else { None },
                exit: Some(exit),
                ..Evidence::default()
            };
            let failure = verdict(title, &mut evidence).failure.unwrap();
            let number = signal.map_or(code, |signal| 128 + signal);
            let shown: String = stderr.chars().take(500).collect();
            let shown = if shown.is_empty() { "unknown error".to_owned() } else { shown };
            prop_assert_eq!(
                failure.response_text(),
                format!("{title} CLI error (exit {number}): {shown}")
            );
            prop_assert_eq!(failure.kind, FailureKind::Crashed);
        }
    }
}
