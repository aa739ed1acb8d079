//! What both forms of Pi's output have in common: the session and the end.

use super::fault;
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

/// The one turn of a one-shot process.
pub(super) struct Turn {
    resumed: Option<String>,
    session: Session,
    /// Whether the CLI writes a session down before the model has answered.
    keeps_prompts: bool,
    pub(super) end: LastWord,
}

/// What is known of the session that answers.
enum Session {
    Unknown,
    /// Its id was told, but it is not on disk yet.
    Named(String),
    /// It can be resumed, or must not be.
    Settled,
}

impl Turn {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        let is_kept = !launch.options.extra_args.iter().any(|arg| arg == "--no-session");
        Self {
            resumed: launch.open.memo().map(|memo| memo.id.clone()),
            session: if is_kept { Session::Unknown } else { Session::Settled },
            keeps_prompts: launch.version.is_some_and(keeps_prompts),
            end: LastWord::new(ONLY_TURN, None),
        }
    }

    pub(super) fn key(&self) -> TurnKey {
        self.end.turn
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_said()
    }

    /// Returns whether the CLI told which session it is.
    pub(super) fn is_named(&self) -> bool {
        !matches!(self.session, Session::Unknown)
    }

    /// Takes the id that the CLI tells.
    ///
    /// Resuming keeps the id. Another one means that the CLI took the asked one
    /// for the beginning of it, or copied the session of another directory: an
    /// answer from there would not belong to this conversation.
    pub(super) fn name(&mut self, id: String, out: &mut Vec<Action>) {
        if self.has_ended() || !matches!(self.session, Session::Unknown) {
            return;
        }
        match &self.resumed {
            None => self.session = Session::Named(id),
            Some(asked) if *asked == id => {
                self.session = Session::Settled;
                out.push(Action::Opened { session: ONLY_SESSION, id });
            }
            Some(asked) => {
                let message = format!("pi did not resume session {asked} but opened {id}");
                self.lose(message, out);
            }
        }
    }

    /// The prompt has become part of the session.
    pub(super) fn asked(&mut self, out: &mut Vec<Action>) {
        if self.keeps_prompts {
            self.open(out);
        }
    }

    /// Tells a new session's id. The CLI writes a session down with the first
    /// message of the model; one that ends before cannot be resumed.
    pub(super) fn open(&mut self, out: &mut Vec<Action>) {
        if self.has_ended() {
            return;
        }
        match std::mem::replace(&mut self.session, Session::Settled) {
            Session::Named(id) => out.push(Action::Opened { session: ONLY_SESSION, id }),
            Session::Unknown => self.session = Session::Unknown,
            Session::Settled => {}
        }
    }

    /// Tells the id of the resumed session, for output that does not name it.
    pub(super) fn open_resumed(&mut self, out: &mut Vec<Action>) {
        if let Some(id) = self.resumed.clone() {
            self.name(id, out);
        }
    }

    /// Passes on a line of standard error: a warning as such, others as they are.
    pub(super) fn stderr(&mut self, bytes: &[u8], out: &mut Vec<Action>) {
        let line = String::from_utf8_lossy(bytes);
        if line.starts_with(MADE_ANEW) {
            // A new session of a template is to be made; one that was to be
            // resumed is lost.
            if self.resumed.is_some() && !self.has_ended() {
                self.lose(line.trim_start_matches(WARNING).to_owned(), out);
            }
            return;
        }
        match line.strip_prefix(WARNING) {
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
        self.session = Session::Settled;
        self.fail(Failure::new(FailureKind::SessionLost, message), None, out);
        out.push(Action::Stop);
    }
}

/// Version 1.5 writes the prompt down at once, 0.87 does not.
fn keeps_prompts(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next()) >= (1, 5)
}
