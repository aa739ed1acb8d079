//! The actions by which a dialect tells something about a turn.
//!
//! A process may have many turns, so each of them is named by its key.

use super::{Action, TurnKey};
use crate::event::{EventBody, Status, Stream};

/// Tells an event of a turn.
pub(crate) fn emit(turn: TurnKey, event: EventBody, out: &mut Vec<Action>) {
    emit_for(turn, None, event, out);
}

/// Tells an event that belongs to the sub-agent of a tool call, where there is one.
pub(crate) fn emit_for(
    turn: TurnKey,
    parent: Option<&str>,
    event: EventBody,
    out: &mut Vec<Action>,
) {
    out.push(Action::Emit { turn, parent: parent.map(str::to_owned), event });
}

/// Tells that something is not as it should be, but the turn goes on.
pub(crate) fn emit_warning(turn: TurnKey, text: impl Into<String>, out: &mut Vec<Action>) {
    let text = text.into();
    emit(turn, EventBody::Status(Status::Warning { text }), out);
}

/// Passes on a line that was not understood. Blank ones say nothing.
pub(crate) fn emit_unknown(turn: TurnKey, stream: Stream, bytes: &[u8], out: &mut Vec<Action>) {
    if !bytes.trim_ascii().is_empty() {
        let text = String::from_utf8_lossy(bytes).into_owned();
        emit(turn, EventBody::Unknown { stream, text }, out);
    }
}
