//! What such an agent prints beside the protocol. Nothing is known about it, so
//! it is passed on as it is.

use super::fault;
use crate::{
    agent::{
        Action, Exit, TurnKey,
        emit::emit_unknown,
        words::{exit_words, one_line},
    },
    event::Stream,
    failure::{Failure, FailureKind},
    protocol::acp::Stderr,
};

/// Reads standard error.
pub(super) struct Reader;

impl Stderr for Reader {
    fn line(
        &mut self,
        bytes: &[u8],
        turn: Option<TurnKey>,
        out: &mut Vec<Action>,
    ) -> Option<Failure> {
        if let Some(turn) = turn {
            emit_unknown(turn, Stream::Stderr, bytes, out);
        }
        None
    }

    fn not_started(&mut self, exit: &Exit) -> Failure {
        let said = one_line(&exit.stderr);
        let how = exit_words(exit);
        let message = if said.is_empty() { how } else { format!("{how}: {said}") };
        let kind = fault::of_words(&exit.stderr).unwrap_or(FailureKind::Crashed);
        Failure::new(kind, message)
    }
}
