//! What both forms of Pi's output have in common: the session and the end.

use super::{
    fault,
    session::{Kept, Session},
};
use crate::{
    agent::{
        Action, Exit, Launch, ONLY_SESSION, ONLY_TURN, TurnKey,
        emit::{emit_unknown, emit_warning},
        last_word::LastWord,
    },
    event::{StopReason, Stream},
    failure::{Failure, FailureKind},
};

/// What stands before the CLI's warnings on standard error.
const WARNING: &str = "Warning: ";
/// How the CLI says that it makes a session of an id that it does not know.
const MADE_ANEW: &str = "Warning: No project session found with id";

/// A turn, and the session in which it runs.
pub(super) struct Turn {
    pub(super) session: Session,
    pub(super) end: LastWord,
}

impl Turn {
    /// The one turn of a one-shot process.
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        let resumed = launch.open.memo().map(|memo| memo.id.clone());
        let kept = Kept::of(&launch.options.extra_args);
        let session = Session::new(ONLY_SESSION, resumed, kept, launch.version);
        Self::within(session, ONLY_TURN)
    }

    /// One of many turns of a session.
    pub(super) fn within(session: Session, turn: TurnKey) -> Self {
        Self { session, end: LastWord::new(turn, None) }
    }

    pub(super) fn key(&self) -> TurnKey {
        self.end.turn
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_said()
    }

    /// Takes the id that the CLI tells.
    pub(super) fn name(&mut self, id: String, out: &mut Vec<Action>) {
        if !self.has_ended()
            && let Err(lost) = self.session.name(id, out)
        {
            self.lose(lost, out);
        }
    }

    /// The prompt has become part of the session.
    pub(super) fn asked(&mut self, out: &mut Vec<Action>) {
        if !self.has_ended() {
            self.session.asked(out);
        }
    }

    /// The session is on disk.
    pub(super) fn open(&mut self, out: &mut Vec<Action>) {
        if !self.has_ended() {
            self.session.open(out);
        }
    }

    /// Tells the id of the resumed session, for output that does not name it.
    pub(super) fn open_resumed(&mut self, out: &mut Vec<Action>) {
        if let Some(id) = self.session.resumed() {
            let id = id.to_owned();
            self.name(id, out);
        }
    }

    /// Passes on a line of standard error: a warning as such, others as they are.
    pub(super) fn stderr(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let line = String::from_utf8_lossy(bytes);
        if line.starts_with(MADE_ANEW) {
            // A new session of a template is to be made; one that was to be
            // resumed is lost.
            if self.session.resumed().is_some() && !self.has_ended() {
                self.lose(line.trim_start_matches(WARNING).to_owned(), out);
            }
            return;
        }
        match warning(&line) {
            Some(text) => emit_warning(self.key(), text, out),
            None => emit_unknown(self.key(), Stream::Stderr, bytes, out),
        }
    }

    /// Ends the turn well.
    pub(super) fn complete(&mut self, text: String, reason: StopReason, out: &mut Vec<Action>) {
        self.end.complete(text, reason, out);
    }

    /// Ends the turn badly, with what there was of an answer.
    pub(super) fn fail(&mut self, failure: Failure, text: Option<String>, out: &mut Vec<Action>) {
        let stop_reason = if failure.kind == FailureKind::Refused {
            StopReason::Refusal
        } else if failure.kind == FailureKind::Cancelled {
            StopReason::Cancelled
        } else {
            StopReason::Error
        };
        self.end.fail(failure, stop_reason, text, out);
    }

    /// Ends a turn whose process is gone and whose output says nothing more.
    pub(super) fn fail_with_exit(
        &mut self,
        exit: &Exit,
        printed: &str,
        text: Option<String>,
        out: &mut Vec<Action>,
    ) {
        let failure = if !exit.is_success() {
            fault::of_exit(exit, printed)
        } else if let Some(failure) = fault::of_silence(&exit.stderr) {
            failure
        } else {
            Failure::unreadable()
        };
        self.fail(failure, text, out);
    }

    fn lose(&mut self, message: String, out: &mut Vec<Action>) {
        self.session.settle();
        self.fail(Failure::new(FailureKind::SessionLost, message), None, out);
        out.push(Action::Stop);
    }
}

/// Returns the text of a warning that a caller should see.
pub(super) fn warning(line: &str) -> Option<&str> {
    line.strip_prefix(WARNING).filter(|_| !line.starts_with(MADE_ANEW))
}
