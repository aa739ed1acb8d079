//! What Gemini prints beside the protocol: notices, and an object with its stack
//! for every request that failed. Replies tell the same in fewer words, so only
//! warnings and retries are passed on.

use crate::{
    agent::{
        Action, Exit, TurnKey,
        emit::emit,
        gemini::{complaint::Complaints, fault, patience},
    },
    event::EventBody,
    failure::Failure,
    protocol::acp::Stderr,
};

/// Reads standard error.
#[derive(Default)]
pub(super) struct Reader {
    complaints: Complaints,
    /// The turn that the complaints are about.
    turn: Option<TurnKey>,
}

impl Stderr for Reader {
    fn line(
        &mut self,
        bytes: &[u8],
        turn: Option<TurnKey>,
        out: &mut Vec<Action>,
    ) -> Option<Failure> {
        if turn != self.turn {
            *self = Self { turn, ..Self::default() };
        }
        let mut said = Vec::new();
        let heard = self.complaints.line(bytes, &mut said);
        let turn = turn?;
        for action in said {
            if let Action::Emit { event: event @ EventBody::Status(_), .. } = action {
                emit(turn, event, out);
            }
        }
        patience::why_give_up(&heard, &self.complaints)
    }

    fn not_started(&mut self, exit: &Exit) -> Failure {
        self.complaints.finish(&mut Vec::new());
        fault::failure(None, &self.complaints, Some(exit))
    }
}
