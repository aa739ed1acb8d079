//! What a turn comes to for the conversation: the result that is sent, and the
//! session that is kept. Pure.

use ostler_core::{event::TurnReport, failure::FailureKind, memo::Memo};
use serde::Serialize;

use crate::store::conversations::Address;

/// The result of a message. Either there is a text, or there is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Outcome {
    /// Where it goes.
    #[serde(skip)]
    pub(crate) target: Address,
    pub(crate) text: Option<String>,
    /// The agent's session; none after an error.
    pub(crate) session_id: Option<String>,
    pub(crate) error: Option<OutcomeError>,
}

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OutcomeError {
    /// The word of the error kind.
    pub(crate) kind: &'static str,
    /// What to show.
    pub(crate) message: String,
}

impl Outcome {
    /// Maps the report of a turn.
    pub(crate) fn of(report: &TurnReport, target: Address) -> Self {
        match &report.error {
            Some(failure) => Self::failed(failure.kind, failure.response_text().to_owned(), target),
            None => Self {
                target,
                text: Some(report.response_text.clone().unwrap_or_default()),
                session_id: report.session_id.clone(),
                error: None,
            },
        }
    }

    /// Makes the result of a message to which no turn had an answer.
    pub(crate) fn failed(kind: FailureKind, message: String, target: Address) -> Self {
        let error = OutcomeError { kind: kind.code(), message };
        Self { target, text: None, session_id: None, error: Some(error) }
    }

    /// Makes a result that no agent gave.
    pub(crate) fn said(text: String, target: Address) -> Self {
        Self { target, text: Some(text), session_id: None, error: None }
    }
}

/// Returns the session that a turn leaves behind: whatever it names, also after
/// an error; if it names none, what was kept before stays.
pub(crate) fn session(report: &TurnReport) -> Option<Memo> {
    let id = report.session_id.as_ref()?;
    let memo = report.memo.clone().filter(|memo| memo.id == *id);
    Some(memo.unwrap_or_else(|| Memo::of_id(report.agent.to_string(), id)))
}

#[cfg(test)]
mod tests {
    use ostler_core::{
        agent,
        event::{Mode, Usage},
        failure::Failure,
    };
    use proptest::{option, prelude::*};

    use super::*;

    fn any_report() -> impl Strategy<Value = TurnReport> {
        let failure = (proptest::sample::select(&FailureKind::ALL[..]), ".{0,20}", any::<bool>());
        let failure = failure.prop_map(|(kind, message, is_fixed)| Failure {
            fixed_text: is_fixed.then(|| format!("fixed {message}")),
            ..Failure::new(kind, message)
        });
        let texts = (option::of(".{0,40}"), option::of("[a-z0-9]{1,20}"), any::<bool>());
        (option::of(failure), texts).prop_map(|(error, (response_text, session_id, has_memo))| {
            let memo = session_id.clone().filter(|_| has_memo);
            TurnReport {
                agent: agent::find("codex").unwrap().name.clone(),
                memo: memo
                    .map(|id| Memo { model: Some("m".to_owned()), ..Memo::of_id("codex", id) }),
                session_id,
                response_text,
                error,
                exit_code: None,
                duration_ms: 1,
                model: None,
                stop_reason: None,
                mode: Mode::Warm,
                usage: Usage::default(),
                truncated: false,
                meta: serde_json::Map::default(),
            }
        })
    }

    proptest! {
        // Property 9: result mapping
        #[test]
        fn an_error_sets_the_error_alone_and_a_success_everything_else(report in any_report()) {
            let target = Address::new("webhook", "http://127.0.0.1/c/1").unwrap();
            let outcome = Outcome::of(&report, target.clone());
            prop_assert_eq!(&outcome.target, &target);
            match &report.error {
                Some(failure) => {
                    let error = outcome.error.unwrap();
                    prop_assert_eq!(error.kind, failure.kind.code());
                    prop_assert_eq!(error.message.as_str(), failure.response_text());
                    prop_assert_eq!((outcome.text, outcome.session_id), (None, None));
                }
                None => {
                    prop_assert_eq!(outcome.error, None);
                    prop_assert_eq!(outcome.text, Some(report.response_text.unwrap_or_default()));
                    prop_assert_eq!(outcome.session_id, report.session_id);
                }
            }
        }

        // Property 10: session storage
        #[test]
        fn the_session_that_a_turn_names_is_kept_also_after_an_error(report in any_report()) {
            let kept = session(&report);
            prop_assert_eq!(kept.as_ref().map(|memo| &memo.id), report.session_id.as_ref());
            if let (Some(memo), Some(told)) = (kept, report.memo) {
                prop_assert_eq!(memo, told);
            }
        }
    }
}
